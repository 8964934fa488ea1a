package api

import (
	"encoding/json"
	"net/http"

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
	return Tool{Connector: id.String(), Name: t.Name, Exposed: gateway.ExposedName(id, t.Name), Class: t.Class,
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
	result, err := s.host.Call(r.Context(), c.Via, id, asked.Tool, params)
	if err != nil {
		return nil, err
	}
	return ToolResult{Result: result}, nil
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
