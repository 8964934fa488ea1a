package mcp

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"sync"

	"sallyport/internal/coded"
)

// maxAddress bounds the address that a server of the older transport names.
const maxAddress = 4 << 10

// eventStream is the wire of the older transport, HTTP with SSE (MCP 2024-11-05): one
// stream carries everything that the server says, and its first event names the
// address that messages are posted to. That address must be on the stream's own
// origin, so that no header and no message goes to another. It is the rest of an
// endpoint in all else: no redirects, no proxy, no broken stream taken up again.
//
// The SDK's own client of it decodes numbers on the way and takes any address.
type eventStream struct {
	*endpoint
	opened chan struct{} // closed when the address is known, or will never be
	settle sync.Once
	to     string // the address; set before opened is closed
	why    error  // why there is none
}

// DialSSE is Dial for the older transport.
func DialSSE(address string, headers map[string]string, o Options) (*Conn, error) {
	inner, err := newEndpoint(address, headers, o)
	if err != nil {
		return nil, err
	}
	c := newConn(o)
	inner.conn = c
	c.wire = &eventStream{endpoint: inner, opened: make(chan struct{})}
	go c.run()
	return c, nil
}

// receive reads the stream until it ends. A refusal that keeps it from opening
// fails the calls that wait for it, as a status does in the newer transport, and
// leaves the connection to whoever has it.
func (s *eventStream) receive(func(Envelope)) *ProtocolError {
	err := s.read()
	fault := streamEnd(err)
	if fault != nil {
		err = fault
	}
	s.settled("", err)
	if fault == nil {
		<-s.conn.dead
		fault = newProtocolError(TransportClosed, "the connection was closed", nil)
	}
	s.conn.fail(fault) // which ends what is being sent
	s.settleWork()
	return fault
}

// streamEnd is how the end of a stream ends the connection; nil where it was
// refused and never began.
func streamEnd(err error) *ProtocolError {
	var fault *ProtocolError
	var refusal *coded.Error
	switch {
	case errors.As(err, &fault):
		return fault
	case errors.As(err, &refusal):
		return nil
	}
	return newProtocolError(TransportClosed, "the server ended its stream", withoutURL(err))
}

func (s *eventStream) read() error {
	response, err := s.do(s.ctx, http.MethodGet, s.url, nil)
	if refusal := refusedBy(err); refusal != nil {
		return refusal
	}
	if err != nil {
		return newProtocolError(TransportClosed, "the server cannot be reached", withoutURL(err))
	}
	defer response.Body.Close()
	if err := s.judge(response); err != nil {
		return err
	}
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind != "text/event-stream" {
		return newProtocolError(InvalidMessage, "the server does not answer with a stream of events", nil)
	}
	return s.events(response.Body, s.event)
}

// event takes one event. An address is taken once.
func (s *eventStream) event(name string, data []byte) error {
	select {
	case <-s.opened:
		if name == "message" {
			return s.deliver(data)
		}
		return nil
	default:
	}
	switch {
	case len(data) == 0:
		return nil
	case name != "endpoint":
		return newProtocolError(InvalidMessage, "the server spoke before it named the address for messages", nil)
	}
	to, err := s.address(data)
	if err != nil {
		return err
	}
	s.settled(to, nil)
	return nil
}

// address reads where messages go. Another origin is refused, and so is what is
// no plain address of this one.
func (s *eventStream) address(data []byte) (string, error) {
	own, err := url.Parse(s.url)
	if err != nil {
		return "", err
	}
	if len(data) > maxAddress {
		return "", newProtocolError(InvalidMessage, "the server names an address for messages that is too long", nil)
	}
	named, err := own.Parse(string(data))
	if err != nil {
		return "", newProtocolError(InvalidMessage, "the server names an address for messages that is none", nil)
	}
	if named.Scheme != own.Scheme || named.Host != own.Host || named.User != nil || named.Opaque != "" {
		return "", &coded.Error{Code: "endpoint-cross-origin",
			Sentence: "the server names an address for messages that is not its own",
			Next:     "do not use this server, or ask whoever runs it to correct it"}
	}
	named.Fragment = ""
	return named.String(), nil
}

// settled says, once, where messages go or why nowhere.
func (s *eventStream) settled(to string, why error) {
	s.settle.Do(func() {
		s.to, s.why = to, why
		close(s.opened)
	})
}

// send posts one message. What answers it comes by the stream; a request's failure
// fails its call, and a notification is waited for.
func (s *eventStream) send(ctx context.Context, id int64, line []byte) error {
	sent := make(chan error, 1)
	if !s.begin(func() {
		err := s.post(ctx, line)
		if err != nil && id != 0 {
			s.conn.reject(id, err)
		}
		sent <- err
	}) {
		return s.conn.Cause()
	}
	if id != 0 {
		return nil
	}
	select {
	case err := <-sent:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.conn.dead:
		return s.conn.Cause()
	}
}

func (s *eventStream) post(ctx context.Context, line []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	select {
	case <-s.opened:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s.why != nil {
		return s.why
	}
	response, err := s.do(ctx, http.MethodPost, s.to, line)
	if refusal := refusedBy(err); refusal != nil {
		return refusal
	}
	if err != nil {
		if ctx.Err() == nil {
			s.conn.fail(newProtocolError(TransportClosed, "the server cannot be reached", withoutURL(err)))
			err = s.conn.Cause()
		}
		return withoutURL(err)
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, maxAddress) // so that the connection can be used again
	return s.judge(response)
}

func (s *eventStream) reply(line []byte, _ bool) {
	if s.ctx.Err() == nil {
		s.begin(func() { _ = s.post(s.ctx, line) }) // nobody waits for it
	}
}

func (s *eventStream) end(*ProtocolError) {
	s.cancel()
	s.settled("", newProtocolError(Closed, "the connection was closed", nil))
	s.client.CloseIdleConnections()
}
