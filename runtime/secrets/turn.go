package secrets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sallyport/internal/coded"
)

// mostCalls is how many calls to the keyring run at once, those that never came
// back included. When all of them are such, the next is refused without waiting.
const mostCalls = 8

// turn is one name's. Work on one name goes one after another; a call of it that
// does not come back keeps the turn, so that a name can hang one call only and
// the next who asks hears of it at once.
type turn struct {
	name    string
	left    bool          // its last call still runs and nobody waits for it
	overdue bool          // that, and its time is over
	changed chan struct{} // closed when it ended or became overdue
}

// begin waits for name's turn, at most as long as a call may take.
func (s *Store) begin(ctx context.Context, name string) (*turn, error) {
	limit, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	for {
		s.mu.Lock()
		held := s.turns[name]
		if held == nil {
			t := &turn{name: name, changed: make(chan struct{})}
			s.turns[name] = t
			s.mu.Unlock()
			return t, nil
		}
		overdue, changed := held.overdue, held.changed
		s.mu.Unlock()
		if overdue {
			return nil, s.explained(notAnswering())
		}
		select {
		case <-changed:
		case <-limit.Done():
			return nil, s.gaveUp(ctx)
		}
	}
}

// end gives the turn back, unless a call of it still runs: then that does.
func (s *Store) end(t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.left {
		s.free(t)
	}
}

func (s *Store) free(t *turn) {
	delete(s.turns, t.name)
	if t.overdue {
		s.overdue--
	} else {
		close(t.changed)
	}
}

// leave notes that nobody waits for the call of t any more. It is overdue from
// deadline on, which is later than now when its caller gave up early.
func (s *Store) leave(t *turn, deadline time.Time) {
	t.left = true
	if wait := time.Until(deadline); wait > 0 {
		time.AfterFunc(wait, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.late(t)
		})
		return
	}
	s.late(t)
}

func (s *Store) late(t *turn) {
	if s.turns[t.name] != t || t.overdue {
		return
	}
	t.overdue = true
	s.overdue++
	close(t.changed)
	s.log.Warn("a call to the keyring did not come back in time", "secret", t.name, "keyring", s.backend.Name())
}

// slot waits for one of the calls that may run at once.
func (s *Store) slot(ctx context.Context) bool {
	select {
	case s.slots <- struct{}{}:
		return true
	default:
	}
	s.mu.Lock()
	full := s.overdue >= mostCalls
	s.mu.Unlock()
	if full {
		return false
	}
	select {
	case s.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// answer is what a call to the backend came back with.
type answer[T any] struct {
	value T
	err   error
}

// bounded makes one call to the backend in a goroutine of its own and waits for
// it as long as a call may take. What comes later is thrown away.
func bounded[T any](ctx context.Context, s *Store, t *turn, call func(context.Context) (T, error)) (T, error) {
	deadline := time.Now().Add(s.limit)
	limit, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	// A backend that obeys its context knows better why it could not go on, so it
	// hears a little earlier.
	early, cancelEarly := context.WithDeadline(limit, deadline.Add(-s.limit/10))
	defer cancelEarly()
	var none T
	if !s.slot(limit) {
		return none, s.noted(t.name, s.gaveUp(ctx))
	}
	answered := make(chan answer[T], 1)
	go func() {
		value, err := call(early)
		s.mu.Lock()
		defer s.mu.Unlock()
		<-s.slots
		if t.left {
			s.free(t)
		}
		answered <- answer[T]{value, err}
	}()
	select {
	case a := <-answered:
		return a.value, s.noted(t.name, s.outcome(ctx, early, a.err))
	case <-limit.Done():
	}
	s.mu.Lock()
	select {
	case a := <-answered: // at the last moment
		s.mu.Unlock()
		return a.value, s.noted(t.name, s.outcome(ctx, early, a.err))
	default:
	}
	s.leave(t, deadline)
	s.mu.Unlock()
	return none, s.noted(t.name, s.gaveUp(ctx))
}

// outcome names the error of a call that came back. A backend that obeys the
// context says no more than that its time was over.
func (s *Store) outcome(ctx, early context.Context, err error) error {
	if err != nil && early.Err() != nil && coded.Of(err) == "" && !errors.Is(err, ErrNotFound) {
		return s.gaveUp(ctx)
	}
	return s.explained(err)
}

// gaveUp says why a call was not waited for: the caller went, or its time is over.
func (s *Store) gaveUp(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("cannot wait for the keyring: %w", err)
	}
	return s.explained(notAnswering())
}
