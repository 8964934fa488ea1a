package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sort"
	"sync"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/plugins"
	"sallyport/runtime/process"
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
	// IdleAfter stops a server that nobody has used for so long; 0 never does.
	IdleAfter time.Duration
	// Headers gives the values of a dialled connector's headers; nil takes them as
	// they are declared.
	Headers func(ctx context.Context, l approvals.Launch) (map[string]string, error)
	// Network is how connectors are dialled; the zero one is the system's.
	Network Network
	Now     func() time.Time
	Logger  *slog.Logger
}

// EventKind is what an Event tells.
type EventKind string

// The kinds of events.
const (
	Started     EventKind = "started"
	Stopped     EventKind = "stopped" // on purpose: Err is the reason
	Crashed     EventKind = "crashed" // Err is the cause, Retry when it may start again
	ParkedEvent EventKind = "parked"  // it crashed too often: see Unpark
	ListChanged EventKind = "list-changed"
	Notified    EventKind = "notified" // a notification that belongs to no call
)

// Event is something that happened to a session.
type Event struct {
	Kind   EventKind
	ID     plugins.ID
	PID    int
	Err    error
	Retry  time.Time
	Tools  []approvals.ToolState // of Started and ListChanged
	Method string                // of Notified
	Params json.RawMessage
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

// attempt is a start that everybody who needs it waits for.
type attempt struct {
	cancel  context.CancelCauseFunc
	done    chan struct{}
	session *Session
	err     error
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

// Session returns the running session of a connector and starts it if there is
// none. Everybody who asks meanwhile gets the same one. The error is the gate's
// refusal, or why it cannot start; parked and restarting are those of the pool.
func (p *Pool) Session(ctx context.Context, id plugins.ID) (*Session, error) {
	for {
		session, try, hold, err := p.claim(id)
		switch {
		case err != nil:
			return nil, err
		case session != nil:
			session.touch()
			return session, nil
		case try == nil:
			if err := hold.wait(ctx); err != nil {
				return nil, err
			}
			continue
		}
		select {
		case <-try.done:
			return try.session, try.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// hold is what a start has to wait for: a session before it that is not over yet,
// or the time.
type hold struct {
	over  <-chan struct{}
	delay time.Duration
}

func (h hold) wait(ctx context.Context) error {
	var late <-chan time.Time
	if h.over == nil {
		timer := time.NewTimer(h.delay)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-h.over:
		return nil
	case <-late:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// claim finds the session, joins the start under way, begins one, or says what to
// wait for. A session must be gone and accounted for before the next one starts:
// two processes of a connector would share its data folder, and a crash that is
// not counted yet would not be held back.
func (p *Pool) claim(id plugins.ID) (*Session, *attempt, hold, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, hold{}, context.Cause(p.ctx)
	}
	s := p.slots[id]
	if s == nil {
		s = &slot{}
		p.slots[id] = s
	}
	wait := s.retry.Sub(p.config.Now())
	switch {
	case s.attempt != nil:
		return nil, s.attempt, hold{}, nil
	case s.session != nil && s.session.Err() == nil:
		return s.session, nil, hold{}, nil
	case s.session != nil && !s.session.isOver():
		return nil, nil, hold{over: s.session.over}, nil
	case s.parked != nil:
		return nil, nil, hold{}, s.parked
	case wait > patience:
		return nil, nil, hold{}, &coded.Error{Code: "restarting",
			Sentence: fmt.Sprintf("the server failed and is tried again in %d seconds", int(wait.Seconds())+1), Next: "try again later"}
	case wait > 0:
		return nil, nil, hold{delay: wait}, nil
	}
	ctx, cancel := context.WithCancelCause(p.ctx)
	try := &attempt{cancel: cancel, done: make(chan struct{})}
	s.attempt = try
	p.tasks.Go(func() { p.attempt(ctx, id, try) })
	return nil, try, hold{}, nil
}

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
	s, err = p.open(ctx, granted)
	if err != nil {
		return nil, nil, granted.Err() == nil && deniedBy(err) == nil, err
	}
	return s, p.guard.live(granted, s.Offer()), false, nil
}

// open starts or dials, shakes hands and lists, under a grant that stands. After
// an error nothing is left.
func (p *Pool) open(ctx context.Context, g permit) (*Session, error) {
	launch, err := g.Launch()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.config.StartTimeout, startTimeout())
	defer cancel()
	s := &Session{pool: p, id: g.ID(), permit: g, since: p.config.Now(), settled: make(chan struct{}), over: make(chan struct{})}
	s.touch()
	options := Options{
		MaxFrame: int(launch.Options.MaxFrame), SkipNoise: launch.Options.StdoutNoise == "skip",
		Ended: g.Err, Logger: p.config.Logger,
		Allowed: launch.Permissions, Network: p.config.Network,
		Changed:      s.changed,
		Notification: s.notified,
	}
	if err := p.connect(ctx, s, launch, options); err != nil {
		return nil, err
	}
	if s.server, err = Handshake(ctx, s.conn, p.config.Version); err == nil {
		s.offer, err = listOffer(ctx, s.conn, s.server)
	}
	if err == nil {
		err = g.Err()
	}
	if err != nil {
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
	case plugins.StreamableHTTP:
		headers, err := p.headers(ctx, l)
		if err != nil {
			return err
		}
		s.conn, err = Dial(l.URL, headers, o)
		return err
	}
	return coded.New("transport-unsupported", fmt.Sprintf("connectors of the transport %q cannot be used", l.Transport))
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

// watch ends a session with its grant, or when nobody uses it, and accounts for
// its end.
func (p *Pool) watch(s *Session) {
	defer close(s.over)
	var idle <-chan time.Time
	if p.config.IdleAfter > 0 {
		ticker := time.NewTicker(max(p.config.IdleAfter/4, time.Millisecond))
		defer ticker.Stop()
		idle = ticker.C
	}
	for over := false; !over; {
		select {
		case <-s.permit.Done():
			s.conn.Close(s.permit.Err())
			over = true
		case <-idle:
			unused := p.config.Now().Sub(time.Unix(0, s.used.Load()))
			if s.conn.InFlight() == 0 && unused >= p.config.IdleAfter {
				s.conn.Close(coded.New("idle", "nobody used the server for a while"))
				over = true
			}
		case <-s.conn.Done():
			over = true
		}
	}
	<-s.conn.Gone()
	cause := s.conn.Cause()
	var fault *ProtocolError
	if errors.As(cause, &fault) && fault.Code == Closed {
		p.tell(Event{Kind: Stopped, ID: s.id, PID: s.pid, Err: cause})
		return
	}
	p.crashed(s.id, s.pid, s.since, cause)
}

// crashed holds the next start back, or parks the connector.
func (p *Pool) crashed(id plugins.ID, pid int, since time.Time, cause error) {
	now := p.config.Now()
	uptime := now.Sub(since)
	p.mu.Lock()
	s := p.slots[id]
	if uptime >= process.SteadyUptime {
		s.failures = 0
	}
	s.failures++
	delay, parked := process.Backoff(s.failures, uptime)
	s.retry = now.Add(delay)
	event := Event{Kind: Crashed, ID: id, PID: pid, Err: cause, Retry: s.retry}
	if parked {
		s.parked = &coded.Error{Code: "parked", Sentence: "the server failed too often and is not started any more",
			Next: "look at its log, then start it again", Err: cause}
		event = Event{Kind: ParkedEvent, ID: id, PID: pid, Err: s.parked}
	}
	p.mu.Unlock()
	p.tell(event)
}

// Unpark lets a connector be started again at once, its failures forgotten.
func (p *Pool) Unpark(id plugins.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.slots[id]; s != nil {
		s.failures, s.retry, s.parked = 0, time.Time{}, nil
	}
}

// Probe starts a connector under a grant, lists what it offers and stops it.
// Nothing is recorded and nothing is called.
func (p *Pool) Probe(ctx context.Context, g approvals.Grant) (approvals.Offer, error) {
	return p.probe(ctx, g)
}

func (p *Pool) probe(ctx context.Context, g permit) (approvals.Offer, error) {
	if err := g.Err(); err != nil {
		return approvals.Offer{}, err
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return approvals.Offer{}, context.Cause(p.ctx)
	}
	p.tasks.Add(1)
	p.mu.Unlock()
	defer p.tasks.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.ctx, func() { cancel(context.Cause(p.ctx)) })()
	s, err := p.open(ctx, g)
	if err != nil {
		return approvals.Offer{}, err
	}
	s.conn.Close(coded.New("probed", "the first try is over"))
	<-s.conn.Gone()
	return s.Offer(), nil
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
	if err := s.current(ctx); err != nil {
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

// Stop ends the session of a connector, or the start under way; calls in flight
// fail with reason. It returns when the process tree is gone, or with ctx.
func (p *Pool) Stop(ctx context.Context, id plugins.ID, reason error) error {
	if reason == nil {
		reason = errStopped
	}
	p.mu.Lock()
	var try *attempt
	var session *Session
	if s := p.slots[id]; s != nil {
		try, session = s.attempt, s.session
	}
	p.mu.Unlock()
	if try != nil {
		try.cancel(reason)
		select {
		case <-try.done:
			session = try.session
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if session == nil {
		return nil
	}
	session.conn.Close(reason)
	select {
	case <-session.over:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cannot wait for %s to stop: %w", id, context.Cause(ctx))
	}
}

// Close stops everything. Nothing starts any more.
func (p *Pool) Close(ctx context.Context) error {
	reason := coded.New("host-closing", "Sallyport is closing")
	p.mu.Lock()
	p.closed = true
	var ids []plugins.ID
	for id := range p.slots {
		ids = append(ids, id)
	}
	p.mu.Unlock()
	p.cancel(reason)
	errs := make([]error, len(ids))
	var stops sync.WaitGroup
	for i, id := range ids {
		stops.Go(func() { errs[i] = p.Stop(ctx, id, reason) })
	}
	stops.Wait()
	done := make(chan struct{})
	go func() { p.tasks.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		errs = append(errs, fmt.Errorf("cannot wait for the sessions to end: %w", context.Cause(ctx)))
	}
	return errors.Join(errs...)
}

// Info is a running session, for people.
type Info struct {
	ID         plugins.ID      `json:"id"`
	PID        int             `json:"pid,omitempty"`
	Since      time.Time       `json:"since"`
	InFlight   int             `json:"inFlight"`
	ServerInfo json.RawMessage `json:"serverInfo,omitempty"`
	Stats      Stats           `json:"stats"`
	// Stderr is the end of what the server wrote there: untrusted text.
	Stderr []string `json:"stderr,omitempty"`
}

// Running lists the sessions that can be used, by connector.
func (p *Pool) Running() []Info {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Info
	for _, slot := range p.slots {
		if s := slot.session; s != nil && s.Err() == nil {
			all = append(all, Info{s.id, s.pid, s.since, s.conn.InFlight(), s.server.Info, s.conn.Stats(), s.Tail()})
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].ID.String() < all[j].ID.String() })
	return all
}
