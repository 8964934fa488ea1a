package host_test

import (
	"testing"

	"sallyport/runtime/approvals"
	"sallyport/runtime/host"
)

// Neither the end of a subscription nor a log level is worth a start.
func TestASettingStartsNoServer(t *testing.T) {
	r := newRig(t)
	id := r.install("fake", "polite")
	h := r.open()
	defer r.close(h)
	r.approve(h, id, "go")
	if _, err := h.Gate.AddClient(t.Context(), "agent", approvals.Scope{All: true}, operator); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		method, params string
		running        int
	}{
		{"logging/setLevel", `{"level":"debug"}`, 0},
		{"resources/unsubscribe", `{"uri":"fake://one"}`, 0},
		{"resources/subscribe", `{"uri":"fake://one"}`, 1},
		{"resources/unsubscribe", `{"uri":"fake://one"}`, 1},
	} {
		if _, err := host.BackendOf(h).Request(t.Context(), "agent", id, row.method, []byte(row.params), nil); err != nil {
			t.Fatalf("%s: %v", row.method, err)
		}
		if n := len(h.Pool.Running()); n != row.running {
			t.Errorf("%d run after %s, want %d", n, row.method, row.running)
		}
	}
	if _, err := host.BackendOf(h).Request(t.Context(), "nobody", id, "resources/unsubscribe", []byte(`{"uri":"fake://one"}`), nil); err == nil {
		t.Error("a client that does not exist was served")
	}
}
