package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/coded"
)

// pinnedVersion is what is asked for. Asking for 2026-07-28 would make the SDK
// send server/discover first, which servers of today answer in surprising ways.
const pinnedVersion = "2025-11-25"

// Server is what a server said about itself, in its own bytes.
type Server struct {
	ProtocolVersion string
	Info            json.RawMessage
	Capabilities    json.RawMessage
	Instructions    string
}

// Handshake has the SDK's client initialize the session over c: versions are
// negotiated and checked there. Roots, sampling and elicitation are advertised
// because each question is passed to the client whose call is in flight, or refused
// at once. A failure closes c.
func Handshake(ctx context.Context, c *Conn, version string) (Server, error) {
	seam := newSeam(ctx, c)
	client := sdk.NewClient(&sdk.Implementation{Name: "sallyport", Version: version}, &sdk.ClientOptions{
		Logger: slog.New(slog.DiscardHandler), // its log lines can hold messages
		Capabilities: &sdk.ClientCapabilities{
			RootsV2:     &sdk.RootCapabilities{},
			Sampling:    &sdk.SamplingCapabilities{},
			Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}},
		},
	})
	session, err := client.Connect(ctx, seam, &sdk.ClientSessionOptions{ProtocolVersion: pinnedVersion})
	if err != nil {
		if failure := seam.failure(); failure != nil {
			err = failure
		}
		err = c.explain(ctx, err)
		c.Close(err)
		return Server{}, err
	}
	// The SDK's part is over; its goroutines end with the seam, not with c.
	_ = session.Close()
	return seam.server()
}

// explain prefers the connection's own cause to the SDK's words, in which the
// type is lost.
func (c *Conn) explain(ctx context.Context, err error) error {
	if cause := c.Cause(); cause != nil {
		return cause
	}
	var answered *jsonrpc.Error
	switch {
	case ctx.Err() != nil:
		return &coded.Error{Code: "start-timeout", Sentence: "the server did not finish the MCP handshake in time", Err: context.Cause(ctx)}
	case coded.Of(err) != "":
		return err
	case errors.As(err, &answered):
		return &coded.Error{Code: "handshake-failed", Sentence: "the server refused the MCP handshake", Err: err}
	}
	return &coded.Error{Code: "handshake-failed", Sentence: "the server's MCP handshake is not one that can be used", Err: err}
}

// seam is the SDK's view of a Conn, for the handshake only.
type seam struct {
	conn   *Conn
	ctx    context.Context
	in     chan jsonrpc.Message
	once   sync.Once
	closed chan struct{}
	failed chan struct{} // closed when a request could not be made

	mu          sync.Mutex
	initialized json.RawMessage
	why         error // of failed
}

func newSeam(ctx context.Context, c *Conn) *seam {
	return &seam{conn: c, ctx: ctx, in: make(chan jsonrpc.Message, 4), closed: make(chan struct{}), failed: make(chan struct{})}
}

// Connect implements the SDK's Transport.
func (s *seam) Connect(context.Context) (sdk.Connection, error) { return s, nil }

// SessionID implements the SDK's Connection.
func (s *seam) SessionID() string { return "" }

// Close implements the SDK's Connection. It returns at once and ends nothing but
// the seam: the SDK calls it under a lock.
func (s *seam) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// Read implements the SDK's Connection.
func (s *seam) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case message := <-s.in:
		return message, nil
	case <-s.conn.Done():
		return nil, s.conn.Cause()
	case <-s.failed:
		return nil, s.failure()
	case <-s.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements the SDK's Connection. A request becomes a call of ours, with
// an id of ours; its answer comes back through Read under the SDK's id.
func (s *seam) Write(ctx context.Context, message jsonrpc.Message) error {
	request, ok := message.(*jsonrpc.Request)
	switch {
	case !ok: // answers to requests, which are never delivered to the SDK
		return nil
	case !request.ID.IsValid():
		if request.Method == "notifications/cancelled" { // speaks of the SDK's id
			return nil
		}
		return s.conn.Notify(ctx, request.Method, request.Params)
	}
	go s.call(request)
	return nil
}

func (s *seam) call(request *jsonrpc.Request) {
	result, err := s.conn.Call(s.ctx, request.Method, request.Params, nil)
	response := &jsonrpc.Response{ID: request.ID, Result: result}
	var answered *RPCError
	switch {
	case errors.As(err, &answered):
		response.Error = &jsonrpc.Error{Code: answered.Code, Message: answered.Message, Data: answered.Data}
	case err != nil:
		s.fail(err)
		return
	case request.Method == "initialize":
		s.keep(result)
	}
	select {
	case s.in <- response:
	case <-s.closed:
	case <-s.conn.Done():
	}
}

// fail ends the handshake: no answer will come, as when a dialled server answers
// with a status of HTTP's own, which ends a call and no connection.
func (s *seam) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why == nil {
		s.why = err
		close(s.failed)
	}
}

func (s *seam) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}

func (s *seam) keep(initialized json.RawMessage) {
	s.mu.Lock()
	s.initialized = initialized
	s.mu.Unlock()
	if wire, ok := s.conn.wire.(interface{ negotiated(version string) }); ok {
		if server, err := s.server(); err == nil {
			wire.negotiated(server.ProtocolVersion)
		}
	}
}

// server reads what the SDK does not keep as it was sent.
func (s *seam) server() (Server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var raw struct {
		ProtocolVersion string          `json:"protocolVersion"`
		ServerInfo      json.RawMessage `json:"serverInfo"`
		Capabilities    json.RawMessage `json:"capabilities"`
		Instructions    string          `json:"instructions"`
	}
	if err := json.Unmarshal(s.initialized, &raw); err != nil {
		return Server{}, fmt.Errorf("cannot read the answer to initialize: %w", err)
	}
	return Server{raw.ProtocolVersion, raw.ServerInfo, raw.Capabilities, raw.Instructions}, nil
}
