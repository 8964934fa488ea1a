package host

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sallyport/internal/atomicfile"
	"sallyport/internal/coded"
)

// TokenFile returns the path of a token that is a 0600 file of the operator's
// ("operator", "companion"; spec/local-api.md 6).
func (p Places) TokenFile(name string) string { return filepath.Join(p.State, name+".token") }

const tokenBytes = 32

// ReadToken reads a token file. It never makes one: only the host does.
func (p Places) ReadToken(name string) (string, error) { return readToken(p.TokenFile(name)) }

func readToken(path string) (string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if decoded, err := base64.RawURLEncoding.DecodeString(token); err != nil || len(decoded) != tokenBytes {
		return "", &coded.Error{Code: "token-damaged", Sentence: "a token file does not hold a token",
			Next: "stop Sallyport, delete the file and start it again", Path: filepath.Base(path)}
	}
	return token, nil
}

// ensureToken reads a token file or, only where there is none, makes one.
func ensureToken(path string) (string, error) {
	token, err := readToken(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	random := make([]byte, tokenBytes)
	if _, err := rand.Read(random); err != nil {
		return "", fmt.Errorf("cannot make a token: %w", err)
	}
	token = base64.RawURLEncoding.EncodeToString(random)
	if err := atomicfile.Write(path, []byte(token+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("cannot keep the token: %w", err)
	}
	return token, nil
}
