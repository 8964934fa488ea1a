package host

import (
	"context"
	"sync"
	"time"
)

// Event tells a watcher that something changed, not what it is now: whoever
// cares asks again. It holds identifiers only.
type Event struct {
	Seq  uint64    `json:"seq"`
	At   time.Time `json:"at"`
	Kind string    `json:"kind"`           // "decision", "connector", "plugins", "health", "clients", "session", "console"
	ID   string    `json:"id,omitempty"`   // of the decision, connector, client
	Code string    `json:"code,omitempty"` // why, where there is a reason code
}

// keptEvents bounds what a late watcher can still read; one that is further
// behind is told to start over.
const keptEvents = 1024

// Events is a bounded log that any number of watchers read at their own pace.
type Events struct {
	mu   sync.Mutex
	kept []Event
	last uint64
	more chan struct{}
	now  func() time.Time
}

func newEvents(now func() time.Time) *Events {
	return &Events{more: make(chan struct{}), now: now}
}

func (e *Events) add(kind, id, code string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last++
	e.kept = append(e.kept, Event{Seq: e.last, At: e.now().UTC(), Kind: kind, ID: id, Code: code})
	if len(e.kept) > keptEvents {
		e.kept = append(e.kept[:0:0], e.kept[len(e.kept)-keptEvents:]...)
	}
	close(e.more)
	e.more = make(chan struct{})
}

// Last returns the newest sequence number, 0 before the first event.
func (e *Events) Last() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last
}

// After returns the events with a number above after. complete is false when
// some between were dropped, or after comes from another run: start over.
func (e *Events) After(after uint64) (events []Event, complete bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.after(after)
}

func (e *Events) after(after uint64) ([]Event, bool) {
	oldest := e.last - uint64(len(e.kept))
	switch {
	case after > e.last:
		return nil, false
	case after < oldest:
		return append([]Event(nil), e.kept...), false
	}
	return append([]Event(nil), e.kept[after-oldest:]...), true
}

// Wait is After, but waits until there is something to tell or ctx ends.
func (e *Events) Wait(ctx context.Context, after uint64) ([]Event, bool) {
	for {
		e.mu.Lock()
		events, complete := e.after(after)
		more := e.more
		e.mu.Unlock()
		if len(events) > 0 || !complete {
			return events, complete
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, true
		}
	}
}
