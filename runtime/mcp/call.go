package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
)

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
