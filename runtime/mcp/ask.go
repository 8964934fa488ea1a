package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"time"
)

// askTimeout bounds how long a server's question may wait for a person.
const askTimeout = 10 * time.Minute

// ask is a request of the server's that waits for a client; it is guarded by the
// connection's mutex.
type ask struct {
	of        *call
	cancel    context.CancelFunc
	takenBack bool
}

// asked answers a request of the server's, now or by asking the one client that
// can have caused it (spec/stdio-framing.md 7). A stdio server's request carries
// no link to a call, so with several calls in flight nobody is asked.
func (c *Conn) asked(e Envelope) {
	switch method := string(e.Method); method {
	case "ping":
		c.wire.reply(appendAnswer(e.ID, "result", []byte("{}")), true)
	case "roots/list", "sampling/createMessage", "elicitation/create":
		if refusal := c.forward(method, bytes.Clone(e.ID), bytes.Clone(e.Params)); refusal != nil {
			c.wire.reply(appendAnswer(e.ID, "error", refusal), true)
		}
	default:
		c.wire.reply(appendAnswer(e.ID, "error", errorObject(codeMethodNotFound, "method not found", nil)), true)
	}
}

func (c *Conn) forward(method string, id, params []byte) (refusal []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, n := c.sole()
	switch {
	case c.cause != nil:
		return nil
	case n == 0:
		return errorObject(codeNobodyToAsk, "no call is in flight, so there is no client to ask", nil)
	case n > 1:
		return errorObject(codeNobodyToAsk, "several calls are in flight, so it is not known which client to ask", nil)
	case !p.up.Supports(method):
		return errorObject(codeMethodNotFound, "the client does not support this", nil)
	case c.asks[string(id)] != nil:
		return errorObject(codeInvalidRequest, "a request with this id is still open", nil)
	case len(c.asks) >= maxAsks:
		return errorObject(codeNobodyToAsk, "too many requests are waiting for the client", nil)
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	c.asks[string(id)] = &ask{of: p, cancel: cancel}
	go c.ask(ctx, p.up, method, id, params)
	return nil
}

func (c *Conn) ask(ctx context.Context, up Upstream, method string, id, params []byte) {
	result, err := up.Request(ctx, method, params)
	c.mu.Lock()
	open := c.asks[string(id)]
	delete(c.asks, string(id))
	open.cancel()
	c.mu.Unlock()
	switch {
	case open.takenBack: // then the server wants no answer
	case err != nil:
		c.wire.reply(appendAnswer(id, "error", errorOf(err)), true)
	case !json.Valid(result):
		c.wire.reply(appendAnswer(id, "error", errorObject(codeInternal, "the client's answer was not JSON", nil)), true)
	default:
		c.wire.reply(appendAnswer(id, "result", result), true)
	}
}

// cancelAsk ends a question that the server took back.
func (c *Conn) cancelAsk(params []byte) {
	var scan scanner
	scan.reset(params)
	var id []byte
	scan.members(func(name []byte, from, to int) bool {
		if string(name) == "requestId" {
			id = params[from:to]
		}
		return true
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if open := c.asks[string(id)]; open != nil {
		open.takenBack = true
		open.cancel()
	}
}

// dropAsks ends the questions that came up during a call which is over. It needs
// the mutex.
func (c *Conn) dropAsks(p *call) {
	for _, open := range c.asks {
		if open.of == p {
			open.cancel()
		}
	}
}
