package api

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/host"
	"sallyport/runtime/mcp/gateway"
)

// StreamProtocol is what `sallyport mcp` upgrades a connection to: the agent's
// own newline-delimited JSON-RPC, byte for byte.
const StreamProtocol = "sallyport-mcp-stream"

var mcpRoutes = []Route{
	{
		Method: http.MethodPost, Path: "/mcp", Access: Agent,
		Summary: "MCP for agents: streamable HTTP, one message in.",
		Media:   []string{"application/json", "text/event-stream"}, Also: []int{http.StatusAccepted}, Stream: (*Server).mcp,
	}, {
		Method: http.MethodGet, Path: "/mcp", Access: Agent,
		Summary: "MCP for agents: the stream of what servers say by themselves.",
		Media:   []string{"text/event-stream"}, Stream: (*Server).mcp,
	}, {
		Method: http.MethodDelete, Path: "/mcp", Access: Agent,
		Summary: "MCP for agents: ends a session.", Stream: (*Server).mcp,
	}, {
		Method: http.MethodGet, Path: "/mcp/stream", Access: Agent,
		Summary: "MCP for agents that only start commands: the connection becomes the agent's stdio.",
		Upgrade: StreamProtocol, Stream: (*Server).mcpStream,
	},
}

func (s *Server) mcp(c Caller, w http.ResponseWriter, r *http.Request) {
	if err := s.host.Fault(); err != nil {
		writeError(w, err)
		return
	}
	s.agents.ServeHTTP(w, r.WithContext(host.WithClient(r.Context(), c.Client)))
}

func (s *Server) mcpStream(c Caller, w http.ResponseWriter, r *http.Request) {
	if err := s.host.Fault(); err != nil {
		writeError(w, err)
		return
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), StreamProtocol) {
		w.Header().Set("Upgrade", StreamProtocol)
		writeError(w, coded.New("bad-request", "this address is for sallyport mcp only"))
		return
	}
	connection, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		writeError(w, coded.New("bad-request", "this connection cannot become a stream"))
		return
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Time{}) // a TCP connection takes it
	const accepted = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + StreamProtocol + "\r\n\r\n"
	if _, err := io.WriteString(connection, accepted); err != nil {
		return
	}
	if token, ok := bearer(r); ok {
		s.host.BeginSession(token)
		defer s.host.EndSession(token)
	}
	stream := hijacked{connection, buffered.Reader}
	if err := s.host.Gateway.ServeStream(s.host.Context(), gateway.ClientInfo{Name: c.Client}, stream); err != nil {
		s.log.Debug("mcp stream ended", "client", c.Client, "error", err)
	}
}

// hijacked reads what the server had buffered before the connection's own bytes.
type hijacked struct {
	net.Conn
	reader *bufio.Reader
}

func (h hijacked) Read(p []byte) (int, error) { return h.reader.Read(p) }
