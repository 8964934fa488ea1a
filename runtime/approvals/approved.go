package approvals

import (
	"encoding/json"

	"sallyport/runtime/artifact"
	"sallyport/runtime/plugins"
)

// Approved is what is pinned of a connector, in the bytes that were approved: for
// listing tools without starting the server.
type Approved struct {
	ID              plugins.ID
	Identity        Identity
	Digest          artifact.Digest // "" without a bundle
	Transport       string
	Tools           []ApprovedTool
	Prompts         []ApprovedTool
	Templates       []ApprovedTool
	Instructions    string // "" unless pinned; agents get these, never what a running server says now
	ServerInfo      json.RawMessage
	ProtocolVersion string
	Capabilities    json.RawMessage
}

// ApprovedTool is one pinned definition.
type ApprovedTool struct {
	Name       string
	Pin        Pin
	Class      string
	Definition json.RawMessage
}

// Approved returns what is pinned of a connector that may run as far as its
// record says. It does not look at the disk: a call does.
func (g *Gate) Approved(id plugins.ID) (Approved, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, why := g.mayRun(id)
	if why != nil {
		return Approved{}, false
	}
	offer := r.Run.Offer
	a := Approved{
		ID: id, Identity: r.Run.Identity, Digest: r.Run.digest(), Transport: r.Run.Fields.Transport, ServerInfo: offer.ServerInfo, ProtocolVersion: offer.ProtocolVersion,
		Capabilities: offer.Capabilities, Tools: approvedTools(r.Tools.Tools),
		Prompts: approvedTools(r.Tools.Prompts), Templates: approvedTools(r.Tools.Templates),
	}
	if pin, err := PinText(string(offer.Instructions)); err == nil && pin == r.Tools.Instructions {
		a.Instructions = string(offer.Instructions)
	}
	return a, true
}

func approvedTools(list []pinned) []ApprovedTool {
	out := make([]ApprovedTool, len(list))
	for i, p := range list {
		out[i] = ApprovedTool{p.Name, p.Pin, string(p.Class), p.Definition}
	}
	return out
}
