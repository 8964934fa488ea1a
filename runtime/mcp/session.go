package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/permissions"
	"sallyport/runtime/plugins"
)

// Session is a running server: the grant it runs under, its connection, and what
// it offers. It ends with the grant, with the connection, or by Pool.Stop.
type Session struct {
	pool   *Pool
	id     plugins.ID
	permit permit
	conn   *Conn
	pid    int // 0 for a server that was dialled
	since  time.Time
	server Server
	over   chan struct{} // closed when it is gone and accounted for
	used   atomic.Int64  // the pool's clock, in Unix nanoseconds

	allowed  permissions.Set
	budget   plugins.Budget // what holds
	inFlight atomic.Int64   // requests that wait for their answer

	// changes counts the list changes announced, compared those looked at: while
	// they differ nobody knows what a call would run.
	mu       sync.Mutex
	offer    approvals.Offer
	changes  int64
	compared int64
	settled  chan struct{} // closed when they are equal; replaced by a change
	opened   bool          // the first list has been compared

	listing sync.Mutex // one comparison at a time
}

// ID returns the connector.
func (s *Session) ID() plugins.ID { return s.id }

// Grant returns the grant that the session runs under.
func (s *Session) Grant() approvals.Grant {
	granted, _ := s.permit.(approvals.Grant)
	return granted
}

// Server returns what the server said about itself.
func (s *Session) Server() Server { return s.server }

// Done is closed when the session is over; Err then says why.
func (s *Session) Done() <-chan struct{} { return s.conn.Done() }

// Err returns nil while the session can be used.
func (s *Session) Err() error {
	if err := s.permit.Err(); err != nil {
		return err
	}
	return s.conn.Cause()
}

func (s *Session) isOver() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// Offer returns what the server provides, as last listed.
func (s *Session) Offer() approvals.Offer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offer
}

// requestable are the methods of Request: everything that is no tool call and
// that a server answers within a session.
func requestable(method string) bool {
	switch method {
	case "prompts/get", "prompts/list", "completion/complete", "logging/setLevel", "ping":
		return true
	}
	return strings.HasPrefix(method, "resources/")
}

// Request sends what is no tool call: resources/*, prompts/*, completion/complete,
// logging/setLevel. It needs the session's grant to stand, and a prompt or template
// that it is about to be live as it was pinned; which of them a client may see is
// asked before.
func (s *Session) Request(ctx context.Context, method string, params json.RawMessage, up Upstream) (json.RawMessage, error) {
	switch {
	case !requestable(method):
		return nil, noGrant("this method does not go to a server without a grant of its own")
	case s.permit.Probe():
		return nil, noGrant("a first try lists what a server offers and nothing else")
	}
	if err := s.permit.Err(); err != nil {
		return nil, err
	}
	if err := s.pinned(ctx, method, params); err != nil {
		return nil, err
	}
	return s.request(ctx, method, params, up)
}

func (s *Session) request(ctx context.Context, method string, params json.RawMessage, up Upstream) (json.RawMessage, error) {
	if err := s.permit.Err(); err != nil {
		return nil, err
	}
	s.touch()
	defer s.touch()
	ctx, cancel := context.WithTimeoutCause(ctx, s.pool.config.CallTimeout, errCallTimeout)
	defer cancel()
	return s.budgeted(ctx, method, params, up)
}

var errCallTimeout error = &timeoutError{}

// timeoutError is a coded refusal that is also context.DeadlineExceeded.
type timeoutError struct{}

func (*timeoutError) Error() string { return "the server did not answer in time" }

func (*timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

func (e *timeoutError) As(target any) bool {
	out, ok := target.(**coded.Error)
	if ok {
		*out = &coded.Error{Code: "call-timeout", Sentence: e.Error(), Next: "try again, or look at the server's log"}
	}
	return ok
}

func (s *Session) touch() { s.used.Store(s.pool.config.Now().UnixNano()) }

// changed is called by the reader, before it reads on: a call that was asked for
// after the announcement waits until the new list has been compared.
func (s *Session) changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes == s.compared {
		s.settled = make(chan struct{})
	}
	s.changes++
}

// open is called when the first list has been compared. It reports whether there
// was a change meanwhile.
func (s *Session) open() (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = true
	return s.changes != s.compared
}

// relist compares what the server offers now. If that cannot be found out the
// session ends: nobody would know what runs.
func (s *Session) relist(ctx context.Context) {
	s.listing.Lock()
	defer s.listing.Unlock()
	s.mu.Lock()
	seen, due := s.changes, s.opened && s.changes != s.compared
	s.mu.Unlock()
	if !due || s.conn.Cause() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.pool.config.StartTimeout)
	defer cancel()
	offer, err := listOffer(ctx, s.conn, s.server)
	if err != nil {
		if s.conn.Cause() == nil {
			s.conn.Close(&coded.Error{Code: "list-failed", Sentence: "the server announced other tools and did not list them", Err: err})
		}
		return
	}
	states := s.pool.guard.live(s.permit, offer)
	s.mu.Lock()
	s.offer = offer
	if s.compared = seen; s.changes == s.compared {
		close(s.settled)
	}
	s.mu.Unlock()
	s.pool.tell(Event{Kind: ListChanged, ID: s.id, Tools: states})
}

// settle waits until no list change is left to be looked at.
func (s *Session) settle(ctx context.Context) error {
	for {
		s.mu.Lock()
		settled, same := s.settled, s.changes == s.compared
		s.mu.Unlock()
		if same {
			return nil
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.conn.Done():
			return s.conn.Cause()
		}
	}
}

// setName puts the granted tool's name into the params of tools/call, so that what
// is called is what was granted, whatever the caller wrote.
func setName(params []byte, tool string) ([]byte, error) {
	from, to, ok := only(params, "name")
	if !ok {
		return nil, invalidParams("the parameters of tools/call are not an object with one name")
	}
	quoted := appendQuoted(nil, tool)
	if bytes.Equal(params[from:to], quoted) {
		return params, nil
	}
	return splice(params, from, to, quoted), nil
}

var errStopped = errors.New("the server was stopped")

// notified gets what belongs to no call; it is called by one goroutine.
func (s *Session) notified(method string, params json.RawMessage) {
	if strings.HasSuffix(method, "/list_changed") {
		s.relist(s.pool.ctx)
	}
	s.pool.tell(Event{Kind: Notified, ID: s.id, Method: method, Params: params})
}
