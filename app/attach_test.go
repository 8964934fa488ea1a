package app

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sallyport/api"
	"sallyport/api/sidecar"
	"sallyport/frontend"
	"sallyport/internal/buildinfo"
	"sallyport/internal/coded"
	"sallyport/runtime/host"
)

func served(t *testing.T, places host.Places) *sidecar.Sidecar {
	t.Helper()
	s, err := sidecar.Start(t.Context(), sidecar.Config{Places: places, Version: "other"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func stop(t *testing.T, s *sidecar.Sidecar) {
	t.Helper()
	if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

// running is a window without a window, over real hosts.
func running(t *testing.T, places host.Places) *answers {
	t.Helper()
	h := newHosting(Config{Places: places, Build: buildinfo.Info{Version: "this"}})
	h.pause = 20 * time.Millisecond
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- h.run(ctx) }()
	t.Cleanup(func() {
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return newAnswers(h, frontend.Files(), nil)
}

func status(t *testing.T, a *answers) (view api.Status, code string) {
	t.Helper()
	got := ask(a, "GET", "/v1/status", a.hosting.token, "")
	if got.Code == http.StatusOK {
		if err := json.Unmarshal(got.Body.Bytes(), &view); err != nil {
			t.Fatal(err)
		}
		return view, ""
	}
	var refused struct{ Code string }
	_ = json.Unmarshal(got.Body.Bytes(), &refused)
	return view, refused.Code
}

func emptyHome(t *testing.T) host.Places {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	return host.PlacesIn(t.TempDir())
}

// TestAnOwnHostAnswersAsTheWindow: in memory, and on the kept port for everybody else.
func TestAnOwnHostAnswersAsTheWindow(t *testing.T) {
	places := emptyHome(t)
	a := running(t, places)
	view, code := status(t, a)
	if code != "" || view.Version != "this" {
		t.Fatalf("%+v %s", view, code)
	}
	if mode, version := a.hosting.look(); mode != modeOwn || version != "this" {
		t.Errorf("it is %s %s", mode, version)
	}
	if got := ask(a, "POST", "/v1/plugins/scan", a.hosting.token, "", "Origin", "wails://wails"); got.Code != http.StatusOK {
		t.Errorf("a question with the page's origin: %d %s", got.Code, got.Body)
	}
	if got := ask(a, "POST", "/v1/clients", a.hosting.token, `{"name":"mine"}`, "Content-Type", "application/json"); got.Code != http.StatusOK {
		t.Errorf("a question with a body: %d %s", got.Code, got.Body)
	}
	// The token of the window counts on the port too, and the window's rules do not loosen
	// those of the port.
	now, err := a.hosting.current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	foreign := httptest.NewRequest("GET", "/v1/status", nil)
	foreign.Header.Set("Authorization", "Bearer wrong")
	w := httptest.NewRecorder()
	now.handler.ServeHTTP(w, foreign)
	if w.Code != http.StatusUnauthorized {
		t.Errorf("another token: %d", w.Code)
	}
}

// TestAnAttachedWindowAsksAsTheOperator: the running sidecar answers; the page gets no
// token of it, and what it claims about itself does not reach it.
func TestAnAttachedWindowAsksAsTheOperator(t *testing.T) {
	places := emptyHome(t)
	s := served(t, places)
	a := running(t, places)
	view, code := status(t, a)
	if code != "" || view.Version != "other" {
		t.Fatalf("%+v %s", view, code)
	}
	if mode, _ := a.hosting.look(); mode != modeAttached {
		t.Errorf("it is %s", mode)
	}
	got := ask(a, "POST", "/v1/clients", a.hosting.token, `{"name":"mine"}`, "Content-Type", "application/json", "X-Sallyport-Via", "cli", "Cookie", "sallyport-session=x")
	if got.Code != http.StatusOK {
		t.Fatalf("%d %s", got.Code, got.Body)
	}
	records := ask(a, "GET", "/v1/audit/export", a.hosting.token, "").Body.String()
	if !strings.Contains(records, `"via":"window-attached"`) || strings.Contains(records, `"via":"gui"`) || strings.Contains(records, `"via":"cli"`) {
		t.Errorf("the record says %s", records)
	}
	for _, path := range []string{"/", "/v1/status", "/v1/clients", "/window"} {
		if strings.Contains(ask(a, "GET", path, a.hosting.token, "").Body.String(), s.Host.Tokens.Operator) {
			t.Errorf("%s has the operator's token", path)
		}
	}
	if got := ask(a, "GET", "/v1/absent", a.hosting.token, ""); got.Code != http.StatusNotFound {
		t.Errorf("a refusal is handed on as %d", got.Code)
	}
	stop(t, s)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, code := status(t, a)
		if code == "sidecar-ended" {
			break
		}
		if code != "not-running" && code != "cancelled" || time.Now().After(deadline) {
			t.Fatalf("after its end the page is told %q", code)
		}
	}
	next := served(t, places)
	defer stop(t, next)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, code := status(t, a); code == "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("its successor is not shown")
		}
	}
	if coded.Of(errLost) != "sidecar-ended" {
		t.Error("the code has another name")
	}
}

// TestAnAnswerThatIsTooLargeIsRefused: what is cut off would look like the whole of it.
func TestAnAnswerThatIsTooLargeIsRefused(t *testing.T) {
	size := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("x", size))
	}))
	defer server.Close()
	f := &forwarder{transport: server.Client().Transport, address: server.URL, largest: 1000, doubt: make(chan struct{}, 1)}
	for size = 999; size <= 1001; size++ {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/audit/export", nil))
		if fits := size <= 1000; fits != (w.Code == http.StatusOK && w.Body.Len() == size) || fits == strings.Contains(w.Body.String(), "answer-too-large") {
			t.Errorf("%d bytes: %d, %d bytes", size, w.Code, w.Body.Len())
		}
		if len(f.doubt) > 0 {
			t.Error("the sidecar is taken for gone")
		}
	}
}
