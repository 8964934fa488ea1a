package oauth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"sallyport/internal/coded"
)

// redirect waits on this machine for the browser to come back: on a port and a path
// that are made for one sign-in, once. Whatever else comes is not for it.
type redirect struct {
	host   string // 127.0.0.1:PORT
	path   string
	server *http.Server
	done   chan struct{} // closed when the server has ended
	answer chan answered

	mu    sync.Mutex
	state string // what is expected; "" before it is known
	used  bool
}

type answered struct {
	result *auth.AuthorizationResult
	err    error
}

func listen(ctx context.Context) (*redirect, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot wait for the browser: %w", err)
	}
	r := &redirect{host: listener.Addr().String(), path: "/callback/" + rand.Text(), done: make(chan struct{}), answer: make(chan answered, 1)}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, MaxHeaderBytes: 32 << 10}
	r.server.SetKeepAlivesEnabled(false)
	go func() {
		defer close(r.done)
		_ = r.server.Serve(listener) // until close
	}()
	return r, nil
}

func (r *redirect) url() string { return "http://" + r.host + r.path }

// close ends the server, after the page has been sent.
func (r *redirect) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if r.server.Shutdown(ctx) != nil {
		_ = r.server.Close()
	}
	<-r.done
}

// expect says which state the answer must have.
func (r *redirect) expect(state string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = state
}

func (r *redirect) wait(ctx context.Context) (*auth.AuthorizationResult, error) {
	select {
	case got := <-r.answer:
		return got.result, got.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// ServeHTTP takes the one answer.
func (r *redirect) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	switch {
	case request.Host != r.host, subtle.ConstantTimeCompare([]byte(request.URL.Path), []byte(r.path)) != 1:
		w.WriteHeader(http.StatusNotFound)
		return
	case request.Method != http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	got, ok := r.take(request)
	if !ok {
		w.WriteHeader(http.StatusGone)
		return
	}
	page := "Sallyport has the answer. You can close this window.\n"
	if got.err != nil {
		w.WriteHeader(http.StatusBadRequest)
		page = "This did not sign you in. Sallyport says why. You can close this window.\n"
	}
	_, _ = io.WriteString(w, page)
	r.answer <- got
}

// take reads the answer, the first time and once it is expected.
func (r *redirect) take(request *http.Request) (answered, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used || r.state == "" {
		return answered{}, false
	}
	r.used = true
	query := request.URL.Query()
	if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(r.state)) != 1 {
		return answered{err: &coded.Error{Code: "oauth-state-mismatch", Sentence: "the answer that came back is not of this sign-in",
			Next: "sign in again, and use the window that opens"}}, true
	}
	if query.Has("error") || query.Get("code") == "" {
		return answered{err: &coded.Error{Code: "oauth-refused", Sentence: "the sign-in was refused" + word(query.Get("error")),
			Next: "sign in again, and allow it there"}}, true
	}
	return answered{result: &auth.AuthorizationResult{Code: query.Get("code"), State: query.Get("state"), Iss: query.Get("iss")}}, true
}

var errorWord = regexp.MustCompile(`^[a-z_]{1,40}$`)

// word is an error code of OAuth's (RFC 6749 4.1.2.1) for a sentence, and nothing of
// any other text.
func word(code string) string {
	if !errorWord.MatchString(code) {
		return ""
	}
	return " (" + code + ")"
}
