package secrets

import (
	"errors"
	"strings"
	"testing"

	"sallyport/internal/coded"
)

func TestWhatSallyportKeepsItselfIsNobodysSecret(t *testing.T) {
	backend, names := newFake(), newList()
	s := Open(Config{Backend: backend, Names: names})
	own := s.Internal()
	if _, err := own.Kept(t.Context(), "OAUTH-1"); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	if err := own.Keep(t.Context(), "OAUTH-1", []byte("hush")); err != nil {
		t.Fatal(err)
	}
	if err := own.Keep(t.Context(), "OAUTH-1", []byte("hush again")); err != nil {
		t.Fatal(err)
	}
	if value, err := own.Kept(t.Context(), "OAUTH-1"); err != nil || string(value) != "hush again" {
		t.Fatalf("%q, %v", value, err)
	}
	if list, err := s.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("it is listed: %v, %v", list, err)
	}
	for _, name := range []string{"OAUTH-1", "SALLYPORT:OAUTH-1", "SALLYPORT"} {
		if value, err := s.Secret(t.Context(), name); err == nil {
			t.Errorf("secret:%s reads %q", name, value)
		}
		// A secret of the same name is another entry.
		if err := s.Set(t.Context(), name, []byte("mine")); err != nil && !strings.Contains(name, ":") {
			t.Error(err)
		}
	}
	if value, err := own.Kept(t.Context(), "OAUTH-1"); err != nil || string(value) != "hush again" {
		t.Errorf("a secret took its place: %q, %v", value, err)
	}
	for range 2 {
		if err := own.Forget(t.Context(), "OAUTH-1"); err != nil {
			t.Error(err)
		}
	}
	if _, err := own.Kept(t.Context(), "OAUTH-1"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if value, err := s.Secret(t.Context(), "OAUTH-1"); err != nil || value != "mine" {
		t.Errorf("%q, %v", value, err)
	}
}

func TestWhatSallyportKeepsItselfIsBoundedToo(t *testing.T) {
	backend := newFake()
	backend.limit = windowsLimit()
	own := Open(Config{Backend: backend, Names: newList()}).Internal()
	if err := own.Keep(t.Context(), "OAUTH-1", make([]byte, 2561)); coded.Of(err) != "secret-too-large" || len(backend.made()) != 0 {
		t.Fatal(err, backend.made())
	}
	for _, key := range []string{"", "a b", "a:b"} {
		if err := own.Keep(t.Context(), key, nil); coded.Of(err) != "secret-name-invalid" {
			t.Errorf("%q: %v", key, err)
		}
	}
}
