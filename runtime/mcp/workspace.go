package mcp

import (
	"context"
	"encoding/json"

	"sallyport/internal/coded"
	"sallyport/runtime/permissions"
)

// asker is the way back to an agent for a server that may not see the workspace: which
// folders the agent works in, and what is called roots in MCP, is told through the
// host, and to nobody without the permission (spec/permissions.md 2, fs). What a child
// reads by itself is not enforced.
type asker struct {
	Upstream
	session *Session
}

const askRoots = "roots/list"

// within returns the way back that a session's permissions leave.
func (s *Session) within(up Upstream) Upstream {
	if up == nil || s.allowed.AllowsFS(permissions.WorkspaceRead) {
		return up
	}
	return asker{up, s}
}

// Request implements Upstream.
func (a asker) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if method != askRoots {
		return a.Upstream.Request(ctx, method, params)
	}
	refusal := &coded.Error{Code: "permission-denied", Sentence: "the server may not see which folders the agent works in",
		Next: `to let it: "permit": {"fs": ["workspace-read"]} in config.json, and approve it again`}
	a.session.pool.tell(Event{Kind: Denied, ID: a.session.id, PID: a.session.pid, Method: method, Err: refusal})
	return nil, &RPCError{Raw: errorObject(codeNobodyToAsk, refusal.Sentence, json.RawMessage(`{"code":"permission-denied"}`))}
}
