package gateway

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/plugins"
)

// session is one agent's connection of the older generation over HTTP, or any
// stream. Everything in flight in it ends with it.
type session struct {
	g      *Gateway
	id     string // "" for a stream
	client *clientState
	ctx    context.Context
	cancel context.CancelCauseFunc
	asked  atomic.Int32 // the logging level it asked for; 0 is none
	used   atomic.Int64 // unix nanoseconds of the last request

	mu       sync.Mutex
	version  string // negotiated; "" before initialize
	caps     []byte
	calls    map[string]*call // by id as written
	asks     map[string]chan answer
	lastAsk  int64
	apart    sink     // where what belongs to no request goes; nil without a reader
	backlog  [][]byte // for apart, while nobody reads
	kept     int      // bytes of backlog
	watches  map[string]plugins.ID
	readers  int    // open event streams
	replaced func() // ends the stream behind apart
}

// maxBacklog bounds the messages kept for an agent that does not listen yet.
const maxBacklog = 64

var errInFlight = coded.New("too-many-requests", "too many requests are in flight")

var errSessionLimit = coded.New("session-limit", "this client has too many sessions, all of them in use")

func (g *Gateway) newSession(parent context.Context, client string) *session {
	s := &session{
		g: g, client: g.state(client),
		calls: map[string]*call{}, asks: map[string]chan answer{}, watches: map[string]plugins.ID{},
	}
	s.ctx, s.cancel = context.WithCancelCause(parent)
	s.touch()
	return s
}

// open registers a session over HTTP under an unguessable id. Where the client
// has as many as it may, the one that is idle for longest makes room.
func (g *Gateway) open(client string) (*session, error) {
	s := g.newSession(g.ctx, client)
	s.id = rand.Text()
	g.mu.Lock()
	count, oldest := 0, (*session)(nil)
	for _, one := range g.sessions {
		if one.client != s.client {
			continue
		}
		count++
		if one.idle() && (oldest == nil || one.used.Load() < oldest.used.Load()) {
			oldest = one
		}
	}
	if count >= g.limits.Sessions && oldest == nil || g.ctx.Err() != nil {
		g.mu.Unlock()
		s.cancel(errSessionLimit)
		return nil, errSessionLimit
	}
	g.sessions[s.id] = s
	g.mu.Unlock()
	if count >= g.limits.Sessions {
		g.end(oldest, "the client opened more sessions than it may have")
	}
	return s, nil
}

// find returns the client's session. Another client's is not there for it.
func (g *Gateway) find(client, id string) *session {
	g.mu.Lock()
	s := g.sessions[id]
	g.mu.Unlock()
	if s == nil || s.client.name != client || s.ctx.Err() != nil {
		return nil
	}
	s.touch()
	return s
}

// end ends a session and everything in flight in it.
func (g *Gateway) end(s *session, reason string) {
	g.mu.Lock()
	if s.id != "" {
		delete(g.sessions, s.id)
	}
	delete(g.streams, s)
	var dropped []*work
	for state, w := range g.parked {
		if w.owner == s {
			delete(g.parked, state)
			w.state.waiting--
			dropped = append(dropped, w)
		}
	}
	g.mu.Unlock()
	for _, w := range dropped {
		w.stop(ended(reason))
	}
	s.cancel(ended(reason))
	s.mu.Lock()
	watches := s.watches
	s.watches, s.backlog, s.apart = map[string]plugins.ID{}, nil, nil
	s.mu.Unlock()
	for uri, id := range watches {
		g.unwatch(s.client.name, watch{id, uri})
	}
	if v := s.client.view.Load(); v != nil && s.asked.Load() != 0 {
		g.relevel(v)
	}
}

func (s *session) touch() {
	s.used.Store(time.Now().UnixNano())
	s.client.touch()
}

// idle reports whether nobody would miss the session now: no stream is open and
// no request is in flight but those whose agent has hung up.
func (s *session) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if !c.abandoned() {
			return false
		}
	}
	return s.readers == 0
}

// sweep ends the sessions that nobody has used for the idle time.
func (g *Gateway) sweep(now time.Time) {
	before := now.Add(-g.limits.Idle).UnixNano()
	g.mu.Lock()
	var old []*session
	for _, s := range g.sessions {
		if s.used.Load() < before && s.idle() {
			old = append(old, s)
		}
	}
	g.mu.Unlock()
	for _, s := range old {
		g.end(s, "the session was idle")
	}
}

// begin registers a call. Its id must not be in flight already: two answers with
// one id could not be told apart.
func (s *session) begin(c *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.calls[string(c.id)]; taken {
		return refuse(codeInvalidRequest, "A request with this id is in flight already", nil)
	}
	if len(s.calls) >= s.g.limits.InFlight {
		return errInFlight
	}
	s.calls[string(c.id)] = c
	return nil
}

// release makes a call's id free again. It comes before the answer is written:
// the agent may use the id again as soon as it has it.
func (s *session) release(c *call) {
	s.mu.Lock()
	if s.calls[string(c.id)] == c {
		delete(s.calls, string(c.id))
	}
	s.mu.Unlock()
	s.touch()
}

func (s *session) done(c *call) {
	s.release(c)
	c.cancel(nil)
}

// withdraw cancels the call with the id.
func (s *session) withdraw(id []byte) {
	s.mu.Lock()
	c := s.calls[string(id)]
	s.mu.Unlock()
	// An initialize request must not be cancelled (2025-11-25, cancellation).
	if c != nil && c.method != "initialize" {
		c.cancel(errWithdrawn)
	}
}

// tell sends what belongs to no request. While nobody listens the last few are
// kept.
func (s *session) tell(message []byte) {
	s.mu.Lock()
	apart := s.apart
	if apart == nil {
		if s.ctx.Err() == nil && len(s.backlog) < maxBacklog && s.kept+len(message) <= s.g.limits.Bytes {
			s.backlog, s.kept = append(s.backlog, message), s.kept+len(message)
		}
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	apart.post(message)
}

// take makes out the place for tell and hands it what was kept. stop ends it when
// another takes over.
func (s *session) take(out sink, stop func()) {
	s.mu.Lock()
	kept, before := s.backlog, s.replaced
	s.apart, s.backlog, s.kept, s.replaced = out, nil, 0, stop
	s.mu.Unlock()
	if before != nil {
		before()
	}
	for _, message := range kept {
		out.post(message)
	}
}

// leave ends listening, unless another stream has taken over.
func (s *session) leave(out sink) {
	s.mu.Lock()
	if s.apart == out {
		s.apart, s.replaced = nil, nil
	}
	s.mu.Unlock()
}
