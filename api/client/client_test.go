package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/api/sidecar"
	"sallyport/internal/coded"
	"sallyport/runtime/health"
	"sallyport/runtime/host"
)

func start(t *testing.T) *sidecar.Sidecar {
	t.Helper()
	t.Setenv("HOME", t.TempDir()) // no plugins of the person who runs the tests
	s, err := sidecar.Start(t.Context(), sidecar.Config{Places: host.PlacesIn(t.TempDir()), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestNoProxySeesALoopbackRequest is case C65: whatever the environment says.
func TestNoProxySeesALoopbackRequest(t *testing.T) {
	var seen atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) }))
	defer proxy.Close()
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "")
	s := start(t)
	c := client.New(s.Discovery.Port, s.Host.HealthKey, s.Host.Tokens.Operator, "cli")
	defer c.Close()
	var status api.Status
	if err := c.Get(t.Context(), "/v1/status", nil, &status); err != nil || status.Version != "test" {
		t.Errorf("status: %+v, %v", status, err)
	}
	found := health.Ask(t.Context(), health.Question{StateDir: s.Host.Places.State})
	if found.Outcome != health.Healthy {
		t.Errorf("health: %+v", found)
	}
	if n := seen.Load(); n != 0 {
		t.Errorf("the proxy saw %d requests", n)
	}
	if !strings.HasPrefix(s.Discovery.URL, "http://127.0.0.1:") {
		t.Errorf("the address that is saved is %s", s.Discovery.URL)
	}
}

// TestATokenGoesOnlyToWhoProvesItself: another program on our port reads the
// question for a proof and never a token (spec/local-api.md 4).
func TestATokenGoesOnlyToWhoProvesItself(t *testing.T) {
	const token = "the-operators-token"
	for name, answer := range map[string]http.HandlerFunc{
		"one that answers 200 to everything": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"ok":true,"service":"sallyport","version":"test","instance":"x","ts":1,"proof":"00"}`)
		},
		"one that redirects": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		},
		"one that is not found": http.NotFound,
		"one that says nothing": func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			var got recorder
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { got.take(r); answer(w, r) }))
			defer server.Close()
			port := server.Listener.Addr().(*net.TCPAddr).Port
			c := client.New(port, bytes.Repeat([]byte{1}, 32), token, "cli")
			defer c.Close()
			err := c.Post(t.Context(), "/v1/plugins/scan", nil, nil)
			if coded.Of(err) == "" {
				t.Errorf("the error is %v", err)
			}
			if text := got.text(); strings.Contains(text, token) || strings.Contains(text, "/v1/") {
				t.Errorf("it was told %s", text)
			}
		})
	}
}

type recorder struct {
	mu  sync.Mutex
	all strings.Builder
}

func (r *recorder) take(q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q.Write(&r.all)
}

func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.String()
}

// TestWireAndMemoryAreOne: a refusal, an export and one that is cut off are the
// same with and without a socket.
func TestWireAndMemoryAreOne(t *testing.T) {
	s := start(t)
	handler := api.Handler(api.Config{Host: s.Host, Tokens: api.Tokens{Operator: s.Host.Tokens.Operator}})
	for name, c := range map[string]*client.Client{
		"wire":   client.New(s.Discovery.Port, s.Host.HealthKey, s.Host.Tokens.Operator, "cli"),
		"memory": client.InMemory(handler, s.Host.Tokens.Operator, "cli"),
	} {
		t.Run(name, func(t *testing.T) {
			defer c.Close()
			err := c.Get(t.Context(), "/v1/plugins/absent/main", nil, nil)
			var refused *coded.Error
			if !errors.As(err, &refused) || refused.Code != "plugin-unknown" || refused.Next == "" {
				t.Errorf("a refusal is %v", err)
			}
			if err := c.Get(t.Context(), "/v1/nowhere", nil, nil); coded.Of(err) != "not-found" {
				t.Errorf("nowhere is %v", err)
			}
			var out bytes.Buffer
			if err := c.Stream(t.Context(), "/v1/audit/export", nil, &out); err != nil || !strings.Contains(out.String(), `"action":"export"`) {
				t.Errorf("an export is %q, %v", out.String(), err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := c.Get(ctx, "/v1/events?wait=30s", nil, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled is %v", err)
			}
		})
	}
	wrong := client.InMemory(handler, "x", "cli")
	if err := wrong.Get(t.Context(), "/v1/status", nil, nil); coded.Of(err) != "token-unknown" {
		t.Errorf("in memory a wrong token gets %v", err)
	}
}

// TestHalfAnExportIsAnError, and nothing worse, in memory too.
func TestHalfAnExportIsAnError(t *testing.T) {
	cut := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "half")
		panic(http.ErrAbortHandler)
	})
	var out bytes.Buffer
	err := client.InMemory(cut, "", "cli").Stream(t.Context(), "/v1/audit/export", nil, &out)
	if !errors.Is(err, io.ErrUnexpectedEOF) || out.String() != "half" {
		t.Errorf("half an export is %q, %v", out.String(), err)
	}
}

// TestAnAnswerOfSomethingElse has no code, and is not taken for one of ours.
func TestAnAnswerOfSomethingElse(t *testing.T) {
	for _, body := range []string{"", "<html>", "{}", `{"error":"x"}`, `[]`} {
		handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			io.WriteString(w, body)
		})
		err := client.InMemory(handler, "", "cli").Get(t.Context(), "/v1/status", nil, nil)
		if err == nil || coded.Of(err) != "" || !strings.Contains(err.Error(), "502") {
			t.Errorf("%q is %v", body, err)
		}
	}
}
