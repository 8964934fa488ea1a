package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"sallyport/runtime/approvals"
	"sallyport/runtime/plugins"
)

const (
	defaultCallTimeout  = 10 * time.Minute
	defaultStartTimeout = 60 * time.Second
	// patience is how long a call waits for a restart that is held back.
	patience = 2 * time.Second
)

// Config is what NewPool needs. Gate and Processes are required.
type Config struct {
	Processes Starter
	Gate      Gate
	// Version is Sallyport's own, told to servers.
	Version string
	// Events gets what happens, in order for each session; nil drops it. It must
	// not call back into the pool before it returns.
	Events func(Event)
	// CallTimeout bounds a call (10 minutes unless set), StartTimeout everything
	// between a grant and the first list (60 s unless set).
	CallTimeout, StartTimeout time.Duration
	// IdleAfter stops a server that nobody has used for so long; 0 never does. nil is never.
	IdleAfter func() time.Duration
	// Headers gives the values of a dialled connector's headers; nil takes them as
	// they are declared.
	Headers func(ctx context.Context, l approvals.Launch) (map[string]string, error)
	// Bearer signs what a dialled connector sends, for a first try too; nil, or a nil
	// one, signs nothing.
	Bearer func(l approvals.Launch, probe bool) Bearer
	// Network is how connectors are dialled; the zero one is the system's.
	Network Network
	Now     func() time.Time
	Logger  *slog.Logger
}

// Pool holds one session for each connector that runs and shares it among all
// clients. A session starts on first use; every start, restarts included, asks the
// gate first (spec/approval.md 5.1).
type Pool struct {
	config Config
	guard  guard
	ctx    context.Context
	cancel context.CancelCauseFunc
	tasks  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	slots  map[plugins.ID]*slot
}

// slot is one connector's place. Guarded by the pool's mutex.
type slot struct {
	session  *Session // the last one; it may be over
	attempt  *attempt // the start under way
	failures int      // in a row
	retry    time.Time
	parked   error
}

// NewPool returns a pool in which nothing runs.
func NewPool(c Config) *Pool {
	return newPool(c, gateGuard{c.Gate, c.Processes})
}

func newPool(c Config, g guard) *Pool {
	if c.CallTimeout <= 0 {
		c.CallTimeout = defaultCallTimeout
	}
	if c.StartTimeout <= 0 {
		c.StartTimeout = defaultStartTimeout
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Pool{config: c, guard: g, slots: map[plugins.ID]*slot{}}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return p
}

func (p *Pool) tell(e Event) {
	if p.config.Events != nil {
		p.config.Events(e)
	}
}

// Call calls the tool that cg was given for, in a session of the same connector.
// The gate is asked once more at the moment of the call. The name in params is
// replaced by the grant's; all else reaches the server byte for byte.
func (p *Pool) Call(ctx context.Context, cg approvals.CallGrant, s *Session, params json.RawMessage, up Upstream) (json.RawMessage, error) {
	if err := cg.Err(); err != nil {
		return nil, err
	}
	return p.call(ctx, cg.Grant(), s, cg.Tool(), cg.Client(), params, up)
}

func (p *Pool) call(ctx context.Context, g permit, s *Session, tool, client string, params json.RawMessage, up Upstream) (json.RawMessage, error) {
	if g.ID() != s.id || g.Identity() != s.permit.Identity() || g.Probe() || s.permit.Probe() {
		return nil, noGrant("the grant is not for this server")
	}
	if err := s.permit.Err(); err != nil {
		return nil, err
	}
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	if err := p.guard.mayCall(ctx, s.permit, tool, client); err != nil {
		return nil, err
	}
	params, err := setName(params, tool)
	if err != nil {
		return nil, err
	}
	return s.request(ctx, "tools/call", params, up)
}
