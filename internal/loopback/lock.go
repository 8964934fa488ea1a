package loopback

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/gofrs/flock"
)

// ErrHeld says that another process holds the lock: an instance is running.
var ErrHeld = errors.New("another instance holds the lock")

// lockFile is never removed: removing it would let a third process lock a new
// file of the same name while the second waits on the old one.
const lockFile = "lock"

// Lock is the right to be the one instance of a folder.
type Lock struct{ file *flock.Flock }

// Acquire takes the lock of dir without waiting. ErrHeld means that a living
// process has it: the system gives it back when its holder ends, however it ends,
// so no pid is looked at (spec/local-api.md 3).
func Acquire(dir string) (*Lock, error) {
	f := flock.New(filepath.Join(dir, lockFile), flock.SetPermissions(0o600))
	held, err := f.TryLock()
	if err != nil {
		return nil, fmt.Errorf("cannot lock the folder: %w", err)
	}
	if !held {
		return nil, ErrHeld
	}
	return &Lock{f}, nil
}

// Release gives the lock back. Close the listener first: whoever takes the lock
// next expects the port to be free.
func (l *Lock) Release() error { return l.file.Unlock() }

// NewInstance returns a new instance id: 32 hex digits from the system's
// randomness, new at every start.
func NewInstance() string {
	var b [16]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}
