package app

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"sallyport/api/client"
	"sallyport/api/sidecar"
	"sallyport/internal/coded"
	"sallyport/internal/loopback"
)

// Modes of the window.
const (
	modeStarting = "starting"
	modeOwn      = "own"      // the host is in this process
	modeAttached = "attached" // another process has the data folder
	modeLost     = "lost"     // the one that was attached to has ended
	modeFailed   = "failed"   // the host could not be opened
)

// backend is who answers the pages' questions.
type backend struct {
	mode    string
	version string
	handler http.Handler
	// context ends what is asked of it: requests of a webview have no end of their own.
	context context.Context
	// gone is closed or written to when it answers no more; nil is never.
	gone <-chan struct{}
	stop func(context.Context) error
}

// hosting keeps the window at a backend: it starts one, or attaches to the one that is
// there, and attaches again when that one was replaced. It never starts one by itself in
// the place of another that has ended: whoever stopped it, to update it perhaps, may want
// the data folder; the person is asked.
type hosting struct {
	cfg   Config
	log   *slog.Logger
	token string // of this window, in memory only

	open  func(ctx context.Context, may bool) (*backend, error) // see find
	pause time.Duration                                         // between two looks

	mu      sync.Mutex
	now     *backend
	mode    string
	err     error
	changed chan struct{} // closed and replaced with each change
	asked   chan struct{} // the person wants a start
}

func newHosting(cfg Config) *hosting {
	h := &hosting{cfg: cfg, log: cfg.Logger, token: rand.Text() + rand.Text(), pause: time.Second,
		mode: modeStarting, changed: make(chan struct{}), asked: make(chan struct{}, 1)}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	h.open = h.find
	return h
}

// run keeps a backend until ctx ends, and then stops the one it has.
func (h *hosting) run(ctx context.Context) error {
	may := true
	for ctx.Err() == nil {
		now, err := h.open(ctx, may)
		if err != nil {
			h.without(may, err)
			may = h.wait(ctx)
			continue
		}
		h.with(now)
		select {
		case <-ctx.Done():
		case <-now.gone:
			h.log.Warn("the sidecar that answered the window has ended", "mode", now.mode)
		}
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
		err = now.stop(stopping)
		cancel()
		if ctx.Err() != nil {
			return err
		}
		may = false
		h.set(nil, modeLost, errLost)
	}
	return nil
}

// stopLimit is how long the host may take to end its plugins and close.
const stopLimit = 15 * time.Second

var errLost = &coded.Error{Code: "sidecar-ended", Sentence: "the Sallyport that this window showed has ended",
	Next: "start it again here, or in a terminal: sallyport serve"}

// without says why there is no backend. What is only not there yet keeps its mode.
func (h *hosting) without(may bool, err error) {
	if may {
		h.log.Error("the window has no host", "error", err)
		h.set(nil, modeFailed, err)
	}
}

func (h *hosting) with(b *backend) {
	h.log.Info("the window is served", "mode", b.mode, "version", b.version)
	h.set(b, b.mode, nil)
	if b.mode == modeOwn {
		go h.askAhead(b)
	}
}

// askAhead asks what the first page will, while the webview still starts: the first
// answer after a start takes some time, because programs are read and hashed for it.
func (h *hosting) askAhead(b *backend) {
	r, err := http.NewRequestWithContext(b.context, http.MethodGet, "/v1/plugins", http.NoBody)
	if err != nil {
		return
	}
	r.Header.Set("Authorization", "Bearer "+h.token)
	b.handler.ServeHTTP(newRecorder(), r)
}

func (h *hosting) set(b *backend, mode string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now, h.mode, h.err = b, mode, err
	close(h.changed)
	h.changed = make(chan struct{})
}

// wait waits for the next look, or for the person who wants a start.
func (h *hosting) wait(ctx context.Context) (may bool) {
	select {
	case <-ctx.Done():
	case <-h.asked:
		return true
	case <-time.After(h.pause):
	}
	return false
}

// start is the person's word that a host is to run here.
func (h *hosting) start() {
	select {
	case h.asked <- struct{}{}:
	default: // it was said
	}
}

// current returns who answers now. While that is being found out it waits, for as long
// as ctx lets it.
func (h *hosting) current(ctx context.Context) (*backend, error) {
	for {
		h.mu.Lock()
		now, mode, err, changed := h.now, h.mode, h.err, h.changed
		h.mu.Unlock()
		if mode != modeStarting {
			return now, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, &coded.Error{Code: "starting", Sentence: "Sallyport is still starting", Next: "wait a moment"}
		}
	}
}

// look is how the window stands, for its page.
func (h *hosting) look() (mode, version string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now != nil {
		version = h.now.version
	}
	return h.mode, version
}

// startGrace is how long a process that has the data folder may take to answer: it is
// starting or stopping.
const startGrace = 10 * time.Second

// find attaches to the running sidecar, or starts one where it may and none runs.
func (h *hosting) find(ctx context.Context, may bool) (*backend, error) {
	for deadline := time.Now().Add(startGrace); ; {
		if may {
			own, err := sidecar.Start(ctx, sidecar.Config{Places: h.cfg.Places, Version: h.cfg.Build.Version,
				Commit: h.cfg.Build.Commit, Date: h.cfg.Build.Date, Logger: h.log, WindowToken: h.token})
			if !errors.Is(err, loopback.ErrHeld) {
				return h.own(own), err
			}
		}
		found, key, err := client.Find(ctx, h.cfg.Places.State)
		if err == nil {
			return h.attach(ctx, found, key)
		}
		if !may {
			return nil, err
		}
		if time.Now().After(deadline) {
			return nil, &coded.Error{Code: "not-answering", Sentence: "another Sallyport has the data folder and does not answer",
				Next: "look for it with: sallyport health; stop it and try again"}
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// own is the sidecar of this process.
func (h *hosting) own(s *sidecar.Sidecar) *backend {
	if s == nil {
		return nil
	}
	gone := make(chan struct{})
	go func() {
		select {
		case err := <-s.Failed():
			if s.Host.Context().Err() == nil {
				h.log.Error("serving ended by itself", "error", err)
				close(gone)
			}
		case <-s.Host.Context().Done():
		}
	}()
	return &backend{mode: modeOwn, version: s.Discovery.Version, context: s.Host.Context(), gone: gone, stop: s.Stop,
		handler: inProcess(s.Handler, s.Discovery.Port)}
}
