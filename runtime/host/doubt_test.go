package host_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/host"
	"sallyport/runtime/plugins"
	"sallyport/runtime/secrets"
)

// keyring is one in memory whose answers can be held back, whatever the context says.
type keyring struct {
	mu     sync.Mutex
	values map[string]string
	stop   string        // the act that is done and not answered: "set", "delete", "all" for every one
	held   chan struct{} // closed to answer
}

func newKeyring() *keyring { return &keyring{values: map[string]string{}} }

func (k *keyring) hold(act string) (release func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	held := make(chan struct{})
	k.stop, k.held = act, held
	return sync.OnceFunc(func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.stop = ""
		close(held)
	})
}

func (k *keyring) act(act string, do func()) {
	k.mu.Lock()
	do()
	stops, held := k.stop == act || k.stop == "all", k.held
	if stops {
		k.stop = "all" // one that hangs answers nothing else either
	}
	k.mu.Unlock()
	if stops {
		<-held
	}
}

func (k *keyring) Name() string { return "a keyring" }
func (k *keyring) Close() error { return nil }
func (k *keyring) Limit() secrets.Limit {
	return secrets.Limit{Most: 1 << 16, Unit: "bytes", Size: func(_ string, value []byte) int { return len(value) }}
}

func (k *keyring) Check(context.Context) error {
	k.act("check", func() {})
	return nil
}

func (k *keyring) Set(_ context.Context, key string, value []byte) error {
	k.act("set", func() { k.values[key] = string(value) })
	return nil
}

func (k *keyring) Get(_ context.Context, key string) (value []byte, err error) {
	k.act("get", func() {
		kept, ok := k.values[key]
		if value = []byte(kept); !ok {
			err = secrets.ErrNotFound
		}
	})
	return value, err
}

func (k *keyring) Delete(_ context.Context, key string) (err error) {
	k.act("delete", func() {
		if _, ok := k.values[key]; !ok {
			err = secrets.ErrNotFound
		}
		delete(k.values, key)
	})
	return err
}

// tokenOf is what the server was given as TOKEN.
func tokenOf(t *testing.T, h *host.Host, id plugins.ID) (string, error) {
	t.Helper()
	raw, err := h.Call(t.Context(), approvals.ViaCLI, id, "env", []byte(`{"name":"env","arguments":{}}`))
	if err != nil {
		return "", err
	}
	var result struct {
		StructuredContent struct{ Env []string }
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		t.Fatal(err)
	}
	for _, pair := range result.StructuredContent.Env {
		if value, ok := strings.CutPrefix(pair, "TOKEN="); ok {
			return value, nil
		}
	}
	return "", nil
}

func becomes(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// A keyring that took a new value and did not say so: what has the old one is stopped
// once the keyring answers again.
func TestAChangeThatTheKeyringDidNotAnswerIsFollowed(t *testing.T) {
	t.Parallel()
	r, ring := newRig(t), newKeyring()
	r.keyring = ring
	id := r.install("fake", "polite")
	if err := os.MkdirAll(r.places.Config, 0o700); err != nil {
		t.Fatal(err)
	}
	r.write(filepath.Join(r.places.Config, "config.json"), `{"connectors":{"fake/main":{"env":{"TOKEN":"secret:NOTES"}}}}`)
	h := r.open()
	defer r.close(h)
	if err := h.SetSecret(t.Context(), "NOTES", []byte("old"), operator); err != nil {
		t.Fatal(err)
	}
	r.approve(h, id, "env")
	if got, err := tokenOf(t, h, id); err != nil || got != "old" {
		t.Fatalf("the server was given %q, %v", got, err)
	}

	release := ring.hold("set")
	defer release()
	if err := h.SetSecret(t.Context(), "NOTES", []byte("new"), operator); coded.Of(err) != "keyring-not-answering" {
		t.Fatalf("got %v", err)
	}
	if got, err := tokenOf(t, h, id); err != nil || got != "old" {
		t.Errorf("meanwhile it works on with %q, %v", got, err)
	}
	release()
	becomes(t, "the server has the new value", func() bool {
		got, err := tokenOf(t, h, id)
		return err == nil && got == "new"
	})

	release = ring.hold("delete")
	defer release()
	if err := h.DeleteSecret(t.Context(), "NOTES", operator); coded.Of(err) != "keyring-not-answering" {
		t.Fatalf("got %v", err)
	}
	release()
	becomes(t, "the deleted name is off the list and nothing runs with its value", func() bool {
		names, err := h.Secrets.List(t.Context())
		return err == nil && len(names) == 0 && len(h.RunningIDs()) == 0
	})
	if _, err := tokenOf(t, h, id); coded.Of(err) != "secret-unknown" {
		t.Errorf("a call then: %v", err)
	}
}

// A host that is closed in doubt leaves nothing behind.
func TestACloseInDoubt(t *testing.T) {
	t.Parallel()
	r, ring := newRig(t), newKeyring()
	r.keyring = ring
	h := r.open()
	release := ring.hold("set")
	defer release()
	if err := h.SetSecret(t.Context(), "NOTES", []byte("new"), operator); coded.Of(err) != "keyring-not-answering" {
		t.Errorf("got %v", err)
	}
	r.close(h)
}
