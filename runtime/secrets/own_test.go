package secrets

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnEntryOfSallyportsOwnIsNobodysSecret(t *testing.T) {
	f, names := newFake(), newList()
	s := Open(Config{Backend: f, Names: names})
	own := s.Own("seal-key")
	if _, err := own.Get(t.Context()); !errors.Is(err, ErrNotFound) {
		t.Errorf("before it is set: %v", err)
	}
	if err := own.Set(t.Context(), []byte("a\x00b\n")); err != nil {
		t.Fatal(err)
	}
	if got, err := own.Get(t.Context()); err != nil || string(got) != "a\x00b\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if list, err := s.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("the list is %v, %v", list, err)
	}
	for _, name := range []string{":seal-key", "seal-key"} {
		if _, err := s.Secret(t.Context(), name); err == nil {
			t.Errorf("%q can be read as a secret", name)
		}
	}
	wantCode(t, s.Set(t.Context(), ":seal-key", []byte("x")), "secret-name-invalid")
	for range 2 {
		if err := own.Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := own.Get(t.Context()); !errors.Is(err, ErrNotFound) {
		t.Errorf("after it is deleted: %v", err)
	}
}

func TestAnEntryOfSallyportsOwnIsKeptWholeOrNotAtAll(t *testing.T) {
	f := newFake()
	own := Open(Config{Backend: f, Names: newList()}).Own("seal-key")
	if err := own.Set(t.Context(), []byte("old")); err != nil {
		t.Fatal(err)
	}
	f.changed = func(value []byte) []byte {
		if string(value) == "old" {
			return value
		}
		return value[:1]
	}
	wantCode(t, own.Set(t.Context(), []byte("new")), "secret-not-storable")
	if got, err := own.Get(t.Context()); err != nil || string(got) != "old" {
		t.Errorf("what was there is %q, %v", got, err)
	}
	f.limit = plainLimit(2)
	wantCode(t, own.Set(t.Context(), []byte("new")), "secret-too-large")
}

// Health and lists say what a connector would meet, and not that Sallyport itself found
// no keyring for its own entries.
func TestWhatGoesWrongWithSallyportsOwnIsNotInTheState(t *testing.T) {
	f := newFake()
	f.before = func(context.Context, string, string) error { return noProvider(nil) }
	s := Open(Config{Backend: f, Names: newList("A")})
	_, err := s.Own("seal-key").Get(t.Context())
	wantCode(t, err, "keyring-no-provider")
	wantCode(t, s.Own("seal-key").Set(t.Context(), nil), "keyring-no-provider")
	wantCode(t, s.Ready(t.Context()), "keyring-no-provider")
	if probed := s.Probe(t.Context()); probed.Status != "no-provider" || probed.Next == "" {
		t.Errorf("the probe says %+v", probed)
	}
	if state := s.State(t.Context()); state.Status != NotAsked {
		t.Errorf("the state is %+v", state)
	}
	_, err = s.Secret(t.Context(), "A")
	wantCode(t, err, "keyring-no-provider")
	if state := s.State(t.Context()); state.Status != "no-provider" {
		t.Errorf("the state is %+v", state)
	}
	f.before = nil
	if probed := s.Probe(t.Context()); probed.Status != OK || s.State(t.Context()).Status != OK {
		t.Errorf("the probe says %+v, the state is %+v", probed, s.State(t.Context()))
	}
}

func TestAProbeThatHangsEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		release := make(chan struct{})
		defer close(release)
		f.before = func(context.Context, string, string) error { <-release; return nil }
		s := Open(Config{Backend: f, Names: newList()})
		begun := time.Now()
		wantCode(t, s.Ready(t.Context()), "keyring-not-answering")
		if probed := s.Probe(t.Context()); probed.Code != "keyring-not-answering" {
			t.Errorf("the probe says %+v", probed)
		}
		if waited := time.Since(begun); waited != 5*time.Second {
			t.Errorf("they waited %s", waited)
		}
	})
}
