package gateway

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"sallyport/runtime/plugins"
)

// Config is what a Gateway is made of. Backend and Client are required.
type Config struct {
	Backend Backend
	// Client says who sent an HTTP request. Not ok is answered with 401.
	Client func(*http.Request) (ClientInfo, bool)
	// Version is Sallyport's own, told to agents.
	Version string
	Log     *slog.Logger // nil discards
	Limits  Limits
}

// Limits bounds what agents make the gateway hold. Zero fields take the defaults.
type Limits struct {
	Body       int64         // bytes of a message from an agent: 8 MiB (spec/local-api.md 7)
	Sessions   int           // sessions of one client: 64; the one idle for longest makes room
	InFlight   int           // requests in flight of one session, or of one client without: 256
	Rounds     int           // requests of one client that wait for input: 32
	RoundTime  time.Duration // how long one waits: 5 min
	Idle       time.Duration // an unused session ends: 1 h
	Messages   int           // messages queued to a slow reader: 1024
	Bytes      int           // bytes queued to a slow reader: 4 MiB
	WriteTime  time.Duration // for one write to an agent: 30 s
	KeepAlive  time.Duration // between comments on an event stream: 25 s
	Page       int           // definitions in one page of a list: 250
	Gather     time.Duration // questions of one server are put together: 10 ms
	ChangeTime time.Duration // list changes are put together: 50 ms
}

func (l *Limits) fill() {
	set(&l.Body, 8<<20)
	set(&l.Sessions, 64)
	set(&l.InFlight, 256)
	set(&l.Rounds, 32)
	set(&l.RoundTime, 5*time.Minute)
	set(&l.Idle, time.Hour)
	set(&l.Messages, 1024)
	set(&l.Bytes, 4<<20)
	set(&l.WriteTime, 30*time.Second)
	set(&l.KeepAlive, 25*time.Second)
	set(&l.Page, 250)
	set(&l.Gather, 10*time.Millisecond)
	set(&l.ChangeTime, 50*time.Millisecond)
}

func set[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Gateway serves agents. Make one with New and end it with Close.
type Gateway struct {
	backend Backend
	client  func(*http.Request) (ClientInfo, bool)
	version string
	log     *slog.Logger
	limits  Limits

	ctx     context.Context // ends with the gateway
	cancel  context.CancelFunc
	running sync.WaitGroup // goroutines of the gateway's own
	events  chan Event
	stop    func() // ends the backend's subscription

	mu        sync.Mutex
	sessions  map[string]*session // over HTTP, by id
	streams   map[*session]struct{}
	listeners map[*listener]struct{}
	clients   map[string]*clientState
	parked    map[string]*work // by requestState
	watched   map[watch]int    // resource subscriptions at servers
	levels    map[plugins.ID]*leveling
}

// New starts a gateway.
func New(cfg Config) *Gateway {
	cfg.Limits.fill()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	g := &Gateway{
		backend: cfg.Backend, client: cfg.Client, version: cfg.Version, log: cfg.Log, limits: cfg.Limits,
		events:    make(chan Event, 1024),
		sessions:  map[string]*session{},
		streams:   map[*session]struct{}{},
		listeners: map[*listener]struct{}{},
		clients:   map[string]*clientState{},
		parked:    map[string]*work{},
		watched:   map[watch]int{},
		levels:    map[plugins.ID]*leveling{},
	}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.running.Add(1)
	go g.pump()
	g.stop = g.backend.Subscribe(g.take)
	return g
}

// Close ends every session, stream and request in flight and waits for what the
// gateway started itself. HTTP handlers return on their own soon after.
func (g *Gateway) Close() error {
	g.stop()
	g.mu.Lock()
	g.cancel() // under the lock: spawn looks at it there
	var all []*session
	for _, s := range g.sessions {
		all = append(all, s)
	}
	for s := range g.streams {
		all = append(all, s)
	}
	g.mu.Unlock()
	for _, s := range all {
		g.end(s, "the gateway is closing")
	}
	g.running.Wait()
	return nil
}

// ServeStream serves one agent over newline-delimited messages until the stream
// or ctx ends, and closes rw. It returns nil at the end of the input.
func (g *Gateway) ServeStream(ctx context.Context, client ClientInfo, rw io.ReadWriteCloser) error {
	return g.serveStream(ctx, client, rw)
}

// Problems returns what is missing from the clients' lists, and why. It speaks of
// clients that have asked for a list since the gateway started.
func (g *Gateway) Problems() []Problem {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []Problem
	for _, state := range g.clients {
		if v := state.view.Load(); v != nil {
			all = append(all, v.problems...)
		}
	}
	return all
}

// spawn runs f as one of the gateway's own goroutines, which Close waits for. It
// reports false once the gateway is closing.
func (g *Gateway) spawn(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx.Err() != nil {
		return false
	}
	g.running.Add(1)
	go func() {
		defer g.running.Done()
		f()
	}()
	return true
}
