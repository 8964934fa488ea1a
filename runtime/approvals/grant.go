package approvals

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"sallyport/internal/coded"
	"sallyport/runtime/artifact"
	"sallyport/runtime/env"
	"sallyport/runtime/permissions"
	"sallyport/runtime/plugins"
)

// Grant is the proof, in memory, that a connector's identity is approved now.
// The zero Grant proves nothing: every consumer refuses it. A Grant ends when
// the approval is revoked, disabled or superseded or the identity stops matching.
type Grant struct{ state *grantState }

type grantState struct {
	id       plugins.ID
	identity Identity
	launch   Launch
	probe    bool
	ended    context.Context // its cause is a *coded.Error
	fields   Fields
	approved *toolsApproval // nil for a probe
	live     atomic.Pointer[liveOffer]
}

// Launch is everything a process is started with, resolved at the moment the
// grant was made. Dir and Env speak of the snapshot, never of the source folder.
type Launch struct {
	ID         plugins.ID
	Version    string
	Transport  plugins.Transport
	Executable env.Executable
	Path       string   // absolute path that is executed
	Args       []string // after the program name
	Root       string   // the verified snapshot; "" without a bundle
	Dir        string   // absolute working directory
	Env        *env.Plan
	Data       string // PLUGIN_DATA, to be created 0700 before the start
	URL        string
	Headers    []plugins.Value
	Options    plugins.Options
	Digest     artifact.Digest
	// Permissions are those that were approved (spec/permissions.md).
	Permissions permissions.Set
}

// ID returns the connector the grant is for; zero for the zero Grant.
func (g Grant) ID() plugins.ID {
	if g.state == nil {
		return plugins.ID{}
	}
	return g.state.id
}

// Identity returns the identity that was compared; "" for the zero Grant.
func (g Grant) Identity() Identity {
	if g.state == nil {
		return ""
	}
	return g.state.identity
}

// Launch returns what may be started, or the reason why not: the grant is zero
// or has ended.
func (g Grant) Launch() (Launch, error) {
	if err := g.Err(); err != nil {
		return Launch{}, err
	}
	return g.state.launch, nil
}

// Err returns nil while the grant stands, and the refusal (*coded.Error) once it
// has ended. The zero Grant is refused with "no-grant".
func (g Grant) Err() error {
	if g.state == nil {
		return coded.New("no-grant", "nothing runs without an approval")
	}
	if g.state.ended.Err() != nil {
		return context.Cause(g.state.ended)
	}
	return nil
}

// Done is closed when the grant ends; a nil channel for the zero Grant.
func (g Grant) Done() <-chan struct{} {
	if g.state == nil {
		return nil
	}
	return g.state.ended.Done()
}

// Probe reports whether the grant is for a first try only: it permits a start
// and the listing of tools, never a call.
func (g Grant) Probe() bool { return g.state != nil && g.state.probe }

// CallGrant is the proof that one tool of a connector may be called by one
// client now: granted, pinned, and its live definition equal to the pin.
type CallGrant struct {
	grant  Grant
	tool   string
	client string
}

// Tool returns the server's own name of the tool.
func (c CallGrant) Tool() string { return c.tool }

// Client returns the name of the client that calls.
func (c CallGrant) Client() string { return c.client }

// Grant returns the connector's grant.
func (c CallGrant) Grant() Grant { return c.grant }

// SameApproval reports whether other is for the same call under the same approval,
// also where its server was started anew.
func (c CallGrant) SameApproval(other CallGrant) bool {
	a, b := c.grant.state, other.grant.state
	return a != nil && b != nil && c.tool == other.tool && c.client == other.client && a.id == b.id && a.identity == b.identity &&
		a.approved != nil && b.approved != nil && a.approved.Decision == b.approved.Decision
}

// Err is as Grant.Err.
func (c CallGrant) Err() error { return c.grant.Err() }

// Identity is "i1:" + 64 hex digits (spec/approval.md 2.2).
type Identity string

// Offer is what a running server provides, in the server's own bytes.
type Offer struct {
	ServerInfo      json.RawMessage   `json:"serverInfo,omitempty"`
	Instructions    string            `json:"instructions,omitempty"`
	ProtocolVersion string            `json:"protocolVersion,omitempty"`
	Capabilities    json.RawMessage   `json:"capabilities,omitempty"`
	Tools           []json.RawMessage `json:"tools"`
	Prompts         []json.RawMessage `json:"prompts,omitempty"`
	Templates       []json.RawMessage `json:"resourceTemplates,omitempty"`
}
