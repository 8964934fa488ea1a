package api

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/mcp/gateway"
	"sallyport/runtime/plugins"
)

// Tool is one tool that may be called.
type Tool struct {
	Connector   string          `json:"connector"`
	Name        string          `json:"name"`    // the server's own
	Exposed     string          `json:"exposed"` // what agents see; empty where two clash
	Class       string          `json:"class"`
	Pin         string          `json:"pin"`                   // of the definition that was allowed
	Description string          `json:"description,omitempty"` // untrusted text
	Definition  json.RawMessage `json:"definition"`
}

// ToolList is every tool that may be called.
type ToolList struct {
	Tools []Tool `json:"tools"`
}

// ToolCall is one call by the operator.
type ToolCall struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
	// Call is a name of the caller's own choice, by which it can be cancelled: a
	// window does not notice that the page gave up a request.
	Call string `json:"call,omitempty"`
}

// CancelCall names the call to end.
type CancelCall struct {
	Call string `json:"call"`
}

// ToolResult is the server's own result, byte for byte.
type ToolResult struct {
	Result json.RawMessage `json:"result"`
}

func (s *Server) listTools(_ Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	list := ToolList{Tools: []Tool{}}
	for _, status := range s.host.Gate.Statuses(r.Context()) {
		approved, ok := s.host.Gate.Approved(status.ID)
		if !ok || status.State != approvals.Enabled {
			continue
		}
		for _, tool := range approved.Tools {
			list.Tools = append(list.Tools, s.tool(status.ID, tool))
		}
	}
	return list, nil
}

func (s *Server) tool(id plugins.ID, t approvals.ApprovedTool) Tool {
	return Tool{Connector: id.String(), Name: t.Name, Exposed: gateway.ExposedName(id, t.Name), Class: t.Class, Pin: string(t.Pin),
		Description: descriptionOf(t.Definition), Definition: t.Definition}
}

func descriptionOf(definition json.RawMessage) string {
	var d struct {
		Description string `json:"description"`
	}
	if json.Unmarshal(definition, &d) != nil {
		return ""
	}
	return d.Description
}

// callTool calls through the same gate as agents, as the client "operator".
func (s *Server) callTool(c Caller, r *http.Request) (any, error) {
	var asked ToolCall
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	id, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	params, err := callParams(asked)
	if err != nil {
		return nil, err
	}
	ctx, done, err := s.calls.begin(r.Context(), asked.Call)
	if err != nil {
		return nil, err
	}
	defer done()
	result, err := s.host.Call(ctx, c.Via, id, asked.Tool, params)
	if err != nil {
		return nil, err
	}
	return ToolResult{Result: result}, nil
}

// cancelCall ends a call of the operator's. One that has ended already is no fault.
func (s *Server) cancelCall(_ Caller, r *http.Request) (any, error) {
	if _, err := s.subject(r); err != nil {
		return nil, err
	}
	var asked CancelCall
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	s.calls.cancel(asked.Call)
	return Done{OK: true}, nil
}

// calls are those of the operator's that are under way and can be cancelled.
type calls struct {
	mu    sync.Mutex
	named map[string]context.CancelFunc
}

const longestCallName = 100

// begin lets a call with a name be cancelled until done.
func (c *calls) begin(ctx context.Context, name string) (_ context.Context, done func(), err error) {
	if name == "" {
		return ctx, func() {}, nil
	}
	if len(name) > longestCallName {
		return nil, nil, coded.New("bad-request", "the name of the call is too long")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, taken := c.named[name]; taken {
		return nil, nil, coded.New("bad-request", "a call of that name is under way")
	}
	ctx, cancel := context.WithCancel(ctx)
	if c.named == nil {
		c.named = map[string]context.CancelFunc{}
	}
	c.named[name] = cancel
	return ctx, func() {
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.named, name)
	}, nil
}

func (c *calls) cancel(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.named[name]; cancel != nil {
		cancel()
	}
}

// callParams is the params member of tools/call. The arguments go in as they
// were written.
func callParams(asked ToolCall) (json.RawMessage, error) {
	if asked.Tool == "" {
		return nil, coded.New("bad-request", "the call names no tool")
	}
	args := asked.Args
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if args[0] != '{' {
		return nil, coded.New("bad-request", "the arguments are not a JSON object")
	}
	name, err := json.Marshal(asked.Tool)
	if err != nil {
		return nil, coded.New("bad-request", "the tool's name is not valid text")
	}
	params := append([]byte(`{"name":`), name...)
	params = append(params, `,"arguments":`...)
	return append(append(params, args...), '}'), nil
}
