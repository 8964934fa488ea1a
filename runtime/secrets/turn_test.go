package secrets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// hanging returns a fake whose calls for names that begin with "HANG" end only
// when the returned function is called, whatever their context says.
func hanging() (*fake, func()) {
	f := newFake()
	release := make(chan struct{})
	f.before = func(_ context.Context, _, key string) error {
		if len(key) >= 4 && key[:4] == "HANG" {
			<-release
		}
		return nil
	}
	return f, sync.OnceFunc(func() { close(release) })
}

func TestHungCallBlocksNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, release := hanging()
		defer release()
		s := Open(Config{Backend: f, Names: newList("HANG", "GOOD")})
		f.values["GOOD"] = []byte("x")
		began := time.Now()
		hung := make(chan error, 1)
		go func() { _, err := s.Secret(t.Context(), "HANG"); hung <- err }()
		synctest.Wait()
		for range 3 {
			if got, err := s.Secret(t.Context(), "GOOD"); err != nil || got != "x" {
				t.Errorf("another name: %q, %v", got, err)
			}
		}
		if _, err := s.List(t.Context()); err != nil {
			t.Error(err)
		}
		if state := s.State(t.Context()); state.Status != OK {
			t.Errorf("state is %+v", state)
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("they waited %v", waited)
		}
		wantCode(t, <-hung, "keyring-not-answering")
		if waited := time.Since(began); waited != 5*time.Second {
			t.Errorf("the hung one waited %v", waited)
		}
		if state := s.State(t.Context()); state.Status != "not-answering" || state.Next == "" {
			t.Errorf("state is %+v", state)
		}
		// The name that hangs is refused at once, and takes no second call.
		_, err := s.Secret(t.Context(), "HANG")
		wantCode(t, err, "keyring-not-answering")
		if waited := time.Since(began); waited != 5*time.Second || len(slices.DeleteFunc(f.made(), func(c string) bool { return c != "get HANG" })) != 1 {
			t.Errorf("after %v the calls are %v", waited, f.made())
		}
		release()
		synctest.Wait()
		_, err = s.Secret(t.Context(), "HANG")
		wantCode(t, err, "secret-unknown")
		if got, err := s.Secret(t.Context(), "GOOD"); err != nil || got != "x" {
			t.Errorf("afterwards: %q, %v", got, err)
		}
	})
}

func TestCallsThatHangAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, release := hanging()
		defer release()
		names := newList("GOOD")
		for i := range 3 * mostCalls {
			names.names[fmt.Sprintf("HANG%d", i)] = Name{Name: fmt.Sprintf("HANG%d", i)}
		}
		s := Open(Config{Backend: f, Names: names})
		var all sync.WaitGroup
		for i := range 3 * mostCalls {
			all.Go(func() {
				_, err := s.Secret(t.Context(), fmt.Sprintf("HANG%d", i))
				wantCode(t, err, "keyring-not-answering")
			})
		}
		all.Wait()
		if len(f.made()) != mostCalls {
			t.Errorf("%d calls run", len(f.made()))
		}
		began := time.Now()
		_, err := s.Secret(t.Context(), "GOOD")
		wantCode(t, err, "keyring-not-answering")
		if waited := time.Since(began); waited != 0 {
			t.Errorf("with no call left, it waited %v", waited)
		}
		release()
		synctest.Wait()
		if _, err := s.Secret(t.Context(), "GOOD"); err == nil || time.Since(began) != 0 {
			t.Errorf("afterwards: %v", err)
		}
		if s.overdue != 0 || len(s.turns) != 0 || len(s.slots) != 0 {
			t.Errorf("left: %d overdue, %d turns, %d slots", s.overdue, len(s.turns), len(s.slots))
		}
	})
}

func TestCallerWhoGoesEarlySaysNothingAboutTheKeyring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.values["SLOW"] = []byte("x")
		f.before = func(context.Context, string, string) error { time.Sleep(3 * time.Second); return nil }
		s := Open(Config{Backend: f, Names: newList("SLOW")})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Secret(ctx, "SLOW")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
		if state := s.State(t.Context()); state.Status != NotAsked {
			t.Errorf("state is %+v", state)
		}
		// The next waits for the call that still runs and then makes its own.
		if got, err := s.Secret(t.Context(), "SLOW"); err != nil || got != "x" {
			t.Errorf("got %q, %v", got, err)
		}
		time.Sleep(10 * time.Second)
		if s.overdue != 0 {
			t.Errorf("%d calls count as overdue", s.overdue)
		}
	})
}

func TestValueThatIsBeingSetWhenTheCallerGoesIsSetWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.before = func(_ context.Context, act, _ string) error {
			if act == "set" {
				time.Sleep(2 * time.Second)
			}
			return nil
		}
		s := Open(Config{Backend: f, Names: newList()})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Set(ctx, "TOKEN", []byte("x")); err != nil {
			t.Error(err)
		}
		if got, err := s.Secret(t.Context(), "TOKEN"); err != nil || got != "x" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

func TestOpenTouchesNothing(t *testing.T) {
	f := newFake()
	s := Open(Config{Backend: f, Names: newList()})
	if state := s.State(t.Context()); state.Status != NotAsked || state.Backend != "the fake" {
		t.Errorf("state is %+v", state)
	}
	if len(f.made()) != 0 {
		t.Errorf("calls: %v", f.made())
	}
}
