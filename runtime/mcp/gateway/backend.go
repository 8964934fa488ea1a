package gateway

import (
	"context"
	"encoding/json"

	"sallyport/runtime/mcp"
	"sallyport/runtime/plugins"
)

// Upstream is the way back from a server to the one agent whose request is being
// served. The gateway's are harmless after the request is over.
type Upstream = mcp.Upstream

// Backend is what stands below the gateway. All methods may be called at once.
type Backend interface {
	// Catalog returns what the client may see now, from the approval records. It
	// starts nothing and answers from memory: it is asked before every request.
	Catalog(ctx context.Context, client string) (Catalog, error)
	// Call runs a tool under its original name and starts its server on first
	// use. params is the whole params member of tools/call and is the backend's
	// to keep. An error is a refusal (*coded.Error), the server's own answer (an
	// error with RPCError() json.RawMessage, passed on byte for byte), or a
	// failure.
	Call(ctx context.Context, client string, id plugins.ID, tool string, params json.RawMessage, up Upstream) (json.RawMessage, error)
	// Request sends prompts/get, resources/*, completion/complete or
	// logging/setLevel. For logging/setLevel the backend remembers the level, which
	// is the one for all agents together; neither that nor resources/unsubscribe
	// starts a server. up is nil where the gateway asks for itself.
	Request(ctx context.Context, client string, id plugins.ID, method string, params json.RawMessage, up Upstream) (json.RawMessage, error)
	// Unknown is told that an agent called a tool that it cannot see, for the
	// record.
	Unknown(client string)
	// Subscribe delivers events until cancel is called. The function it gets
	// returns at once.
	Subscribe(func(Event)) (cancel func())
}

// Catalog is what one client may see.
type Catalog struct {
	// Connectors may be in any order: names and lists do not depend on it.
	Connectors []Exposed
	// OriginalNames exposes the server's own names. It needs a scope of exactly
	// one connector and has no effect otherwise.
	OriginalNames bool
	// Revision differs whenever anything above differs.
	Revision uint64
}

// Exposed is one connector as the client may see it.
type Exposed struct {
	ID    plugins.ID
	Tools []Tool
	// Prompts and Templates are the server's own definitions.
	Prompts, Templates []json.RawMessage
	Instructions       string
	// Capabilities is the server's own capabilities object; nil is unknown.
	Capabilities json.RawMessage
	// Resources is true where the server offers resources.
	Resources bool
	// Partial is true where the client's scope is some of the tools: it hears nothing
	// of the connector's prompts and resources.
	Partial bool
	// Modern is true where the connection with the server is of 2026-07-28
	// (server/discover, no initialize). Requests then reach it with that
	// generation's _meta, for agents of either, and it asks agents by answering
	// input_required. A server of the older generation never sees those keys.
	// resources/subscribe, resources/unsubscribe and logging/setLevel, which the
	// newer one does not have, are the backend's to translate.
	Modern bool
}

// Tool is one tool that the client may call.
type Tool struct {
	Name       string
	Definition json.RawMessage // the server's own bytes
}

// EventKind is what an Event tells.
type EventKind int

// The kinds of events.
const (
	ToolsChanged EventKind = iota
	PromptsChanged
	ResourcesChanged
	ResourceUpdated
	// AccessChanged is a change of approvals, scopes or clients.
	AccessChanged
)

// Event is something that happened outside of any request. Params is the
// notification's own, for ResourceUpdated. There is none for a log message: whom
// one may be shown is known only during a call.
type Event struct {
	Kind      EventKind
	Connector plugins.ID
	Params    json.RawMessage
}

// ClientInfo is who is asking, as established outside.
type ClientInfo struct{ Name string }
