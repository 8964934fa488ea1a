package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
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
	// Bearer signs the requests to such a server; nil where nobody signs in, and
	// unused where the connector sends an Authorization header of its own.
	Bearer Bearer
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
	if cause.Code == TransportClosed || cause.Code == WriteFailed {
		if reason := reasonOf(c.child); reason != nil {
			cause = newProtocolError(cause.Code, cause.Sentence, reason)
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

// reasonOf is why a child was ended by whoever watches it; nil where it was not.
func reasonOf(child Child) error {
	if ended, ok := child.(interface{ Reason() error }); ok {
		return ended.Reason()
	}
	return nil
}

// Notify sends a notification.
func (c *Conn) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if err := c.Cause(); err != nil {
		return err
	}
	return c.wire.send(ctx, 0, appendRequest(0, method, params, 0, 0))
}
