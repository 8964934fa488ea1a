package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/mcp"
	"sallyport/runtime/plugins"
	"sallyport/runtime/secrets"
)

// Vault keeps the tokens; secrets.Internal.
type Vault interface {
	Keep(ctx context.Context, key string, value []byte) error
	// Kept returns secrets.ErrNotFound where there is nothing.
	Kept(ctx context.Context, key string) ([]byte, error)
	Forget(ctx context.Context, key string) error
}

// Entry is one sign-in: which, never with what.
type Entry struct {
	Connector string    `json:"connector"` // PLUGIN/SERVER
	Origin    string    `json:"origin"`    // of its endpoint
	Issuer    string    `json:"issuer"`    // who gave the tokens
	Key       string    `json:"key"`       // in the vault
	At        time.Time `json:"at"`
	// Ended says that it does not count any more, though the vault may still have it.
	Ended bool `json:"ended,omitempty"`
}

// Index lists the sign-ins, since a keyring cannot be relied on to.
type Index interface {
	Logins(ctx context.Context) ([]Entry, error)
	ChangeLogins(ctx context.Context, change func([]Entry) []Entry) error
}

// Config is what a Book needs. Vault, Index and Record are required.
type Config struct {
	Vault Vault
	Index Index
	// Record puts an act on record, before it takes effect.
	Record func(ctx context.Context, action string, id plugins.ID, result, reason string) error
	// Needed is told of a connector that cannot go on without a person; may be nil.
	Needed  func(id plugins.ID, why *coded.Error)
	Network mcp.Network
	// Limit is how long a person may take; 5 minutes when zero.
	Limit  time.Duration
	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // may be nil
}

// Book is every sign-in of an installation. Its methods may be called at once from
// several goroutines.
type Book struct {
	config Config

	mu      sync.Mutex
	entries []Entry
	listed  bool
	slots   map[string]*slot
}

// slot is one connector's place at one origin. What follows turn belongs to whoever
// has it.
type slot struct {
	turn      chan struct{}
	record    *record // nil: not read yet, or nothing is there
	unsaved   bool    // the vault does not have record yet
	dead      bool    // the tokens were refused for good
	challenge *mcp.Challenge
}

// New returns a Book. Nothing is read before it is needed.
func New(c Config) *Book {
	if c.Limit <= 0 {
		c.Limit = 5 * time.Minute
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Book{config: c, slots: map[string]*slot{}}
}

// Bearer signs what a connector sends, as it is launched. A first try needs a person
// as much as any other, but is not what Needed is told of: whoever tries it knows.
func (b *Book) Bearer(l approvals.Launch, probe bool) mcp.Bearer {
	return &bearer{book: b, id: l.ID, endpoint: l.URL, permitted: l.Permissions, probe: probe}
}

// Signed returns the sign-in of a connector at an endpoint.
func (b *Book) Signed(ctx context.Context, id plugins.ID, endpoint string) (Entry, bool, error) {
	key := keyOf(id, endpoint)
	entries, err := b.list(ctx)
	if err != nil {
		return Entry{}, false, err
	}
	at := slices.IndexFunc(entries, func(e Entry) bool { return e.Key == key && !e.Ended })
	if at < 0 {
		return Entry{}, false, nil
	}
	return entries[at], true, nil
}

// Logout forgets what a connector was given, wherever it was dialled, and returns how
// many sign-ins that were. It counts no more from then on, also where the keyring
// cannot be asked to forget it: then that is the error, and Logout does it later.
func (b *Book) Logout(ctx context.Context, id plugins.ID) (int, error) {
	entries, err := b.list(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	var errs []error
	for _, e := range entries {
		if e.Connector == id.String() {
			n++
			errs = append(errs, b.forget(ctx, id, e))
		}
	}
	return n, errors.Join(errs...)
}

func (b *Book) forget(ctx context.Context, id plugins.ID, e Entry) error {
	s, err := b.take(ctx, e.Key)
	if err != nil {
		return err
	}
	defer s.give()
	if err := b.config.Record(ctx, audit.OAuthLogout, id, audit.OK, ""); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	s.record, s.unsaved, s.dead, s.challenge = nil, false, false, nil
	e.Ended = true
	if err := b.put(ctx, e); err != nil {
		return err
	}
	if err := b.config.Vault.Forget(ctx, e.Key); err != nil {
		return err
	}
	return b.change(ctx, func(list []Entry) []Entry {
		return slices.DeleteFunc(list, func(other Entry) bool { return other.Key == e.Key })
	})
}

// put writes an entry, in place of one of the same key.
func (b *Book) put(ctx context.Context, e Entry) error {
	return b.change(ctx, func(list []Entry) []Entry {
		return append(slices.DeleteFunc(list, func(other Entry) bool { return other.Key == e.Key }), e)
	})
}

func (b *Book) list(ctx context.Context) ([]Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.listed {
		entries, err := b.config.Index.Logins(ctx)
		if err != nil {
			return nil, fmt.Errorf("cannot list the sign-ins: %w", err)
		}
		b.entries, b.listed = entries, true
	}
	return slices.Clone(b.entries), nil
}

func (b *Book) change(ctx context.Context, change func([]Entry) []Entry) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var now []Entry
	err := b.config.Index.ChangeLogins(ctx, func(list []Entry) []Entry {
		now = change(list)
		return now
	})
	if err != nil {
		return fmt.Errorf("cannot change the list of sign-ins: %w", err)
	}
	b.entries, b.listed = slices.Clone(now), true
	return nil
}

// take waits for a slot's turn.
func (b *Book) take(ctx context.Context, key string) (*slot, error) {
	b.mu.Lock()
	s := b.slots[key]
	if s == nil {
		s = &slot{turn: make(chan struct{}, 1)}
		b.slots[key] = s
	}
	b.mu.Unlock()
	select {
	case s.turn <- struct{}{}:
		return s, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *slot) give() { <-s.turn }

// load reads the record of a slot whose turn is held. Nothing being there is a nil
// record and no error.
func (b *Book) load(ctx context.Context, s *slot, key string) (*record, error) {
	if s.record != nil {
		return s.record, nil
	}
	raw, err := b.config.Vault.Kept(ctx, key)
	if errors.Is(err, secrets.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r record
	if json.Unmarshal(raw, &r) != nil || r.Schema != recordSchema {
		return nil, nil // of another version: as good as none
	}
	s.record = &r
	return s.record, nil
}

// save writes the record of a slot whose turn is held. Where it is too large for the
// keyring it is kept without the access token, which can be had again.
func (b *Book) save(ctx context.Context, s *slot, key string) error {
	raw, err := json.Marshal(s.record)
	if err != nil {
		return fmt.Errorf("cannot encode the sign-in: %w", err)
	}
	err = b.config.Vault.Keep(ctx, key, raw)
	if coded.Of(err) == "secret-too-large" && s.record.Refresh != "" {
		small := *s.record
		small.Access = ""
		if raw, err = json.Marshal(small); err == nil {
			err = b.config.Vault.Keep(ctx, key, raw)
		}
	}
	s.unsaved = err != nil
	return err
}

// keyOf names a sign-in in the vault: the connector and the origin of its endpoint.
func keyOf(id plugins.ID, endpoint string) string {
	sum := sha256.Sum256([]byte(id.String() + "\n" + originOf(endpoint)))
	return "OAUTH-" + strings.ToUpper(hex.EncodeToString(sum[:16]))
}

func originOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
