package app

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/api"
	"sallyport/api/attention"
	"sallyport/internal/notification"
	"sallyport/runtime/host"
)

// desk is a desktop in a test.
type desk struct {
	mu      sync.Mutex
	shown   map[string]string
	clicked func(key string)
}

func (d *desk) Show(_ context.Context, n notification.Notice) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shown[n.Key] = n.Body
	return nil
}

func (d *desk) Withdraw(_ context.Context, key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.shown, key)
}

func (d *desk) has(want ...string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	var got []string
	for key := range d.shown {
		got = append(got, key)
	}
	slices.Sort(got)
	return slices.Equal(got, want)
}

// askers is a backend with decisions that wait.
type askers struct {
	mu      sync.Mutex
	open    []api.Decision
	seq     uint64
	changed chan struct{}
}

func (a *askers) now(ids ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open = nil
	for _, id := range ids {
		a.open = append(a.open, api.Decision{ID: id, Subject: id + "/main"})
	}
	a.seq++
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *askers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	seq, changed, open := a.seq, a.changed, a.open
	a.mu.Unlock()
	if r.URL.Path == "/v1/decisions" {
		_ = json.NewEncoder(w).Encode(api.DecisionList{Decisions: open})
		return
	}
	if r.FormValue("wait") != "" && r.FormValue("after") == json.Number(jsonOf(seq)).String() {
		select {
		case <-changed:
			a.mu.Lock()
			seq = a.seq
			a.mu.Unlock()
		case <-r.Context().Done():
			return
		}
	}
	_ = json.NewEncoder(w).Encode(api.EventPage{Events: []host.Event{{Seq: seq}}, Last: seq, Complete: true})
}

func jsonOf(n uint64) string {
	raw, _ := json.Marshal(n)
	return string(raw)
}

func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in a minute: %s", what)
		}
	}
}

// TestNoticesAreForWhoDoesNotLook: what waits is told, unless the person looks at the
// window; a click leads there; another backend is followed as the first was.
func TestNoticesAreForWhoDoesNotLook(t *testing.T) {
	screen := &desk{shown: map[string]string{}}
	var focused atomic.Bool
	led := make(chan string, 4)
	h := newHosting(Config{})
	h.pause = time.Millisecond
	n := &notices{hosting: h, focused: focused.Load, show: func(review string) { led <- review },
		open: func(_ context.Context, cfg notification.Config) (attention.Screen, func(), error) {
			screen.clicked = cfg.Clicked
			return screen, func() {}, nil
		}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); n.run(ctx) }()
	defer func() { stop(); <-ended }()

	first := &askers{changed: make(chan struct{})}
	alive, end := context.WithCancel(ctx)
	h.with(&backend{mode: modeOwn, handler: first, context: alive})
	first.now("d-1")
	soon(t, "a decision is told", func() bool { return screen.has("d-1") })
	screen.clicked("d-1")
	if got := <-led; got != "d-1" {
		t.Errorf("a click leads to %q", got)
	}
	focused.Store(true)
	first.now("d-1", "d-2")
	first.now("d-2")
	soon(t, "what was answered is taken back, and what is seen is not told", func() bool { return screen.has() })
	focused.Store(false)
	first.now("d-2", "d-3")
	soon(t, "only what nobody saw is told", func() bool { return screen.has("d-3") })

	second := &askers{changed: make(chan struct{})}
	h.with(&backend{mode: modeAttached, handler: second, context: ctx})
	end()
	second.now("d-9")
	soon(t, "the next backend's is told", func() bool { return screen.has("d-9") })
}

func TestLinksThatLeadSomewhere(t *testing.T) {
	for link, want := range map[string]string{
		"sallyport://review/d-abcdefghij234567":     "#/review/d-abcdefghij234567",
		"sallyport://review/d-abcdefghij234567/":    "#/review/d-abcdefghij234567",
		"sallyport://review":                        "#/review",
		"sallyport://review/d-abc":                  "",
		"sallyport://review/d-abcdefghij234567?x=1": "",
		"sallyport://open":                          "",
		"https://review/d-abcdefghij234567":         "",
	} {
		if got, ok := page(link); got != want || ok != (want != "") {
			t.Errorf("%s leads to %q, %v", link, got, ok)
		}
	}
}
