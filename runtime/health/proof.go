package health

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"sallyport/internal/atomicfile"
	"sallyport/internal/coded"
)

// KeyFile is the name, in the state folder, of the key that proves an instance.
const KeyFile = "health.key"

const keyBytes = 32

// proof is HMAC-SHA-256, in hex, over four lines: a name for this use, the
// nonce, the instance and the bound port. The port is in it so that a program on
// another port cannot pass our question on to us and show our answer.
func proof(key []byte, nonce, instance string, port int) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("sallyport-health-v1\n" + nonce + "\n" + instance + "\n" + strconv.Itoa(port)))
	return hex.EncodeToString(mac.Sum(nil))
}

// LoadKey returns the key in dir, made at the first start and readable by its
// owner alone. A file that holds something else is replaced: the key proves the
// instance that runs now and nothing older depends on it.
func LoadKey(dir string) ([]byte, error) {
	if key, err := ReadKey(dir); err == nil {
		return key, nil
	}
	key := make([]byte, keyBytes)
	rand.Read(key) // never fails (crypto/rand)
	if err := atomicfile.Write(filepath.Join(dir, KeyFile), []byte(hex.EncodeToString(key)+"\n"), 0o600); err != nil {
		return nil, err
	}
	return key, nil
}

// ReadKey returns the key in dir for a client; it makes none. The error is a
// *coded.Error with the code "no-health-key".
func ReadKey(dir string) ([]byte, error) {
	key, err := readKey(filepath.Join(dir, KeyFile))
	if err == nil {
		return key, nil
	}
	sentence := "the key that proves an instance cannot be read"
	if errors.Is(err, fs.ErrNotExist) {
		sentence = "Sallyport has not been started with this state folder"
	}
	return nil, &coded.Error{Code: "no-health-key", Sentence: sentence, Next: "start Sallyport", Err: err}
}

func readKey(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() != 2*keyBytes+1 {
		return nil, errors.New("not a key file")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(data) != 2*keyBytes+1 || data[2*keyBytes] != '\n' {
		return nil, errors.New("not a key file")
	}
	return hex.DecodeString(string(data[:2*keyBytes]))
}
