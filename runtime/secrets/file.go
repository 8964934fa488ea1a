package secrets

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/gofrs/flock"

	"sallyport/internal/atomicfile"
	"sallyport/internal/coded"
	"sallyport/internal/owneronly"
)

// FileConfig is what the encrypted file needs.
type FileConfig struct {
	// Path of the file; its folder is made private when it is not there.
	Path string
	// Passphrase opens it. File keeps the slice and clears it after its first use.
	Passphrase []byte
	// WorkFactor is the binary logarithm of scrypt's cost for a new file; 18 when
	// zero (about a second and 256 MiB).
	WorkFactor int
}

// mostWork is the costliest file that is read (4 GiB of memory at 22 would be a
// way to stop the program).
const mostWork = 20

// mostFile bounds what is read into memory.
const mostFile = 16 << 20

// File keeps values in one encrypted file, for a system without a keyring. The
// operator chooses it; nothing falls back to it.
//
// The file is two armored age files, one after the other: an X25519 identity
// encrypted with the passphrase, and the values encrypted to that identity. So
// scrypt is paid once per File, at its first use, and a person can read the file
// with the age program. Memory holds the identity from then on, no longer the
// passphrase (but for copies that the garbage collector has not overwritten), and
// no value beyond a call. What cannot be read is reported and never overwritten.
type File struct {
	path string
	work int

	mu         sync.Mutex
	passphrase []byte
	sealedKey  []byte // the first part of the file, kept as it is
	identity   *age.X25519Identity
}

// NewFile returns the backend. It reads and writes nothing.
func NewFile(c FileConfig) *File {
	f := &File{path: c.Path, passphrase: c.Passphrase, work: c.WorkFactor}
	if f.work == 0 {
		f.work = 18
	}
	return f
}

// Name implements Backend.
func (f *File) Name() string { return "the encrypted file of secrets" }

// Limit implements Backend.
func (f *File) Limit() Limit { return plainLimit(mostBytes) }

// Close implements Backend. It forgets the key.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.passphrase)
	f.passphrase, f.identity, f.sealedKey = nil, nil, nil
	return nil
}

// Get implements Backend.
func (f *File) Get(ctx context.Context, key string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	values, err := f.read(ctx)
	if err != nil {
		return nil, err
	}
	value, ok := values[key]
	if !ok {
		return nil, ErrNotFound
	}
	return value, nil
}

// Check implements Backend: the file is not there yet, or can be read.
func (f *File) Check(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.read(ctx)
	return err
}

// Set implements Backend.
func (f *File) Set(ctx context.Context, key string, value []byte) error {
	return f.change(ctx, func(values map[string][]byte) error {
		values[key] = value
		return nil
	})
}

// Delete implements Backend.
func (f *File) Delete(ctx context.Context, key string) error {
	return f.change(ctx, func(values map[string][]byte) error {
		if _, ok := values[key]; !ok {
			return ErrNotFound
		}
		delete(values, key)
		return nil
	})
}

// change reads, changes and writes the file, alone among processes.
func (f *File) change(ctx context.Context, edit func(map[string][]byte) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := owneronly.Folder(filepath.Dir(f.path)); err != nil {
		return unwritable(err)
	}
	lock := flock.New(f.path+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 10*time.Millisecond); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return unwritable(err)
	}
	defer lock.Close() //nolint:errcheck // the lock ends with the handle
	values, err := f.read(ctx)
	if err != nil {
		return err
	}
	values = maps.Clone(values)
	if err := edit(values); err != nil {
		return err
	}
	// Before the rename, not after: who was told that it failed finds it unchanged.
	if err := ctx.Err(); err != nil {
		return err
	}
	return f.write(values)
}

// contents is the second part of the file.
type contents struct {
	Version int               `json:"version"`
	Values  map[string][]byte `json:"values"`
}

// read returns the values; a file that is not there has none.
func (f *File) read(ctx context.Context) (map[string][]byte, error) {
	data, err := f.bytes()
	if errors.Is(err, fs.ErrNotExist) {
		return map[string][]byte{}, nil
	}
	if err != nil {
		return nil, unreadable(err)
	}
	end := bytes.Index(data, []byte(armor.Footer))
	if end < 0 {
		return nil, damaged(errors.New("no end of the first part"))
	}
	end += len(armor.Footer)
	if err := f.open(data[:end]); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	plain, err := decrypt(data[end:], f.identity)
	if err != nil {
		return nil, damaged(err)
	}
	var c contents
	if err := json.Unmarshal(plain, &c); err != nil || c.Version != 1 || c.Values == nil {
		return nil, damaged(errors.New("not the values of version 1"))
	}
	return c.Values, nil
}

// bytes reads the file if it is one: a pipe would never end.
func (f *File) bytes() ([]byte, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > mostFile {
		return nil, errors.New("not a file of reasonable size")
	}
	return os.ReadFile(f.path)
}

// open decrypts the identity, once.
func (f *File) open(sealedKey []byte) error {
	if f.identity != nil {
		if !bytes.Equal(sealedKey, f.sealedKey) {
			return &coded.Error{
				Code:     "secrets-file-replaced",
				Sentence: "the encrypted file of secrets was replaced by one with another key",
				Next:     "put the file back, or start Sallyport again with the passphrase of the new one",
			}
		}
		return nil
	}
	passphrase, err := age.NewScryptIdentity(string(f.passphrase))
	if err != nil {
		return noPassphrase(err)
	}
	passphrase.SetMaxWorkFactor(mostWork)
	plain, err := decrypt(sealedKey, passphrase)
	var wrong *age.NoIdentityMatchError
	if errors.As(err, &wrong) {
		return noPassphrase(err)
	}
	if err != nil {
		return damaged(err)
	}
	identity, err := age.ParseX25519Identity(string(plain))
	clear(plain)
	if err != nil {
		return damaged(err)
	}
	f.keep(identity, bytes.Clone(sealedKey))
	return nil
}

func (f *File) keep(identity *age.X25519Identity, sealedKey []byte) {
	clear(f.passphrase)
	f.passphrase, f.identity, f.sealedKey = nil, identity, sealedKey
}

// write replaces the file, and makes its key when it is the first time.
func (f *File) write(values map[string][]byte) error {
	if f.identity == nil {
		if err := f.create(); err != nil {
			return err
		}
	}
	plain, err := json.Marshal(contents{1, values})
	if err != nil {
		return err
	}
	defer clear(plain)
	sealed, err := encrypt(plain, f.identity.Recipient())
	if err != nil {
		return err
	}
	data := append(append(bytes.Clone(f.sealedKey), '\n'), sealed...)
	if err := atomicfile.Write(f.path, data, 0o600); err != nil {
		return unwritable(err)
	}
	return nil
}

func (f *File) create() error {
	recipient, err := age.NewScryptRecipient(string(f.passphrase))
	if err != nil {
		return noPassphrase(err)
	}
	recipient.SetWorkFactor(f.work)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	sealed, err := encrypt([]byte(identity.String()), recipient)
	if err != nil {
		return err
	}
	f.keep(identity, bytes.TrimRight(sealed, "\n"))
	return nil
}

func damaged(cause error) error {
	return &coded.Error{
		Code:     "secrets-file-damaged",
		Sentence: "the encrypted file of secrets is damaged; it was left as it is",
		Next:     "put a backup of it back, or move it away and store the secrets again",
		Err:      cause,
	}
}

func noPassphrase(cause error) error {
	return &coded.Error{
		Code:     "secrets-file-passphrase",
		Sentence: "the passphrase does not open the encrypted file of secrets; the file was left as it is",
		Next:     "start Sallyport again with the passphrase that the file was made with",
		Err:      cause,
	}
}

func unwritable(cause error) error {
	return &coded.Error{
		Code:     "secrets-file-unwritable",
		Sentence: "the encrypted file of secrets cannot be written",
		Next:     "look at its folder's owner, permissions and free space",
		Err:      cause,
	}
}

func unreadable(cause error) error {
	return &coded.Error{
		Code:     "secrets-file-unreadable",
		Sentence: "the encrypted file of secrets cannot be read",
		Next:     "look at its owner and permissions, and that it is a file",
		Err:      cause,
	}
}

func encrypt(plain []byte, to age.Recipient) ([]byte, error) {
	var out bytes.Buffer
	armored := armor.NewWriter(&out)
	w, err := age.Encrypt(armored, to)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := armored.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func decrypt(data []byte, with age.Identity) ([]byte, error) {
	r, err := age.Decrypt(armor.NewReader(bytes.NewReader(bytes.TrimSpace(data))), with)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
