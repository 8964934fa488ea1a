package app

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"html"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"sallyport/api"
	"sallyport/internal/coded"
)

// origins are the window's own, by system. Every other is another site's page that was
// brought into the webview.
var origins = map[string]bool{"wails://wails": true, "http://wails.localhost": true}

// answers is what the webview is served with: the pages, the few addresses of the window
// itself, and for everything else whoever the backend is.
type answers struct {
	hosting *hosting
	files   fs.FS // the pages
	browse  func(context.Context, string) error
	patient time.Duration // how long a question waits for the host to be open

	begun   time.Time
	seen    atomic.Int64 // when the page last asked something, in nanoseconds from begun: a clock that stands still with the computer
	focused atomic.Bool  // the person looks at the page, as it said last
}

func newAnswers(h *hosting, files fs.FS, browse func(context.Context, string) error) *answers {
	return &answers{hosting: h, files: files, browse: browse, patient: 20 * time.Second, begun: time.Now()}
}

// ServeHTTP answers in whole: what is written here goes into a pipe that only exists from
// the first byte to the last, and no long poll holds one open.
func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.seen.Store(int64(time.Since(a.begun)))
	whole := newRecorder()
	if aborts(func() { a.answer(whole, r) }) {
		whole = newRecorder()
		api.SetPageHeaders(whole.header)
		api.WriteError(whole, http.ErrAbortHandler)
	}
	for name, values := range whole.header {
		w.Header()[name] = values
	}
	deliver(w, whole.status, whole.body.Bytes())
}

// aborts reports whether a handler gave its answer up half-way. No server of HTTP's stands
// around it here, so that its panic would end the window and the plugins with it; any other
// panic is a fault and stays one.
func aborts(answer func()) (aborted bool) {
	defer func() {
		switch reason := recover(); reason {
		case nil:
		case http.ErrAbortHandler:
			aborted = true
		default:
			panic(reason)
		}
	}()
	answer()
	return false
}

func (a *answers) answer(w http.ResponseWriter, r *http.Request) {
	api.SetPageHeaders(w.Header())
	switch {
	case foreign(r):
		api.WriteError(w, coded.New("origin-refused", "requests from other sites are refused"))
	case isPage(r):
		a.page(w, r)
	case !a.proves(r):
		api.WriteError(w, coded.New("token-missing", "this address needs the window's token"))
	case r.URL.Path == "/window" || strings.HasPrefix(r.URL.Path, "/window/"):
		a.own(w, r)
	default:
		a.noticeFocus(r)
		a.ask(w, r)
	}
}

// foreign reports whether another site's page asks. The window's own says its origin, or
// nothing at all.
func foreign(r *http.Request) bool {
	for _, origin := range r.Header.Values("Origin") {
		if !origins[strings.ToLower(origin)] {
			return true
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	return true
}

func isPage(r *http.Request) bool {
	path := r.URL.Path
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		(path == "" || path == "/" || path == "/index.html" || path == "/icon.svg" || strings.HasPrefix(path, "/assets/"))
}

// proves reports whether the page shows the token that it was given.
func (a *answers) proves(r *http.Request) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	x, y := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(a.hosting.token))
	return ok && subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// page serves a file of the pages; the first one carries the token.
func (a *answers) page(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/assets/") || r.URL.Path == "/icon.svg" {
		if theirs, ok := a.theirs(r); ok {
			w.Header().Set("Content-Type", theirs.header.Get("Content-Type"))
			_, _ = w.Write(theirs.body.Bytes())
			return
		}
		api.Pages(a.files).ServeHTTP(w, r)
		return
	}
	raw, err := fs.ReadFile(a.files, "index.html")
	if theirs, ok := a.theirs(r); ok {
		raw, err = theirs.body.Bytes(), nil
	}
	if err != nil {
		api.WriteError(w, &coded.Error{Code: "pages-not-built", Sentence: "this program was built without its pages",
			Next: "build it with: make desktop"})
		return
	}
	w.Header().Set("Content-Type", firstPageType)
	_, _ = w.Write(withToken(raw, a.hosting.token))
}

// theirs is a file of the pages of an attached sidecar of another version, which go with
// what it answers. It is ours to prove, as it has proved itself. What it has not is taken
// from here, and what cannot be told in time.
func (a *answers) theirs(r *http.Request) (*recorder, bool) {
	patience, cancel := context.WithTimeout(r.Context(), pagesWait)
	defer cancel()
	now, err := a.hosting.current(patience)
	if err != nil || now.mode != modeAttached || now.version == a.hosting.cfg.Build.Version {
		return nil, false
	}
	r = r.Clone(now.context)
	if r.URL.Path == "" || r.URL.Path == "/index.html" {
		r.URL.Path = "/"
	}
	got := newRecorder()
	now.handler.ServeHTTP(got, r)
	return got, got.status == http.StatusOK
}

// pagesWait is how long the first page waits to learn whose pages it is of.
const pagesWait = 3 * time.Second

// withToken puts the token where frontend/src/api/session.ts looks for it.
func withToken(page []byte, token string) []byte {
	meta := `<meta name="sallyport-token" content="` + html.EscapeString(token) + `" />`
	return bytes.Replace(page, []byte("</head>"), []byte(meta+"</head>"), 1)
}

// ask hands a question to the backend. It ends with it.
func (a *answers) ask(w http.ResponseWriter, r *http.Request) {
	patience, cancel := context.WithTimeout(r.Context(), a.patient)
	now, err := a.hosting.current(patience)
	cancel()
	if err != nil {
		api.WriteError(w, err)
		return
	}
	now.handler.ServeHTTP(w, r.WithContext(now.context))
}

// WindowView is how the window stands.
type WindowView struct {
	Mode    string `json:"mode"`
	Version string `json:"version,omitempty"` // of who answers
}

// own answers the window's own addresses: they are about this window and are no part of
// the contract.
func (a *answers) own(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "GET /window":
		var view WindowView
		view.Mode, view.Version = a.hosting.look()
		say(w, view)
	case "POST /window/start":
		a.hosting.start()
		say(w, api.Done{OK: true})
	case "POST /window/browse":
		a.openAddress(w, r)
	default:
		api.WriteError(w, coded.New("not-found", "there is nothing at this address"))
	}
}

// openAddress shows an address in the system's browser, which is where addresses of
// others belong.
func (a *answers) openAddress(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Address string }
	raw, err := io.ReadAll(io.LimitReader(r.Body, 16<<10))
	if err == nil {
		err = json.Unmarshal(raw, &asked)
	}
	if err != nil {
		api.WriteError(w, coded.New("bad-request", "the request body is not what this address takes"))
		return
	}
	if err := a.browse(r.Context(), asked.Address); err != nil {
		api.WriteError(w, err)
		return
	}
	say(w, api.Done{OK: true})
}

func say(w http.ResponseWriter, answer any) {
	raw, err := json.Marshal(answer)
	if err != nil {
		api.WriteError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(raw)
}

// recorder keeps an answer until it is whole.
type recorder struct {
	header http.Header
	status int
	wrote  bool
	body   bytes.Buffer
}

func newRecorder() *recorder { return &recorder{header: http.Header{}, status: http.StatusOK} }

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if !r.wrote {
		r.status, r.wrote = status, true
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	r.wrote = true
	return r.body.Write(p)
}
