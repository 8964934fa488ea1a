package app

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/internal/coded"
	"sallyport/internal/loopback"
	"sallyport/runtime/approvals"
)

// inProcess asks the handler of this process as if over its port: the one Host that it
// serves, and no Origin, which the window has looked at before.
func inProcess(handler http.Handler, port int) http.Handler {
	host := loopback.Host + ":" + strconv.Itoa(port)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.Host = host
		r.Header.Del("Origin")
		if r.ContentLength < 0 && (r.Body == nil || r.Body == http.NoBody) {
			r.ContentLength = 0 // a webview tells no length
		}
		handler.ServeHTTP(w, r)
	})
}

// attach is the sidecar of another process. The operator's token stays on this side: the
// page proves itself to this process and never sees it.
func (h *hosting) attach(ctx context.Context, found loopback.Discovery, key []byte) (*backend, error) {
	token, err := h.cfg.Places.ReadToken("operator")
	if err != nil {
		return nil, err
	}
	alive, end := context.WithCancel(context.WithoutCancel(ctx))
	transport := client.Transport(found.Port, key)
	f := &forwarder{transport: transport, address: loopback.URL(found.Port), token: token, largest: largestAnswer, doubt: make(chan struct{}, 1)}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		h.watch(alive, found, f.doubt)
	}()
	return &backend{mode: modeAttached, version: found.Version, handler: f, context: alive, gone: gone,
		stop: func(context.Context) error {
			end()
			<-gone
			transport.CloseIdleConnections()
			return nil
		}}, nil
}

// watch returns when the sidecar that was found is not the one that answers any more.
func (h *hosting) watch(ctx context.Context, found loopback.Discovery, doubt <-chan struct{}) {
	ticker := time.NewTicker(5 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-doubt:
		}
		if now, _, err := client.Find(ctx, h.cfg.Places.State); err != nil || now.Instance != found.Instance {
			return
		}
	}
}

// forwarder hands requests on to the sidecar of another process, as the operator.
type forwarder struct {
	transport http.RoundTripper
	address   string
	token     string
	largest   int64         // bytes of an answer
	doubt     chan struct{} // it did not answer
}

const (
	largestBody   = 8 << 20  // spec/local-api.md 7
	largestAnswer = 64 << 20 // an export
)

// handedOn are the headers of an answer that mean something to a page.
var handedOn = []string{"Content-Type", "Content-Disposition", "Cache-Control", "X-Content-Type-Options", "Content-Security-Policy",
	"Referrer-Policy", "Cross-Origin-Opener-Policy", "Allow"}

func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, header, body, err := f.ask(r)
	if err == nil && int64(len(body)) > f.largest { // half of it must not look like a whole one
		api.WriteError(w, &coded.Error{Code: "answer-too-large", Sentence: "the answer is larger than this window takes from another Sallyport",
			Next: "ask for less, or use the command: sallyport audit export"})
		return
	}
	if err != nil {
		select {
		case f.doubt <- struct{}{}:
		default:
		}
		api.WriteError(w, &coded.Error{Code: "not-running", Sentence: "the sidecar does not answer",
			Next: "start it: sallyport serve", Err: err})
		return
	}
	for _, name := range handedOn {
		for _, value := range header.Values(name) {
			w.Header().Add(name, value)
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func (f *forwarder) ask(r *http.Request) (status int, header http.Header, answer []byte, err error) {
	var body []byte
	if r.Body != nil {
		if body, err = io.ReadAll(io.LimitReader(r.Body, largestBody+1)); err != nil {
			return 0, nil, nil, err
		}
	}
	address := f.address + (&url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}).String()
	request, err := http.NewRequestWithContext(r.Context(), r.Method, address, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	if kind := r.Header.Get("Content-Type"); kind != "" && len(body) > 0 {
		request.Header.Set("Content-Type", kind)
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Authorization", "Bearer "+f.token)
	request.Header.Set("X-Sallyport-Via", approvals.ViaWindowAttached)
	response, err := f.transport.RoundTrip(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, f.largest+1))
	return response.StatusCode, response.Header, answer, err
}
