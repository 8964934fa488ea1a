package approvals

import (
	"encoding/json"
	"slices"

	"sallyport/internal/coded"
	"sallyport/runtime/plugins"
)

// ToolState says whether one definition of a running server may be used.
type ToolState struct {
	Name       string          `json:"name"`
	State      string          `json:"state"` // ToolAllowed, ToolBlocked or ToolOffered
	Code       string          `json:"code,omitempty"`
	Sentence   string          `json:"sentence,omitempty"`
	Pin        Pin             `json:"pin,omitempty"`
	Definition json.RawMessage `json:"definition,omitempty"` // as the server gives it now
}

// States of a definition.
const (
	ToolAllowed = "allowed"
	ToolBlocked = "blocked" // it was changed, added or doubled, or cannot be pinned
	ToolOffered = "offered" // there when tools were chosen, and not chosen
)

// liveOffer is a running server's offer, compared. It is never changed.
type liveOffer struct {
	tools     map[string]*coded.Error // nil: may be called
	prompts   map[string]*coded.Error
	templates map[string]*coded.Error
}

// Live compares what a running server provides now with the pins, when a session
// starts and whenever the server says that its list changed. Until it was called
// for a grant, no call is granted. A changed tool blocks that tool, not the
// server (spec/approval.md 2.4).
func (g *Gate) Live(grant Grant, offer Offer) []ToolState {
	if grant.state == nil {
		return nil
	}
	approved := grant.state.approved
	if approved == nil {
		approved = &toolsApproval{}
	}
	live := &liveOffer{}
	var states []ToolState
	live.tools, states = compareTools(grant, approved, offeredTools(offer.Tools))
	live.prompts = comparePinned(grant.ID(), approved.Prompts, offeredBy(offer.Prompts, "name", PinPrompt))
	live.templates = comparePinned(grant.ID(), approved.Templates, offeredBy(offer.Templates, "uriTemplate", PinTemplate))
	grant.state.live.Store(live)
	g.mu.Lock()
	g.tell(Event{"tools", grant.ID(), firstBlocked(states)})
	g.mu.Unlock()
	return states
}

func firstBlocked(states []ToolState) string {
	for _, s := range states {
		if s.State == ToolBlocked {
			return s.Code
		}
	}
	return ""
}

func compareTools(grant Grant, approved *toolsApproval, now []offered) (map[string]*coded.Error, []ToolState) {
	calls := make(map[string]*coded.Error, len(now)+len(approved.Tools))
	states := make([]ToolState, 0, len(now))
	set := grant.state.fields.Permitted.Set()
	for _, o := range now {
		why := judgeTool(grant.ID(), approved, o)
		if why == nil && !set.AllowsTool(o.name) {
			why = toolNotPermitted(o.name)
		}
		state := ToolState{Name: o.name, State: ToolAllowed, Pin: o.pin, Definition: validJSON(o.raw)}
		if why != nil {
			state.State, state.Code, state.Sentence = ToolBlocked, why.Code, why.Sentence
			if why.Code == codeDenied {
				state.State = ToolOffered
			}
		}
		calls[o.name] = why
		states = append(states, state)
	}
	for _, tool := range approved.Tools {
		if _, there := calls[tool.Name]; !there {
			why := toolMissing(tool.Name)
			calls[tool.Name] = why
			states = append(states, ToolState{Name: tool.Name, State: ToolBlocked, Code: why.Code, Sentence: why.Sentence})
		}
	}
	return calls, states
}

func judgeTool(id plugins.ID, approved *toolsApproval, o offered) *coded.Error {
	if o.err != nil {
		return o.err
	}
	if at := slices.IndexFunc(approved.Tools, func(p pinned) bool { return p.Name == o.name }); at >= 0 {
		if approved.Tools[at].Pin != o.pin {
			return toolChanged(id, o.name)
		}
		return nil
	}
	switch pin, known := approved.Offered[o.name]; {
	case !known:
		return toolAdded(id, o.name)
	case pin != o.pin:
		return toolChanged(id, o.name)
	}
	return toolNotGranted(id, o.name)
}

func comparePinned(id plugins.ID, approved []pinned, now []offered) map[string]*coded.Error {
	out := make(map[string]*coded.Error, len(now))
	for _, o := range now {
		why := o.err
		if why == nil {
			at := slices.IndexFunc(approved, func(p pinned) bool { return p.Name == o.name })
			switch {
			case at < 0:
				why = toolAdded(id, o.name)
			case approved[at].Pin != o.pin:
				why = toolChanged(id, o.name)
			}
		}
		out[o.name] = why
	}
	return out
}
