package secrets

import (
	"context"
	"errors"
)

// ErrNotFound is what a Backend returns for a key that it does not have.
var ErrNotFound = errors.New("the keyring has no such entry")

// Backend is one place for values. Its methods may be called at once from several
// goroutines. They may take any time, also beyond the end of ctx: Store bounds
// them. Errors are ErrNotFound, a *coded.Error, or anything else for a failure
// without a name.
type Backend interface {
	// Name says what it is, as the operator knows it.
	Name() string
	// Limit says what fits. It does not touch the keyring.
	Limit() Limit
	// Set stores value under key, in place of what is there.
	Set(ctx context.Context, key string, value []byte) error
	// Get returns the value under key.
	Get(ctx context.Context, key string) ([]byte, error)
	// Delete removes key.
	Delete(ctx context.Context, key string) error
	// Check says whether Get could work, without asking a person and without
	// writing.
	Check(ctx context.Context) error
	// Close gives up what waits for a person.
	Close() error
}

// Limit is the largest entry that a backend takes, in its own unit.
type Limit struct {
	Most int
	// Unit reads after a number: "bytes".
	Unit string
	// Size returns what value takes under key, in the same unit.
	Size func(key string, value []byte) int
}

// mostBytes bounds the backends that have no limit of their own: what is larger
// could not be handed to a process (Linux takes 128 KiB per variable) and makes
// keyrings slow.
const mostBytes = 64 << 10

func plainLimit(most int) Limit {
	return Limit{Most: most, Unit: "bytes", Size: func(_ string, value []byte) int { return len(value) }}
}
