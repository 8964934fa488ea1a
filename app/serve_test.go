package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"sallyport/internal/coded"
)

// shown is what a window shows, over a backend that says who it was asked by.
func shown(t *testing.T) *answers {
	t.Helper()
	h := newHosting(Config{})
	h.set(&backend{mode: modeOwn, version: "1.2.3", context: context.Background(), handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "asked "+r.Method+" "+r.URL.Path)
	})}, modeOwn, nil)
	files := fstest.MapFS{"index.html": {Data: []byte("<!doctype html><html><head></head><body></body></html>")}, "assets/x.js": {Data: []byte("1")}}
	return newAnswers(h, files, func(_ context.Context, address string) error {
		if address != "https://example.com/" {
			return coded.New("oauth-address-refused", "the address is not one for a browser")
		}
		return nil
	})
}

func ask(a *answers, method, path, token, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host, r.URL.Host, r.URL.Scheme = "wails", "", ""
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w
}

// TestWhoIsAnswered: the page that holds the token, and of others only who wants the
// pages themselves. A page of another site is refused whatever it holds.
func TestWhoIsAnswered(t *testing.T) {
	a := shown(t)
	token := a.hosting.token
	for _, row := range []struct {
		says, method, path, token string
		headers                   []string
		want                      int
	}{
		{"the page asks", "GET", "/v1/status", token, nil, 200},
		{"the page says its origin", "POST", "/v1/plugins/scan", token, []string{"Origin", "wails://wails"}, 200},
		{"the page of Windows", "POST", "/v1/plugins/scan", token, []string{"Origin", "http://wails.localhost"}, 200},
		{"without the token", "GET", "/v1/status", "", nil, 401},
		{"with another token", "GET", "/v1/status", token + "x", nil, 401},
		{"with the beginning of it", "GET", "/v1/status", token[:20], nil, 401},
		{"health too needs the token here", "GET", "/api/desktop-health", "", nil, 401},
		{"the window's own addresses too", "POST", "/window/start", "", nil, 401},
		{"another site's page with the token", "GET", "/v1/status", token, []string{"Origin", "http://127.0.0.1:7798"}, 403},
		{"a frame without an origin", "GET", "/v1/status", token, []string{"Origin", "null"}, 403},
		{"another scheme's page of that name", "GET", "/v1/status", token, []string{"Origin", "https://wails.localhost"}, 403},
		{"a page that the browser calls another site's", "GET", "/v1/status", token, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"another site's page wants the first page, which has the token", "GET", "/", "", []string{"Origin", "http://evil.example"}, 403},
		{"the first page", "GET", "/", "", nil, 200},
		{"a part of the pages", "GET", "/assets/x.js", "", nil, 200},
		{"what is no part of them", "GET", "/assets/absent.js", "", nil, 404},
		{"the pages are read only", "POST", "/", "", nil, 401},
		{"an address of the window's that there is none of", "GET", "/window/eval", token, nil, 404},
	} {
		if got := ask(a, row.method, row.path, row.token, "", row.headers...); got.Code != row.want {
			t.Errorf("%s: %d, want %d: %s", row.says, got.Code, row.want, got.Body)
		}
	}
}

func TestTheTokenIsInTheFirstPageAlone(t *testing.T) {
	a := shown(t)
	first := ask(a, "GET", "/", "", "")
	if !strings.Contains(first.Body.String(), `<meta name="sallyport-token" content="`+a.hosting.token+`" /></head>`) {
		t.Errorf("the page has no token: %s", first.Body)
	}
	if kind := first.Header().Get("Content-Type"); !strings.EqualFold(kind, "text/html; charset=utf-8") {
		t.Errorf("the page is %q", kind)
	}
	for _, path := range []string{"/assets/x.js", "/window", "/v1/status"} {
		got := ask(a, "GET", path, a.hosting.token, "")
		if strings.Contains(got.Body.String(), a.hosting.token) {
			t.Errorf("%s has the token", path)
		}
		policy := got.Header().Get("Content-Security-Policy")
		for _, rule := range []string{"default-src 'none'", "script-src 'self'", "frame-src 'none'", "connect-src 'self'"} {
			if !strings.Contains(policy, rule) {
				t.Errorf("%s: the policy is %q", path, policy)
			}
		}
	}
	if other := shown(t); other.hosting.token == a.hosting.token || len(a.hosting.token) < 40 {
		t.Error("two windows have one token, or it can be guessed")
	}
}

func TestTheWindowsOwnAddresses(t *testing.T) {
	a := shown(t)
	token := a.hosting.token
	var view WindowView
	if err := json.Unmarshal(ask(a, "GET", "/window", token, "").Body.Bytes(), &view); err != nil || view != (WindowView{modeOwn, "1.2.3"}) {
		t.Errorf("it stands %+v %v", view, err)
	}
	for body, want := range map[string]int{
		`{"address":"https://example.com/"}`: 200, `{"address":"file:///etc/passwd"}`: 409, `{"address":1}`: 400, ``: 400, `[]`: 400,
	} {
		if got := ask(a, "POST", "/window/browse", token, body); got.Code != want {
			t.Errorf("%s: %d %s", body, got.Code, got.Body)
		}
	}
	ask(a, "POST", "/window/start", token, "")
	ask(a, "POST", "/window/start", token, "")
	select {
	case <-a.hosting.asked:
	default:
		t.Error("nobody was told to start")
	}
}

func TestAQuestionToNobodyIsRefusedAsTheAPIRefuses(t *testing.T) {
	a := shown(t)
	for want, err := range map[string]error{"sidecar-ended": errLost, "internal": errors.New("open /home/somebody/x: no such file")} {
		a.hosting.set(nil, modeLost, err)
		got := ask(a, "GET", "/v1/status", a.hosting.token, "")
		var body struct{ Code, Message string }
		if json.Unmarshal(got.Body.Bytes(), &body) != nil || body.Code != want || strings.Contains(got.Body.String(), "somebody") || got.Code < 500 {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	}
}

// An answer is delivered in one piece, so that no pipe is open while a long poll waits.
func TestNothingIsWrittenBeforeAnAnswerIsWhole(t *testing.T) {
	a := shown(t)
	wrote := make(chan struct{})
	release := make(chan struct{})
	a.hosting.set(&backend{mode: modeOwn, context: t.Context(), handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "the first half")
		close(wrote)
		<-release
		_, _ = io.WriteString(w, " and the second")
	})}, modeOwn, nil)
	w := &watched{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequest("GET", "/v1/events", nil)
	r.Header.Set("Authorization", "Bearer "+a.hosting.token)
	done := make(chan struct{})
	go func() { defer close(done); a.ServeHTTP(w, r) }()
	<-wrote
	close(release)
	<-done
	if w.writes != 1 || w.Body.String() != "the first half and the second" {
		t.Errorf("%d writes: %q", w.writes, w.Body)
	}
}

type watched struct {
	*httptest.ResponseRecorder
	writes int
}

func (w *watched) Write(p []byte) (int, error) { w.writes++; return w.ResponseRecorder.Write(p) }

// Pages and answers are of one version: an attached sidecar of another one serves both.
func TestPagesGoWithWhoAnswers(t *testing.T) {
	a := shown(t)
	a.hosting.cfg.Build.Version = "1"
	set := func(mode, version string, status int) {
		a.hosting.set(&backend{mode: mode, version: version, context: t.Context(), handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/javascript")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "theirs</head> "+r.URL.Path)
		})}, mode, nil)
	}
	for _, row := range []struct {
		says, mode, version string
		status              int
		theirs              bool
	}{
		{"attached to another version", modeAttached, "2", 200, true},
		{"attached to its own", modeAttached, "1", 200, false},
		{"its own host", modeOwn, "1", 200, false},
		{"attached to one that was built without pages", modeAttached, "2", 404, false},
	} {
		set(row.mode, row.version, row.status)
		for _, path := range []string{"/", "/assets/x.js"} {
			got := ask(a, "GET", path, "", "").Body.String()
			if strings.Contains(got, "theirs") != row.theirs {
				t.Errorf("%s: %s is %q", row.says, path, got)
			}
			if path == "/" && !strings.Contains(got, a.hosting.token) {
				t.Errorf("%s: the first page has no token: %s", row.says, got)
			}
		}
	}
}

// TestAnAnswerThatIsGivenUpIsARefusal: an export that fails half-way ends neither the window
// nor looks like a whole one.
func TestAnAnswerThatIsGivenUpIsARefusal(t *testing.T) {
	a := shown(t)
	a.hosting.now.handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/jsonl")
		_, _ = io.WriteString(w, "half an export")
		panic(http.ErrAbortHandler)
	})
	got := ask(a, "GET", "/v1/audit/export", a.hosting.token, "")
	if got.Code != http.StatusInternalServerError || strings.Contains(got.Body.String(), "half") || got.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %v %s", got.Code, got.Header(), got.Body)
	}
}
