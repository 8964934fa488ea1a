package secrets

import (
	"context"
	"errors"
	"strings"
	"time"

	"sallyport/internal/coded"
)

// The words of State.Status. Those for a failure are its code without
// "keyring-" (no-bus, no-provider, no-collection, locked, denied, not-answering,
// failed) or, of the encrypted file, the whole code.
const (
	// NotAsked: nothing has needed the keyring yet.
	NotAsked = "not-asked"
	// OK: the last call worked.
	OK = "ok"
)

// State is how the last call to the keyring went.
type State struct {
	Status  string
	Backend string // as the operator knows it
	// Code, Sentence and Next are those of the failure; empty when there is none.
	Code, Sentence, Next string
	// At is when it was noted; zero for NotAsked.
	At time.Time
}

// State returns how the last call went. It makes none itself and does not wait:
// health and listings may ask it.
func (s *Store) State(context.Context) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Probe asks the keyring whether it would work, within the time-out, without
// asking a person and without writing. It is for doctor and for whoever has time.
func (s *Store) Probe(ctx context.Context) State {
	t, err := s.begin(ctx, "")
	if err != nil {
		return s.State(ctx)
	}
	defer s.end(t)
	// The outcome is in the state.
	_, _ = bounded(ctx, s, t, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.backend.Check(ctx)
	})
	return s.State(ctx)
}

// noted keeps the outcome of a call for State and returns it. A caller that went
// away says nothing about the keyring.
func (s *Store) noted(err error) error {
	var e *coded.Error
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.As(err, &e) {
		return err
	}
	state := State{Status: OK, Backend: s.backend.Name(), At: s.now()}
	if e != nil {
		state.Status = strings.TrimPrefix(e.Code, "keyring-")
		state.Code, state.Sentence, state.Next = e.Code, e.Error(), e.Next
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
	return err
}
