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
// A fault that it finds is not in State: nobody needed the keyring yet.
func (s *Store) Probe(ctx context.Context) State {
	err := s.Ready(ctx)
	if err == nil {
		_ = s.noted("", nil)
	}
	if state, told := s.stateOf(err); told {
		return state
	}
	return s.State(ctx)
}

// noted keeps the outcome of a call for State and returns it, but for entries of
// Sallyport's own.
func (s *Store) noted(name string, err error) error {
	state, told := s.stateOf(err)
	if !told || strings.HasPrefix(name, ownMark) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
	return err
}

// stateOf is what the outcome of a call says about the keyring. A caller that went
// away says nothing.
func (s *Store) stateOf(err error) (state State, told bool) {
	var e *coded.Error
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.As(err, &e) {
		return State{}, false
	}
	state = State{Status: OK, Backend: s.backend.Name(), At: s.now()}
	if e != nil {
		state.Status = strings.TrimPrefix(e.Code, "keyring-")
		state.Code, state.Sentence, state.Next = e.Code, e.Error(), e.Next
	}
	return state, true
}
