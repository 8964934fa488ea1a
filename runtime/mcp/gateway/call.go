package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"sallyport/internal/coded"
)

// sink takes messages that belong to one request, in front of its answer.
type sink interface {
	post(message []byte) bool
}

// call is one request of an agent while it is served. It is the Upstream of that
// request for the older generation; a work is for the newer one.
type call struct {
	g       *Gateway
	client  *clientState
	session *session // nil for 2026-07-28 over HTTP
	ctx     context.Context
	cancel  context.CancelCauseFunc

	id     []byte // nil never happens: a call has an id
	method string
	params []byte // an object, or nil

	modern bool
	caps   []byte // what the agent can do: its capabilities object
	level  level  // 2026-07-28: this request's
	token  []byte // its progress token as written, nil without
	out    sink
	gone   <-chan struct{} // closed when out has no reader any more; may be nil
}

// errGone is why a question cannot be put: nobody is there to read it.
var errGone = &coded.Error{Code: "client-gone", Sentence: "the agent that made the call is no longer connected", Err: context.Canceled}

// errWithdrawn is the cause of a call's end when the agent cancelled it.
var errWithdrawn = ended("the agent cancelled the request")

// ended is the cause of a context that was cancelled, for whoever records why. It
// is context.Canceled as well.
func ended(sentence string) error {
	return &coded.Error{Code: "cancelled", Sentence: sentence, Err: context.Canceled}
}

// abandoned reports whether nobody is there any more to read the answer.
func (c *call) abandoned() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// readMeta takes what the gateway needs from a request's _meta.
func (c *call) readMeta() {
	meta, ok := lookup(c.params, "_meta")
	if !ok {
		return
	}
	for walk := members(meta); ; {
		f, ok := walk.next()
		if !ok {
			return
		}
		if f.named("progressToken") {
			c.token = f.value(meta)
		}
	}
}

// Notify implements Upstream.
func (c *call) Notify(method string, params json.RawMessage) {
	if message := c.notification(method, params); message != nil {
		c.out.post(message)
	}
}

// notification returns the message for the agent, or nil where it is not meant
// for this one: progress without a token, logging below its level, or anything
// that does not belong to a request.
func (c *call) notification(method string, params json.RawMessage) []byte {
	switch method {
	case "notifications/progress":
		if c.token == nil {
			return nil
		}
		params = withToken(params, c.token)
	case "notifications/message":
		least := c.level
		if !c.modern {
			least = c.session.shown()
		}
		if !least.admits(params) {
			return nil
		}
	case "notifications/elicitation/complete":
	default:
		return nil
	}
	return notification(method, params)
}

// withToken puts the agent's own token into a progress notification: the servers
// are shared and know it under another one.
func withToken(params, token []byte) []byte {
	for walk := members(params); ; {
		f, ok := walk.next()
		if !ok {
			return prepend(params, `"progressToken":`+string(token))
		}
		if f.named("progressToken") {
			if bytes.Equal(params[f.start:f.end], token) {
				return params
			}
			return splice(params, f.start, f.end, token)
		}
	}
}

// Request implements Upstream: a question on the request's own stream.
func (c *call) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if c.modern || !c.Supports(method) {
		return nil, unsupported(method)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(c.ctx, func() { stop(context.Cause(c.ctx)) })()
	return c.session.ask(ctx, c.out, c.gone, method, params)
}

// Supports implements Upstream. One of the newer generation is asked by a work.
func (c *call) Supports(method string) bool { return supports(c.caps, method) }

// supports reports whether capabilities cover a method of the server's.
func supports(caps []byte, method string) bool {
	name := ""
	switch method {
	case "sampling/createMessage":
		name = "sampling"
	case "elicitation/create":
		name = "elicitation"
	case "roots/list":
		name = "roots"
	default:
		return false
	}
	value, ok := lookup(caps, name)
	return ok && len(value) > 0 && value[0] == '{'
}

func unsupported(method string) error {
	return refuse(codeMethodNotFound, fmt.Sprintf("Method not found: the agent does not offer %s", method), nil)
}

func notification(method string, params []byte) []byte {
	out := make([]byte, 0, len(params)+len(method)+48)
	out = append(out, `{"jsonrpc":"2.0","method":"`...)
	out = append(out, method...)
	out = append(out, '"')
	if len(params) > 0 {
		out = append(out, `,"params":`...)
		out = append(out, params...)
	}
	return append(out, '}')
}
