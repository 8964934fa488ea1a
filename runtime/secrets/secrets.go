package secrets

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config is what a Store needs.
type Config struct {
	// Backend keeps the values; nil means the system's keyring under the service
	// "Sallyport".
	Backend Backend
	// Names keeps the list of names; required.
	Names NameStore
	// Timeout bounds each call to the backend; 5 s when zero.
	Timeout time.Duration
	// System is what advice is given for; nil looks at the one it runs on.
	System *System
	// Getenv tells what is known of the session, for System; nil means os.Getenv.
	Getenv func(string) string
	// Now is the clock of Name.SetAt and State.At; nil means time.Now.
	Now func() time.Time
	// Logger hears of calls that did not come back, without values; may be nil.
	Logger *slog.Logger
}

// Name is an entry of the list: a secret that was stored, never its value.
type Name struct {
	Name  string
	SetAt time.Time
}

// NameStore is the list of names, kept by the host. Its methods may be called at
// once from several goroutines.
type NameStore interface {
	// Names returns all, in any order.
	Names(ctx context.Context) ([]Name, error)
	// Put adds a name or gives it another time.
	Put(ctx context.Context, name Name) error
	// Drop removes a name; one that is not there is no error.
	Drop(ctx context.Context, name string) error
}

// Store gives names to the values of a Backend and bounds it. Its methods may be
// called at once from several goroutines.
type Store struct {
	backend Backend
	names   NameStore
	limit   time.Duration
	system  System
	now     func() time.Time
	log     *slog.Logger

	mu      sync.Mutex
	turns   map[string]*turn
	overdue int           // calls that did not come back in time and still run
	slots   chan struct{} // one for each call that runs
	state   State
}

// Open returns a Store. It does not touch the keyring and starts nothing; Close
// ends what later calls may leave waiting for a person.
func Open(c Config) *Store {
	s := &Store{
		backend: c.Backend, names: c.Names, limit: c.Timeout, now: c.Now, log: c.Logger,
		turns: map[string]*turn{}, slots: make(chan struct{}, mostCalls),
	}
	if s.backend == nil {
		s.backend = SystemKeyring(KeyringConfig{})
	}
	if s.limit == 0 {
		s.limit = 5 * time.Second
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if c.System != nil {
		s.system = *c.System
	} else {
		getenv := c.Getenv
		if getenv == nil {
			getenv = os.Getenv
		}
		s.system = detect(getenv)
	}
	s.state = State{Status: NotAsked, Backend: s.backend.Name()}
	return s
}

// Close gives up what waits for a person. Values stay where they are.
func (s *Store) Close() error { return s.backend.Close() }

// Secret returns the value of name, byte for byte as it was set. A name that is
// not on the list is secret-unknown without a call to the keyring; other refusals
// are the keyring's, within the time-out (spec/child-environment.md 5).
func (s *Store) Secret(ctx context.Context, name string) (string, error) {
	known, err := s.listed(ctx, name)
	if err != nil {
		return "", err
	}
	if !known {
		return "", unknown(name)
	}
	t, err := s.begin(ctx, name)
	if err != nil {
		return "", err
	}
	defer s.end(t)
	value, err := s.get(ctx, t)
	if errors.Is(err, ErrNotFound) {
		return "", lost(name)
	}
	return string(value), err
}

// Holds reports whether name is kept with exactly that value, so that nobody has to
// be given the value to compare it.
func (s *Store) Holds(ctx context.Context, name string, value []byte) (known, same bool, err error) {
	if known, err = s.listed(ctx, name); err != nil || !known {
		return known, false, err
	}
	t, err := s.begin(ctx, name)
	if err != nil {
		return true, false, err
	}
	defer s.end(t)
	now, err := s.current(ctx, t)
	return true, err == nil && now.there && subtle.ConstantTimeCompare(now.value, value) == 1, err
}

// Delete removes name from the keyring and then from the list. Where only one of
// the two had it, that one is cleared; where neither had, it is secret-unknown.
func (s *Store) Delete(ctx context.Context, name string) error {
	known, err := s.listed(ctx, name)
	if err != nil {
		return err
	}
	t, err := s.begin(ctx, name)
	if err != nil {
		return err
	}
	defer s.end(t)
	err = s.delete(ctx, t)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if err != nil && !known {
		return unknown(name)
	}
	if err := s.names.Drop(context.WithoutCancel(ctx), name); err != nil {
		return fmt.Errorf("cannot take %q off the list of secrets: %w", name, err)
	}
	return nil
}

// Settle finds out, without asking a person, what a Set or Delete has left that was not
// answered: a name without a value is taken off the list. It is refused as long as the
// keyring cannot tell.
func (s *Store) Settle(ctx context.Context, name string) error {
	if err := s.Ready(ctx); err != nil {
		return err
	}
	t, err := s.begin(ctx, name)
	if err != nil {
		return err
	}
	defer s.end(t)
	now, err := s.current(ctx, t)
	if err != nil || now.there {
		return err
	}
	if err := s.names.Drop(context.WithoutCancel(ctx), name); err != nil {
		return fmt.Errorf("cannot take %q off the list of secrets: %w", name, err)
	}
	return nil
}

// List returns the names, sorted. It makes no call to the keyring.
func (s *Store) List(ctx context.Context) ([]Name, error) {
	names, err := s.names.Names(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot list the secrets: %w", err)
	}
	names = slices.Clone(names)
	slices.SortFunc(names, func(a, b Name) int { return strings.Compare(a.Name, b.Name) })
	return names, nil
}

func (s *Store) listed(ctx context.Context, name string) (bool, error) {
	if err := CheckName(name); err != nil {
		return false, err
	}
	names, err := s.names.Names(ctx)
	if err != nil {
		return false, fmt.Errorf("cannot list the secrets: %w", err)
	}
	return slices.ContainsFunc(names, func(n Name) bool { return n.Name == name }), nil
}
