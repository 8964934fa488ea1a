package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sallyport/internal/coded"
)

// work is a 2026-07-28 request while a server works on it. It outlives the HTTP
// request that brought it: when the server asks the agent something, the agent
// gets the question as an input_required result, and its next request, under the
// unguessable requestState and only by the same client for the same thing, brings
// the answer and waits on.
type work struct {
	g      *Gateway
	state  *clientState
	owner  *session // the stream that brought it, nil over HTTP
	method string
	params []byte            // of the first request
	print  [sha256.Size]byte // of both, made when it is first parked
	ctx    context.Context
	stop   context.CancelCauseFunc
	done   chan outcome  // one value
	asked  chan struct{} // one value while there are new questions

	mu        sync.Mutex
	call      *call // the request that waits now; nil while parked
	caps      []byte
	questions []*question
	asks      int
	expiry    *time.Timer
}

type outcome struct {
	result json.RawMessage
	err    error
}

var (
	errStale   = coded.New("request-state-unknown", "the requestState is unknown, was used already, has expired or belongs to another request")
	errClosing = ended("Sallyport is closing")
	errFull    = coded.New("too-many-requests", "too many requests of this client wait for input")
)

// converse serves a request that may need the agent's input.
func (g *Gateway) converse(c *call, run func(context.Context, Upstream) (json.RawMessage, error)) (json.RawMessage, error) {
	state := text(c.params, "requestState")
	if !strings.HasPrefix(state, statePrefix) {
		if !asksInput(c.method) || !c.answers() {
			return run(c.ctx, c) // nothing can come in between
		}
		return g.await(c, g.begin(c, run))
	}
	w := g.resume(c, state)
	if w == nil {
		return nil, refuseCoded(codeInvalidParams, errStale)
	}
	responses, _ := lookup(c.params, "inputResponses")
	w.deliver(responses)
	return g.await(c, w)
}

// answers reports whether the agent can answer any question at all.
func (c *call) answers() bool {
	return c.Supports("elicitation/create") || c.Supports("sampling/createMessage") || c.Supports("roots/list")
}

// begin starts the work. Its context is its own: it ends with the gateway, with
// the stream, when the waiting request goes away, or when nobody comes back.
func (g *Gateway) begin(c *call, run func(context.Context, Upstream) (json.RawMessage, error)) *work {
	w := &work{
		g: g, state: c.client, owner: c.session, method: c.method, params: c.params,
		caps: c.caps, done: make(chan outcome, 1), asked: make(chan struct{}, 1),
	}
	parent := g.ctx
	if c.session != nil {
		parent = c.session.ctx
	}
	w.ctx, w.stop = context.WithCancelCause(parent)
	w.attach(c)
	started := g.spawn(func() {
		result, err := run(w.ctx, w)
		w.done <- outcome{result, err}
	})
	if !started {
		w.done <- outcome{err: errClosing}
	}
	return w
}

// await gives the agent whatever comes first: the result, or questions.
func (g *Gateway) await(c *call, w *work) (json.RawMessage, error) {
	w.attach(c)
	defer w.detach(c)
	gather := time.NewTimer(0)
	<-gather.C
	defer gather.Stop()
	for {
		select {
		case out := <-w.done:
			w.stop(nil)
			return out.result, out.err
		case <-c.ctx.Done():
			w.stop(context.Cause(c.ctx))
			return nil, context.Cause(c.ctx)
		case <-w.asked:
			// A server that asks for several things asks for them at about the
			// same time.
			gather.Reset(g.limits.Gather)
		case <-gather.C:
			if w.asking() {
				return g.park(w)
			}
		}
	}
}

// asking reports whether there still is a question: servers take some back.
func (w *work) asking() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.questions) > 0
}

// park keeps the work for the agent's next request and returns the questions.
func (g *Gateway) park(w *work) (json.RawMessage, error) {
	state := statePrefix + rand.Text() + rand.Text()
	w.mu.Lock()
	if w.params != nil {
		w.print, w.params = fingerprint(w.method, w.params), nil
	}
	select { // what was asked meanwhile is in the list as well
	case <-w.asked:
	default:
	}
	asking := inputRequired(w.questions, state)
	w.expiry = time.AfterFunc(g.limits.RoundTime, func() { g.expire(state) })
	w.mu.Unlock()

	g.mu.Lock()
	full := w.state.waiting >= g.limits.Rounds
	if !full {
		g.parked[state] = w
		w.state.waiting++
	}
	g.mu.Unlock()
	switch {
	case full:
		w.expiry.Stop()
		w.stop(errFull)
		return nil, errFull
	case w.ctx.Err() != nil: // it ended while it was being put away
		g.expire(state)
		return nil, context.Cause(w.ctx)
	}
	return asking, nil
}

// unpark takes a parked work out, if it is the client's.
func (g *Gateway) unpark(state string, client *clientState) *work {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.parked[state]
	if w == nil || client != nil && w.state != client {
		return nil
	}
	delete(g.parked, state)
	w.state.waiting--
	return w
}

func (g *Gateway) expire(state string) {
	if w := g.unpark(state, nil); w != nil {
		w.stop(coded.New("input-timeout", "the agent did not bring the input in time"))
	}
}

// resume finds the parked work that a request continues. A wrong client leaves it
// alone, and so does a wrong request: guessing must not end somebody's work.
func (g *Gateway) resume(c *call, state string) *work {
	g.mu.Lock()
	w := g.parked[state]
	g.mu.Unlock()
	if w == nil || w.state != c.client || w.owner != c.session || w.print != fingerprint(c.method, c.params) {
		return nil
	}
	if w = g.unpark(state, c.client); w != nil {
		w.expiry.Stop()
	}
	return w
}

// deliver hands out the answers. Questions without one stay, to be put again;
// answers without a question are ignored.
func (w *work) deliver(responses []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.questions = slices.DeleteFunc(w.questions, func(q *question) bool {
		value, ok := lookup(responses, q.key)
		if !ok || len(value) == 0 || value[0] != '{' {
			return false
		}
		q.reply <- value
		return true
	})
	if len(w.questions) > 0 {
		w.signal()
	}
}

func (w *work) signal() {
	select {
	case w.asked <- struct{}{}:
	default:
	}
}

func (w *work) attach(c *call) {
	w.mu.Lock()
	w.call, w.caps = c, c.caps
	w.mu.Unlock()
}

func (w *work) detach(c *call) {
	w.mu.Lock()
	if w.call == c {
		w.call = nil
	}
	w.mu.Unlock()
}

// Notify implements Upstream. While nobody waits there is nobody to tell.
func (w *work) Notify(method string, params json.RawMessage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.call != nil {
		w.call.Notify(method, params)
	}
}

// Supports implements Upstream.
func (w *work) Supports(method string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return asksInput(w.method) && supports(w.caps, method)
}

// Request implements Upstream.
func (w *work) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if !w.Supports(method) {
		return nil, unsupported(method)
	}
	q := &question{method: method, params: slices.Clone(params), reply: make(chan json.RawMessage, 1)}
	w.mu.Lock()
	w.asks++
	q.key = strings.ReplaceAll(method, "/", "-") + "-" + strconv.Itoa(w.asks)
	w.questions = append(w.questions, q)
	w.signal()
	w.mu.Unlock()
	var err error
	select {
	case value := <-q.reply:
		return value, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-w.ctx.Done():
		err = context.Cause(w.ctx)
	}
	w.mu.Lock()
	w.questions = slices.DeleteFunc(w.questions, func(one *question) bool { return one == q })
	w.mu.Unlock()
	if err == nil {
		err = ended("the request is over")
	}
	return nil, err
}
