// Package api is the HTTP contract: routes, who may use each, types and error
// codes.
//
// The one idea: the routes are a table, and a route without an access rule does
// not pass its tests. One http.Handler serves the sidecar, the window and, in
// memory, a command that runs while no sidecar does.
//
// It decides nothing: every handler asks the host. cli, app and main import it.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/host"
)

// Config is what a Server is made of; every field but Logger is required.
type Config struct {
	Host   *host.Host
	Tokens Tokens
	// Port is the port that is bound: Host headers are compared with it.
	Port   int
	Health http.Handler // GET /api/desktop-health
	// Pages are the interface's files; nil serves none.
	Pages fs.FS
	// WindowToken is what the window that owns the data folder proves itself with; it
	// exists in memory only. "" is no window.
	WindowToken string
	Now         func() time.Time // nil is time.Now
	Logger      *slog.Logger
}

// Server answers the API of one host.
type Server struct {
	host   *host.Host
	tokens Tokens
	log    *slog.Logger
	health http.Handler
	agents http.Handler // the gateway; nil where the host has a fault

	address  string // http://127.0.0.1:PORT
	window   string
	sessions *sessions
	calls    calls
}

// Handler builds the one handler of the product.
func Handler(cfg Config) http.Handler {
	s := &Server{host: cfg.Host, tokens: cfg.Tokens, log: cfg.Logger, health: cfg.Health}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s.address, s.window, s.sessions = "http://127.0.0.1:"+strconv.Itoa(cfg.Port), cfg.WindowToken, newSessions(cfg.Now)
	if cfg.Host.Gateway != nil {
		s.agents = cfg.Host.Gateway.Handler()
	}
	mux := http.NewServeMux()
	for _, route := range Routes() {
		mux.Handle(route.Method+" "+route.Path, s.serve(route))
	}
	s.pages(mux, cfg.Pages)
	mux.Handle("/", elsewhere(mux))
	return guard(cfg.Port, mux)
}

// HTTPServer wraps a handler with the limits of spec/local-api.md 7. Writing has
// no limit: long polls and tool calls take their time.
func HTTPServer(handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           TimedBodies(handler, BodyTime),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
}

func (s *Server) serve(route Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := Caller{Kind: "anyone"}
		if route.Access != Anyone {
			var err error
			if caller, err = s.identify(r); err == nil {
				err = allow(route.Access, caller)
			}
			if err != nil {
				writeError(w, err)
				return
			}
		}
		if route.Stream != nil {
			route.Stream(s, caller, w, r)
			return
		}
		s.answer(w, r, route, caller)
	})
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, route Route, caller Caller) {
	body, err := route.Serve(s, caller, r)
	if err != nil {
		if coded.Of(err) == "" && !errors.Is(err, context.Canceled) {
			s.log.Error("request failed", "route", route.Method+" "+route.Path, "error", err)
		}
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, body)
}

// elsewhere answers what no route takes: with the methods that the address does
// take, or with nothing being there.
func elsewhere(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete} {
			other := r.Clone(r.Context())
			other.Method = method
			if _, pattern := mux.Handler(other); pattern != "/" {
				allowed = append(allowed, method)
			}
		}
		if len(allowed) > 0 {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			writeError(w, coded.New("method-not-allowed", "this address does not take that method"))
			return
		}
		writeError(w, coded.New("not-found", "there is nothing at this address"))
	})
}

// read decodes a JSON body strictly: unknown fields, a second document and a
// body over the limit are refused, not guessed at.
func read(r *http.Request, into any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil {
		if _, err = decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		err = errors.New("more than one document")
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return coded.New("body-too-large", "the request is larger than 8 MiB")
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return coded.New("body-too-slow", "the request's body did not come in time")
	}
	return &coded.Error{Code: "bad-request", Sentence: "the request body is not what this address takes", Err: err}
}
