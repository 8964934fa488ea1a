// Package sidecar serves one host on the kept loopback port.
//
// The one idea: the order is the contract. Lock, open, bind, serve, and only
// then the discovery file and the ready line; stopping is the same backwards, so
// that whoever reads the file finds somebody there (spec/local-api.md 1 to 3).
//
// It has no routes of its own. cli and app import it.
package sidecar

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"sallyport/api"
	"sallyport/frontend"
	"sallyport/internal/loopback"
	"sallyport/runtime/health"
	"sallyport/runtime/host"
)

// Config says what to serve and where. Places and Version are required.
type Config struct {
	Places  host.Places
	Version string
	// Commit and Date: see host.Config.
	Commit, Date string
	Port         int // 0: the kept one
	Logger       *slog.Logger
	// SecretsPassphrase: see host.Config.
	SecretsPassphrase []byte
	// WindowToken: see api.Config. "" is no window.
	WindowToken string
}

// Sidecar is a host that is being served.
type Sidecar struct {
	Discovery loopback.Discovery
	Notes     []loopback.Note
	Host      *host.Host
	// Handler is what is served, for a window of this process. Hosts other than the
	// address of Discovery are refused there too.
	Handler http.Handler

	server *http.Server
	failed chan error
	state  string
	log    *slog.Logger
}

// Start opens the host and serves it. loopback.ErrHeld means that another
// instance has the data folder.
func Start(ctx context.Context, cfg Config) (*Sidecar, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	h, err := host.Open(ctx, host.Config{Places: cfg.Places, Version: cfg.Version, Commit: cfg.Commit, Date: cfg.Date, Logger: cfg.Logger, SecretsPassphrase: cfg.SecretsPassphrase})
	if err != nil {
		return nil, err
	}
	s := &Sidecar{Host: h, failed: make(chan error, 1), state: cfg.Places.State, log: cfg.Logger}
	if err := s.serve(cfg); err != nil {
		return nil, errors.Join(err, h.Close(context.WithoutCancel(ctx)))
	}
	h.Start()
	return s, nil
}

func (s *Sidecar) serve(cfg Config) error {
	listener, notes, err := loopback.Listen(loopback.Config{StateDir: cfg.Places.State, Want: cfg.Port})
	if err != nil {
		return err
	}
	s.Notes = notes
	for _, note := range notes {
		s.Host.Health.Set(health.Code(note.Kind), "", health.Args{"port": strconv.Itoa(note.Port), "old": strconv.Itoa(note.Old)})
	}
	port := loopback.Port(listener)
	s.Discovery = loopback.Discovery{Service: health.Service, Version: cfg.Version, Instance: s.Host.Instance,
		PID: os.Getpid(), StartedAt: s.Host.StartedAt, Port: port, URL: loopback.URL(port), Executable: executable()}
	s.Handler = s.handler(port, cfg)
	s.server = api.HTTPServer(s.Handler, s.log)
	s.server.BaseContext = func(net.Listener) context.Context { return s.Host.Context() }
	go func() { s.failed <- s.server.Serve(listener) }()
	if err := loopback.WriteDiscovery(s.state, s.Discovery); err != nil {
		return errors.Join(err, s.server.Close())
	}
	return nil
}

func (s *Sidecar) handler(port int, cfg Config) http.Handler {
	return api.Handler(api.Config{
		Host: s.Host, Tokens: api.Tokens{Operator: s.Host.Tokens.Operator, Companion: s.Host.Tokens.Companion},
		Port: port, Logger: cfg.Logger, Pages: pages(), WindowToken: cfg.WindowToken,
		Health: health.Desktop(health.DesktopConfig{Version: cfg.Version, Instance: s.Host.Instance, Port: port,
			Key: s.Host.HealthKey, Tracker: s.Host.Health}),
	})
}

// pages are the interface's files, where they were built into this program.
func pages() fs.FS {
	if !frontend.Built() {
		return nil
	}
	return frontend.Files()
}

// Failed gives the error with which serving ended by itself.
func (s *Sidecar) Failed() <-chan error { return s.failed }

// stopGrace is how long requests in flight may go on once stopping has begun.
const stopGrace = time.Second

// Stop takes the discovery file away, ends what is in flight and closes the
// host, children included.
func (s *Sidecar) Stop(ctx context.Context) error {
	err := loopback.RemoveDiscovery(s.state, s.Discovery.Instance)
	s.Host.Quit()
	grace, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	if s.server.Shutdown(grace) != nil {
		_ = s.server.Close() // it is being ended
	}
	return errors.Join(err, s.Host.Close(ctx))
}

// executable is this program's path for the discovery file, which only its owner
// reads; empty where the system does not tell.
func executable() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return path
}
