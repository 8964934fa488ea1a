package mcp

import (
	"context"
	"fmt"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/plugins"
)

// attempt makes one start and accounts for it.
func (p *Pool) attempt(ctx context.Context, id plugins.ID, try *attempt) {
	defer try.cancel(nil)
	started := p.config.Now()
	session, states, counts, err := p.begin(ctx, id)
	if err == nil {
		p.mu.Lock()
		p.slots[id].session = session
		p.mu.Unlock()
		p.tell(Event{Kind: Started, ID: id, PID: session.pid, Tools: states})
		if session.open() {
			p.tasks.Go(func() { session.relist(p.ctx) })
		}
		p.tasks.Go(func() { p.watch(session) })
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // who stopped it says it better
	} else if err != nil && counts {
		p.crashed(id, 0, started, err)
	}
	p.mu.Lock()
	p.slots[id].attempt = nil
	p.mu.Unlock()
	try.session, try.err = session, err
	close(try.done)
}

// begin asks for a grant and opens a session under it. A refusal does not count as
// a crash.
func (p *Pool) begin(ctx context.Context, id plugins.ID) (s *Session, states []approvals.ToolState, counts bool, err error) {
	granted, err := p.guard.grant(ctx, id)
	if err != nil {
		return nil, nil, false, err
	}
	if granted.ID() != id || granted.Probe() {
		return nil, nil, false, noGrant("the grant is for something else")
	}
	s, err = p.open(ctx, granted, nil)
	if err != nil {
		return nil, nil, granted.Err() == nil && refusedBy(err) == nil, err
	}
	return s, p.guard.live(granted, s.Offer()), false, nil
}

// open starts or dials, shakes hands and lists, under a grant that stands. After
// an error nothing is left.
func (p *Pool) open(ctx context.Context, g permit, watch ProbeWatch) (*Session, error) {
	launch, err := g.Launch()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.config.StartTimeout, startTimeout())
	defer cancel()
	s := &Session{pool: p, id: g.ID(), permit: g, since: p.config.Now(), settled: make(chan struct{}), over: make(chan struct{}),
		allowed: launch.Permissions, budget: launch.Options.Budget.Effective()}
	s.touch()
	options := Options{
		MaxFrame: int(launch.Options.MaxFrame), SkipNoise: launch.Options.StdoutNoise == "skip",
		Ended: g.Err, Logger: p.config.Logger,
		Allowed: launch.Permissions, Network: p.config.Network,
		Bearer:       p.bearer(launch, g.Probe()),
		Changed:      s.changed,
		Notification: s.notified,
	}
	watch.tell(ProbeStarting, nil)
	if err := p.connect(ctx, s, launch, options); err != nil {
		return nil, err
	}
	watch.tell(ProbeHandshake, s.conn.child)
	if s.server, err = Handshake(ctx, s.conn, p.config.Version); err == nil {
		watch.tell(ProbeListing, s.conn.child)
		s.offer, err = listOffer(ctx, s.conn, s.server)
	}
	if err == nil {
		err = g.Err()
	}
	if err != nil {
		watch.tell(ProbeStopping, s.conn.child)
		s.conn.Close(err)
		<-s.conn.Gone()
		return nil, err
	}
	return s, nil
}

func (p *Pool) connect(ctx context.Context, s *Session, l approvals.Launch, o Options) error {
	switch l.Transport {
	case plugins.Stdio:
		child, err := p.guard.start(ctx, s.permit)
		if err != nil {
			return err
		}
		s.pid, s.conn = child.PID(), Connect(child, o)
		return nil
	case plugins.StreamableHTTP, plugins.SSE:
		headers, err := p.headers(ctx, l)
		if err != nil {
			return err
		}
		dial := Dial
		if l.Transport == plugins.SSE {
			dial = DialSSE
		}
		s.conn, err = dial(l.URL, headers, o)
		return err
	}
	return coded.New("transport-unsupported", fmt.Sprintf("connectors of the transport %q cannot be used", l.Transport))
}

func (p *Pool) bearer(l approvals.Launch, probe bool) Bearer {
	if p.config.Bearer == nil || l.Transport == plugins.Stdio {
		return nil
	}
	return p.config.Bearer(l, probe)
}

func (p *Pool) headers(ctx context.Context, l approvals.Launch) (map[string]string, error) {
	if p.config.Headers != nil {
		return p.config.Headers(ctx, l)
	}
	headers := map[string]string{}
	for _, h := range l.Headers {
		headers[h.Name] = h.Value
	}
	return headers, nil
}

func startTimeout() error {
	return coded.New("start-timeout", "the server was not ready in time")
}
