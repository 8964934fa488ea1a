package gateway

import (
	"context"
	"errors"
	"net/http"

	"sallyport/runtime/mcp"
)

const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	jsonType      = "application/json"
	eventType     = "text/event-stream"
)

// Handler returns the endpoint for /mcp, streamable HTTP in both generations. Host
// and Origin were checked in front of it (spec/local-api.md 7).
func (g *Gateway) Handler() http.Handler { return http.HandlerFunc(g.serveHTTP) }

func (g *Gateway) serveHTTP(w http.ResponseWriter, r *http.Request) {
	client, ok := g.client(r)
	switch {
	case !local(r):
		plain(w, http.StatusForbidden, "The Host or Origin is not this machine's")
	case !ok:
		w.Header().Set("WWW-Authenticate", "Bearer")
		plain(w, http.StatusUnauthorized, "An agent token is needed")
	case g.ctx.Err() != nil:
		plain(w, http.StatusServiceUnavailable, "Sallyport is closing")
	case r.Method == http.MethodPost:
		g.servePost(w, r, client)
	case r.Method != http.MethodGet && r.Method != http.MethodDelete:
		notAllowed(w, "GET, POST, DELETE")
	case r.Header.Get(versionHeader) >= modernVersion:
		notAllowed(w, "POST") // the newer generation has neither
	case r.Method == http.MethodGet:
		g.serveGet(w, r, client)
	default:
		g.serveDelete(w, r, client)
	}
}

func (g *Gateway) servePost(w http.ResponseWriter, r *http.Request, client ClientInfo) {
	if !isJSON(r.Header.Get("Content-Type")) {
		plain(w, http.StatusUnsupportedMediaType, "Content-Type must be application/json")
		return
	}
	if !accepts(r, jsonType) || !accepts(r, eventType) {
		plain(w, http.StatusNotAcceptable, "Accept must list application/json and text/event-stream")
		return
	}
	body, status := g.readBody(w, r)
	if status != 0 {
		plain(w, status, "The body cannot be read, took too long or is over the size limit")
		return
	}
	oneLine(body)
	e, id, err := parse(body)
	if err != nil {
		refuseHTTP(w, http.StatusBadRequest, id, g.errorObject("", err))
		return
	}
	version := r.Header.Get(versionHeader)
	if _, stated := modernMeta(e.Params); stated || version != "" && !legacyVersion(version) {
		g.postModern(w, r, client, e, version)
		return
	}
	g.postLegacy(w, r, client, e)
}

func (g *Gateway) postLegacy(w http.ResponseWriter, r *http.Request, client ClientInfo, e mcp.Envelope) {
	if e.Kind == mcp.Request && string(e.Method) == "initialize" {
		g.postInitialize(w, client, e)
		return
	}
	s := g.sessionOf(w, r, client, e.ID)
	if s == nil {
		return
	}
	if e.Kind == mcp.Request {
		g.postCall(w, r, s, e)
		return
	}
	s.receive(e)
	w.WriteHeader(http.StatusAccepted)
}

// sessionOf finds the session that a request names. Where there is none it refuses
// the request, under the id if that has one, and returns nil.
func (g *Gateway) sessionOf(w http.ResponseWriter, r *http.Request, client ClientInfo, id []byte) *session {
	named := r.Header.Get(sessionHeader)
	if named == "" {
		refuseHTTP(w, http.StatusBadRequest, id, refuse(codeInvalidRequest, "The header Mcp-Session-Id is missing", nil).Raw)
		return nil
	}
	s := g.find(client.Name, named)
	if s == nil {
		refuseHTTP(w, http.StatusNotFound, id, refuse(codeInvalidRequest, "The session is unknown or has ended", nil).Raw)
	}
	return s
}

func (g *Gateway) postInitialize(w http.ResponseWriter, client ClientInfo, e mcp.Envelope) {
	s, err := g.open(client.Name)
	if err != nil {
		refuseHTTP(w, http.StatusServiceUnavailable, e.ID, g.errorObject("initialize", err))
		return
	}
	c := s.newCall(e, nil)
	defer c.cancel(nil)
	result, err := g.dispatch(c)
	if err != nil {
		g.end(s, "initialize failed")
		_ = writeJSON(w, http.StatusOK, failure(e.ID, g.errorObject("initialize", err)))
		return
	}
	w.Header().Set(sessionHeader, s.id)
	_ = writeJSON(w, http.StatusOK, resultOf(e.ID, result))
}

// postCall serves a request in its session. That the agent hangs up does not
// cancel it (2025-11-25, transports): only a cancellation, the end of the session
// or a stream that overflows does.
func (g *Gateway) postCall(w http.ResponseWriter, r *http.Request, s *session, e mcp.Envelope) {
	c := s.newCall(e, r.Context().Done())
	out := g.newReply(w, func() { c.cancel(errGone) })
	c.out = out
	if err := s.begin(c); err != nil {
		c.cancel(nil)
		refuseHTTP(w, http.StatusBadRequest, e.ID, g.errorObject(c.method, err))
		return
	}
	defer s.done(c)
	result, err := g.dispatch(c)
	s.release(c)
	if context.Cause(c.ctx) == errWithdrawn {
		out.end()
		return
	}
	out.answer(http.StatusOK, g.response(c, result, err))
}

// response is the message that answers a call.
func (g *Gateway) response(c *call, result []byte, err error) [][]byte {
	if err != nil {
		if cause := context.Cause(c.ctx); cause != nil && c.session != nil && c.session.ctx.Err() == nil && errors.Is(err, context.Canceled) {
			err = cause
		}
		return failure(c.id, g.errorObject(c.method, err))
	}
	return resultOf(c.id, result)
}

// newCall makes a call of the older generation.
func (s *session) newCall(e mcp.Envelope, gone <-chan struct{}) *call {
	c := &call{
		g: s.g, client: s.client, session: s,
		id: e.ID, method: string(e.Method), params: e.Params, gone: gone,
	}
	s.mu.Lock()
	c.caps = s.caps
	s.mu.Unlock()
	c.ctx, c.cancel = context.WithCancelCause(s.ctx)
	c.readMeta()
	return c
}

// receive takes what needs no answer.
func (s *session) receive(e mcp.Envelope) {
	switch e.Kind {
	case mcp.Response:
		if e.Error != nil {
			s.answered(e.ID, answer{err: &mcp.RPCError{Raw: e.Error}})
			return
		}
		s.answered(e.ID, answer{result: e.Result})
	case mcp.Notification:
		if string(e.Method) == "notifications/cancelled" {
			if id, ok := lookup(e.Params, "requestId"); ok {
				s.withdraw(id)
			}
		}
	}
}

// serveGet opens the stream for what belongs to no request. A second one takes
// over from the first, whose connection may be dead without anyone knowing.
func (g *Gateway) serveGet(w http.ResponseWriter, r *http.Request, client ClientInfo) {
	if !accepts(r, eventType) {
		plain(w, http.StatusNotAcceptable, "Accept must list text/event-stream")
		return
	}
	s := g.sessionOf(w, r, client, nil)
	if s == nil {
		return
	}
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	out := g.newReply(w, stop)
	s.read(1)
	defer s.read(-1)
	if out.open() == nil {
		s.take(out, stop)
		select {
		case <-ctx.Done():
		case <-s.ctx.Done():
		}
		s.leave(out)
	}
	out.end()
}

func (s *session) read(change int) {
	s.mu.Lock()
	s.readers += change
	s.mu.Unlock()
	s.touch()
}

func (g *Gateway) serveDelete(w http.ResponseWriter, r *http.Request, client ClientInfo) {
	s := g.sessionOf(w, r, client, nil)
	if s == nil {
		return
	}
	g.end(s, "the agent ended the session")
	w.WriteHeader(http.StatusNoContent)
}
