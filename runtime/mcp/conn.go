package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/permissions"
)

const (
	// maxNotes and maxNoteBytes bound what waits for one call's client.
	maxNotes     = 1024
	maxNoteBytes = 1 << 20
	// maxAsks bounds the requests of one server that wait for a client.
	maxAsks = 16
)

// Upstream is the way back from a server to the one agent whose call is being
// served.
type Upstream interface {
	// Notify passes a notification on: progress of this call, and log messages
	// while this call is the only one. It is called in the order of arrival, by
	// the goroutine that is inside Call, and never after Call returned.
	Notify(method string, params json.RawMessage)
	// Request asks the agent. An error with a method RPCError() json.RawMessage
	// (*RPCError has it) is passed to the server byte for byte.
	Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// Supports reports whether the agent advertised what the method needs.
	Supports(method string) bool
}

// Options are how a connection treats its server.
type Options struct {
	// MaxFrame is the limit of a message in bytes; 0 is DefaultMaxFrame, and more
	// than HighestMaxFrame is that.
	MaxFrame int
	// SkipNoise passes over a bounded number of lines that are not MCP
	// (spec/stdio-framing.md 8).
	SkipNoise bool
	// Notification gets what belongs to no call: list changes and resource
	// updates. It is called by one goroutine; nil drops them.
	Notification func(method string, params json.RawMessage)
	// Changed is told of a list change by the reader itself, before it reads on;
	// it must not wait. nil for none.
	Changed func()
	// Ended says why the connection had to end, if it had to (a grant's Err). It
	// is preferred to the mere observation that the process is gone; nil for none.
	Ended func() error
	// Allowed is what a server that is dialled may be reached at besides its own
	// endpoint, and Network how.
	Allowed permissions.Set
	Network Network
	// Logger may be nil.
	Logger *slog.Logger
}

func (o Options) limit() int {
	if o.MaxFrame <= 0 {
		return DefaultMaxFrame
	}
	return min(o.MaxFrame, HighestMaxFrame)
}

// A wire carries messages. It is a child's pipes, or HTTP.
type wire interface {
	// receive delivers what the server sends until the wire is over and says
	// why. What an envelope holds is valid until deliver returns.
	receive(deliver func(Envelope)) *ProtocolError
	// send hands one line over, the request id or a notification (0). It returns
	// once the line is on its way, which is not yet received, or when ctx ends.
	send(ctx context.Context, id int64, line []byte) error
	// reply is send for answers and cancellations: it never waits. A line that
	// finds no room is dropped unless it must go; then the wire has failed.
	reply(line []byte, must bool)
	// expired is told that a call ended unanswered.
	expired(ctx context.Context)
	// end closes the wire and what is behind it. It is called once.
	end(cause *ProtocolError)
}

// Conn is a connection with one server. Calls may come from any goroutine.
type Conn struct {
	wire   wire
	notify func(method string, params json.RawMessage)
	logger *slog.Logger
	events events
	stats  counters
	dead   chan struct{} // closed when settled
	ended  chan struct{} // closed when what is behind the wire has been ended
	gone   chan struct{} // closed when nothing of the connection is left
	child  Child         // nil where there is none
	why    func() error
	change func()

	mu      sync.Mutex
	cause   *ProtocolError // the first failure, which is the last word
	lastID  int64
	pending map[int64]*call
	asks    map[string]*ask // requests of the server's, by raw id
}

// call is one request that waits for its answer; its fields are guarded by the
// connection's mutex, and up, id and token never change.
type call struct {
	id    int64
	up    Upstream
	token []byte // the agent's own progress token
	wake  chan struct{}

	notes     []note
	noteBytes int
	done      bool
	result    json.RawMessage
	err       error
}

type note struct {
	method string
	params json.RawMessage
}

func newConn(o Options) *Conn {
	c := &Conn{
		notify:  o.Notification,
		why:     o.Ended,
		change:  o.Changed,
		logger:  o.Logger,
		dead:    make(chan struct{}),
		ended:   make(chan struct{}),
		gone:    make(chan struct{}),
		pending: map[int64]*call{},
		asks:    map[string]*ask{},
	}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	c.events.wake = make(chan struct{}, 1)
	return c
}

// run reads until the wire is over. It is the only reader.
func (c *Conn) run() {
	var others sync.WaitGroup
	others.Go(func() { c.events.deliver(c.notify, c.dead) })
	c.fail(c.wire.receive(c.handle))
	others.Wait()
	<-c.ended
	close(c.gone)
}

// Done is closed when the connection has failed or was closed; Cause then says why.
func (c *Conn) Done() <-chan struct{} { return c.dead }

// Gone is closed when the child and the connection's goroutines have ended too.
func (c *Conn) Gone() <-chan struct{} { return c.gone }

// Cause returns nil while the connection stands, and then always the same
// *ProtocolError.
func (c *Conn) Cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		return nil
	}
	return c.cause
}

// Close ends the connection, politely. Calls in flight fail with reason, and so
// do later ones. It does not wait (Gone does); a second Close does nothing.
func (c *Conn) Close(reason error) {
	c.fail(closedBecause(reason))
}

func closedBecause(reason error) *ProtocolError {
	sentence := "the connection was closed"
	var refusal *coded.Error
	if errors.As(reason, &refusal) {
		sentence = refusal.Error()
	}
	return newProtocolError(Closed, sentence, reason)
}

// fail settles the connection (spec/stdio-framing.md 6). Only the first failure
// counts.
func (c *Conn) fail(cause *ProtocolError) {
	c.mu.Lock()
	if c.cause != nil {
		c.mu.Unlock()
		return
	}
	if c.why != nil && (cause.Code == TransportClosed || cause.Code == WriteFailed) {
		if reason := c.why(); reason != nil {
			cause = closedBecause(reason)
		}
	}
	cause.child, cause.at = c.child, time.Now()
	c.cause = cause
	waiting := c.pending
	c.pending = nil
	for _, p := range waiting {
		p.finish(nil, cause)
	}
	for _, open := range c.asks {
		open.cancel()
	}
	c.mu.Unlock()
	close(c.dead)
	c.logger.Debug("connection ended", "code", cause.Code, "pending", len(waiting))
	go func() {
		c.wire.end(cause)
		close(c.ended)
	}()
}

// finish needs the connection's mutex.
func (p *call) finish(result json.RawMessage, err error) {
	if !p.done {
		p.done, p.result, p.err = true, result, err
		p.rouse()
	}
}

func (p *call) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Call sends a request and returns its result byte for byte. The error is an
// *RPCError where the server answered with one, a *ProtocolError where the
// connection failed, or the cause of ctx: then the server is told and Call returns
// at once. up may be nil.
func (c *Conn) Call(ctx context.Context, method string, params json.RawMessage, up Upstream) (json.RawMessage, error) {
	from, to := 0, 0
	if len(params) > 0 {
		var err error
		if from, to, err = findToken(params); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	p := &call{up: up, token: params[from:to], wake: make(chan struct{}, 1)}
	if err := c.register(p); err != nil {
		return nil, err
	}
	if err := c.wire.send(ctx, p.id, appendRequest(p.id, method, params, from, to)); err != nil {
		return c.abandon(ctx, p, "", err)
	}
	for {
		select {
		case <-p.wake:
			if result, err, done := c.collect(p); done {
				return result, err
			}
		case <-ctx.Done():
			return c.abandon(ctx, p, method, context.Cause(ctx))
		}
	}
}

func (c *Conn) register(p *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return c.cause
	}
	c.lastID++
	p.id = c.lastID
	c.pending[p.id] = p
	return nil
}

// collect hands waiting notifications to the call's client, in order, and then
// the answer if there is one: progress never comes after its result.
func (c *Conn) collect(p *call) (json.RawMessage, error, bool) {
	c.mu.Lock()
	notes, result, err, done := p.notes, p.result, p.err, p.done
	p.notes, p.noteBytes = nil, 0
	c.mu.Unlock()
	for _, n := range notes {
		p.up.Notify(n.method, n.params)
	}
	return result, err, done
}

// abandon gives a call up unless its answer came meanwhile. A method that was
// sent is named, so that the server is told.
func (c *Conn) abandon(ctx context.Context, p *call, method string, reason error) (json.RawMessage, error) {
	c.mu.Lock()
	if p.done {
		c.mu.Unlock()
		result, err, _ := c.collect(p)
		return result, err
	}
	p.done = true
	delete(c.pending, p.id)
	c.dropAsks(p)
	c.mu.Unlock()
	if method != "" && method != "initialize" { // which must not be cancelled
		c.wire.reply(cancellation(p.id, reason), false)
	}
	c.wire.expired(ctx)
	return nil, reason
}

func cancellation(id int64, reason error) []byte {
	text := "the client gave up"
	if errors.Is(reason, context.DeadlineExceeded) {
		text = "the call took too long"
	}
	params := strconv.AppendInt([]byte(`{"requestId":`), id, 10)
	params = append(params, `,"reason":"`+text+`"}`...)
	return appendRequest(0, "notifications/cancelled", params, 0, 0)
}

// Notify sends a notification.
func (c *Conn) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if err := c.Cause(); err != nil {
		return err
	}
	return c.wire.send(ctx, 0, appendRequest(0, method, params, 0, 0))
}

// InFlight is the number of calls of agents that wait for an answer.
func (c *Conn) InFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, p := range c.pending {
		if p.up != nil {
			n++
		}
	}
	return n
}

// sole returns the one call of an agent's in flight; n is how many there are. It
// needs the mutex.
func (c *Conn) sole() (p *call, n int) {
	for _, candidate := range c.pending {
		if candidate.up != nil {
			p = candidate
			n++
		}
	}
	if n != 1 {
		p = nil
	}
	return p, n
}

// handle routes one message by its envelope. It never waits for anybody.
func (c *Conn) handle(e Envelope) {
	c.stats.messages.Add(1)
	switch e.Kind {
	case Response:
		c.answered(e)
	case Orphan:
		c.stats.orphans.Add(1)
	case Notification:
		c.notified(e)
	case Request:
		c.asked(e)
	}
}

func (c *Conn) answered(e Envelope) {
	id, exact, ok := idNumber(e.ID)
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending[id]
	switch {
	case !ok || p == nil && (id < 1 || id > c.lastID):
		c.stats.unknownAnswers.Add(1)
		return
	case p == nil:
		c.stats.lateAnswers.Add(1)
		return
	case !exact:
		c.stats.respelledIDs.Add(1)
	}
	delete(c.pending, id)
	c.dropAsks(p)
	if e.Error != nil {
		p.finish(nil, readRPCError(e.Error))
	} else {
		p.finish(bytes.Clone(e.Result), nil)
	}
}

// reject fails one call whose answer can no longer come.
func (c *Conn) reject(id int64, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.pending[id]; p != nil {
		delete(c.pending, id)
		c.dropAsks(p)
		p.finish(nil, cause)
	}
}

func (c *Conn) notified(e Envelope) {
	switch method := string(e.Method); method {
	case "notifications/progress":
		c.progressed(e.Params)
	case "notifications/cancelled":
		c.cancelAsk(e.Params)
	case "notifications/message", "notifications/elicitation/complete":
		c.said(method, e.Params)
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		if c.change != nil {
			c.change()
		}
		c.event(method, e.Params)
	case "notifications/resources/updated":
		c.event(method, e.Params)
	default:
		c.stats.unknownNotifications.Add(1)
	}
}

// said passes on what a server says during a call and without a link to it: to the
// one client whose call is in flight. With none or several, which of them it is
// about cannot be known, and it may tell of one client's data: nobody hears it.
func (c *Conn) said(method string, params []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, _ := c.sole()
	if p == nil {
		c.stats.droppedNotifications.Add(1)
		return
	}
	c.hold(p, method, bytes.Clone(params))
}

func (c *Conn) event(method string, params []byte) {
	if c.notify == nil || !c.events.add(method, params) {
		c.stats.droppedNotifications.Add(1)
	}
}

func (c *Conn) progressed(params []byte) {
	id, from, to, ok := tokenOf(params)
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending[id]
	if !ok || p == nil || p.up == nil || len(p.token) == 0 {
		c.stats.droppedNotifications.Add(1)
		return
	}
	c.hold(p, "notifications/progress", splice(params, from, to, p.token))
}

// hold queues a notification for a call's client; a client that is slower than
// the bound allows loses some, never its result. It needs the mutex.
func (c *Conn) hold(p *call, method string, params []byte) {
	if len(p.notes) >= maxNotes || p.noteBytes+len(params) > maxNoteBytes {
		c.stats.droppedNotifications.Add(1)
		return
	}
	p.notes = append(p.notes, note{method, params})
	p.noteBytes += len(params)
	p.rouse()
}

// Stats is what a connection counted.
type Stats struct {
	Messages             int64 `json:"messages"`
	NoiseLines           int64 `json:"noiseLines"`
	NoiseBytes           int64 `json:"noiseBytes"`
	ByteOrderMarks       int64 `json:"byteOrderMarks"`
	LateAnswers          int64 `json:"lateAnswers"`    // to calls that were given up or answered before
	UnknownAnswers       int64 `json:"unknownAnswers"` // to ids that were never used
	RespelledIDs         int64 `json:"respelledIds"`   // our number came back as a string or a float
	Orphans              int64 `json:"orphans"`        // error answers with a null id
	UnknownNotifications int64 `json:"unknownNotifications"`
	DroppedNotifications int64 `json:"droppedNotifications"`
}

type counters struct {
	messages, noiseLines, noiseBytes, marks            atomic.Int64
	lateAnswers, unknownAnswers, respelledIDs, orphans atomic.Int64
	unknownNotifications, droppedNotifications         atomic.Int64
}

// Stats returns the counts so far.
func (c *Conn) Stats() Stats {
	s := &c.stats
	return Stats{
		Messages: s.messages.Load(), NoiseLines: s.noiseLines.Load(), NoiseBytes: s.noiseBytes.Load(),
		ByteOrderMarks: s.marks.Load(), LateAnswers: s.lateAnswers.Load(), UnknownAnswers: s.unknownAnswers.Load(),
		RespelledIDs: s.respelledIDs.Load(), Orphans: s.orphans.Load(),
		UnknownNotifications: s.unknownNotifications.Load(), DroppedNotifications: s.droppedNotifications.Load(),
	}
}
