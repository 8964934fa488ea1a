package app

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/coded"
)

// script is a backend's finder that does as it is told.
type script struct {
	mu      sync.Mutex
	running chan struct{} // closed when the one that runs ends; nil: none runs
	another bool          // one runs at the beginning
	started int           // how often one was started here
	stopped int
	fails   error
}

func (s *script) open(_ context.Context, may bool) (*backend, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stop := func(context.Context) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stopped++
		return nil
	}
	switch {
	case s.running != nil:
		return &backend{mode: modeAttached, handler: http.NotFoundHandler(), context: context.Background(), gone: s.running, stop: stop}, nil
	case s.fails != nil:
		return nil, s.fails
	case may:
		s.started++
		return &backend{mode: modeOwn, handler: http.NotFoundHandler(), context: context.Background(), stop: stop}, nil
	}
	return nil, coded.New("not-running", "no sidecar is running")
}

// ends ends the one that runs; none runs then.
func (s *script) ends() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.running)
	s.running = nil
}

// now changes what it will do.
func (s *script) now(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// starts is how often one was started here.
func (s *script) starts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started
}

// rig runs a hosting by a script in a bubble.
func rig(t *testing.T, s *script, test func(h *hosting, mode func() string)) {
	synctest.Test(t, func(t *testing.T) {
		if s.another {
			s.running = make(chan struct{})
		}
		h := newHosting(Config{})
		h.open = s.open
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- h.run(ctx) }()
		test(h, func() string {
			time.Sleep(2 * h.pause)
			synctest.Wait()
			mode, _ := h.look()
			return mode
		})
		stop()
		if err := <-done; err != nil {
			t.Errorf("it ends with %v", err)
		}
	})
}

func TestAWindowHasItsOwnHostWhereNoneRuns(t *testing.T) {
	s := &script{}
	rig(t, s, func(_ *hosting, mode func() string) {
		if got := mode(); got != modeOwn || s.starts() != 1 {
			t.Errorf("it is %s, %d were started", got, s.starts())
		}
	})
	if s.stopped != 1 {
		t.Errorf("its host was stopped %d times", s.stopped)
	}
}

func TestAWindowStartsNothingInThePlaceOfAnother(t *testing.T) {
	s := &script{another: true}
	rig(t, s, func(h *hosting, mode func() string) {
		if got := mode(); got != modeAttached {
			t.Fatalf("it is %s", got)
		}
		s.ends()
		for range 100 {
			if got := mode(); got != modeLost || s.starts() != 0 {
				t.Fatalf("after the other has ended it is %s, %d were started", got, s.starts())
			}
		}
		if _, err := h.current(t.Context()); coded.Of(err) != "sidecar-ended" {
			t.Errorf("the page is told %v", err)
		}
		s.now(func() { s.running = make(chan struct{}) })
		if got := mode(); got != modeAttached {
			t.Errorf("its successor is there and it is %s", got)
		}
		s.ends()
		if got := mode(); got != modeLost {
			t.Errorf("it is %s", got)
		}
		h.start()
		if got := mode(); got != modeOwn || s.starts() != 1 {
			t.Errorf("the person said start: it is %s, %d were started", got, s.starts())
		}
	})
}

func TestAHostThatCannotBeOpenedIsTriedAgainWhenAPersonSaysSo(t *testing.T) {
	s := &script{fails: coded.New("folder-unusable", "the data folder cannot be made or is not yours")}
	rig(t, s, func(h *hosting, mode func() string) {
		if got := mode(); got != modeFailed {
			t.Fatalf("it is %s", got)
		}
		if _, err := h.current(t.Context()); coded.Of(err) != "folder-unusable" {
			t.Errorf("the page is told %v", err)
		}
		s.now(func() { s.fails = nil })
		if got := mode(); got != modeFailed || s.starts() != 0 {
			t.Errorf("by itself it is %s", got)
		}
		h.start()
		if got := mode(); got != modeOwn {
			t.Errorf("it is %s", got)
		}
	})
}

func TestAQuestionWaitsForTheStartAndNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHosting(Config{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := h.current(ctx); coded.Of(err) != "starting" {
			t.Errorf("it says %v", err)
		}
		go func() {
			time.Sleep(time.Minute)
			h.set(&backend{mode: modeOwn}, modeOwn, nil)
		}()
		if now, err := h.current(t.Context()); err != nil || now.mode != modeOwn {
			t.Errorf("%+v %v", now, err)
		}
		h.set(nil, modeFailed, errors.New("a fault of ours"))
	})
}
