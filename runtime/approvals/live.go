package approvals

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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
	tools        map[string]*coded.Error // nil: may be called
	prompts      map[string]*coded.Error
	templates    map[string]*coded.Error
	instructions *coded.Error
}

// offered is one definition of an offer.
type offered struct {
	name string
	pin  Pin
	raw  []byte
	err  *coded.Error // why it is not offered to anybody
}

// offeredTools reads the definitions of an offer.
func offeredTools(raw []json.RawMessage) []offered { return offeredBy(raw, "name", PinTool) }

// offeredBy pins each definition. A name that comes twice is refused wherever it
// stands, also where one of the two cannot be pinned: neither is the tool (C45).
func offeredBy(raw []json.RawMessage, key string, pinOf func(json.RawMessage) (string, Pin, error)) []offered {
	out := make([]offered, len(raw))
	first := map[string]int{}
	for i, definition := range raw {
		name, pin, err := pinOf(definition)
		out[i] = offered{name: name, pin: pin, raw: definition}
		names := []string{name}
		if err != nil {
			out[i].err = refusalOf(err)
			if names = looseNames(definition, key); len(names) > 0 {
				out[i].name = names[0]
			}
		}
		for _, name := range names {
			before, twice := first[name]
			if !twice {
				first[name] = i
			} else if before != i {
				out[i].err, out[before].err = toolDuplicate(name), toolDuplicate(name)
			}
		}
	}
	return out
}

// looseNames returns every name that some reader could take for that of a
// definition which has no single reading.
func looseNames(raw []byte, key string) []string {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	var names []string
	for decoder.More() {
		member, err := decoder.Token()
		if err != nil {
			return names
		}
		var value any
		if decoder.Decode(&value) != nil {
			return names
		}
		if name, ok := value.(string); ok && member == key && name != "" {
			names = append(names, name)
		}
	}
	return names
}

// pinAll pins prompts or templates; what cannot be pinned, or comes twice, is left
// out and so never exposed.
func pinAll(raw []json.RawMessage, key string, pinOf func(json.RawMessage) (string, Pin, error)) []pinned {
	out := []pinned{}
	for _, o := range offeredBy(raw, key, pinOf) {
		if o.err == nil {
			out = append(out, pinned{Name: o.name, Pin: o.pin, Definition: validJSON(o.raw)})
		}
	}
	return out
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
	live.prompts = comparePinned(approved.Prompts, offeredBy(offer.Prompts, "name", PinPrompt))
	live.templates = comparePinned(approved.Templates, offeredBy(offer.Templates, "uriTemplate", PinTemplate))
	if pin, err := PinText(offer.Instructions); offer.Instructions != "" && (err != nil || pin != approved.Instructions) {
		live.instructions = &coded.Error{Code: "instructions-changed", Sentence: "its instructions changed since they were approved",
			Next: "review them and choose its tools again"}
	}
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
		why := judgeTool(approved, o)
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

func judgeTool(approved *toolsApproval, o offered) *coded.Error {
	if o.err != nil {
		return o.err
	}
	if at := slices.IndexFunc(approved.Tools, func(p pinned) bool { return p.Name == o.name }); at >= 0 {
		if approved.Tools[at].Pin != o.pin {
			return toolChanged(o.name)
		}
		return nil
	}
	switch pin, known := approved.Offered[o.name]; {
	case !known:
		return toolAdded(o.name)
	case pin != o.pin:
		return toolChanged(o.name)
	}
	return toolNotGranted(o.name)
}

func comparePinned(approved []pinned, now []offered) map[string]*coded.Error {
	out := make(map[string]*coded.Error, len(now))
	for _, o := range now {
		why := o.err
		if why == nil {
			at := slices.IndexFunc(approved, func(p pinned) bool { return p.Name == o.name })
			switch {
			case at < 0:
				why = toolAdded(o.name)
			case approved[at].Pin != o.pin:
				why = toolChanged(o.name)
			}
		}
		out[o.name] = why
	}
	return out
}

const codeDenied = "permission-denied"

func toolChanged(name string) *coded.Error {
	return &coded.Error{Code: "tool-changed", Sentence: fmt.Sprintf("the definition of %q changed since it was approved", Visible(name)),
		Next: "review the tool and choose the tools again"}
}

func toolAdded(name string) *coded.Error {
	return &coded.Error{Code: "tool-added", Sentence: fmt.Sprintf("%q was added since the tools were chosen", Visible(name)),
		Next: "review the tool and choose the tools again"}
}

func toolDuplicate(name string) *coded.Error {
	return &coded.Error{Code: "tool-duplicate", Sentence: fmt.Sprintf("the server lists %q twice", Visible(name)),
		Next: "report it to the plugin's author; its other tools are not affected"}
}

func toolMissing(name string) *coded.Error {
	return &coded.Error{Code: "tool-missing", Sentence: fmt.Sprintf("the server does not offer %q now", Visible(name)),
		Next: "look at what it offers (sallyport tools)"}
}

func toolNotGranted(name string) *coded.Error {
	return &coded.Error{Code: codeDenied, Sentence: fmt.Sprintf("%q is not among the tools that the operator allowed", Visible(name)),
		Next: "choose the tools again to allow it"}
}

func toolNotPermitted(name string) *coded.Error {
	return &coded.Error{Code: codeDenied, Sentence: fmt.Sprintf("the connector's permissions do not cover the tool %q", Visible(name)),
		Next: "its manifest has to ask for it"}
}

// CallGrant proves that a client may call a tool now: the grant stands, the tool
// is granted, pinned and live as pinned, and the client's scope covers it. It
// reads nothing and waits for nothing.
func (g *Gate) CallGrant(ctx context.Context, grant Grant, tool, client string) (CallGrant, error) {
	if err := grant.Err(); err != nil {
		return CallGrant{}, err
	}
	if grant.state.probe {
		return CallGrant{}, &coded.Error{Code: "tools-required", Sentence: "nothing is called before its tools are chosen", Next: "choose its tools"}
	}
	if why := g.clientMay(client, grant.state.id, tool); why != nil {
		return CallGrant{}, why
	}
	live := grant.state.live.Load()
	if live == nil {
		return CallGrant{}, &coded.Error{Code: "tool-missing", Sentence: "its tools have not been listed yet", Next: "try again"}
	}
	why, there := live.tools[tool]
	switch {
	case !there:
		return CallGrant{}, toolMissing(tool)
	case why != nil:
		return CallGrant{}, why
	}
	return CallGrant{grant, tool, client}, nil
}

// Prompt returns nil if the prompt is live as it was pinned.
func (g Grant) Prompt(name string) error {
	return g.provides(func(l *liveOffer) map[string]*coded.Error { return l.prompts }, name)
}

// Template is Prompt for the resource template with this uriTemplate.
func (g Grant) Template(uriTemplate string) error {
	return g.provides(func(l *liveOffer) map[string]*coded.Error { return l.templates }, uriTemplate)
}

func (g Grant) provides(of func(*liveOffer) map[string]*coded.Error, name string) error {
	if err := g.Err(); err != nil {
		return err
	}
	live := g.state.live.Load()
	if live == nil {
		return toolMissing(name)
	}
	why, there := of(live)[name]
	if !there {
		return toolMissing(name)
	}
	if why != nil {
		return why
	}
	return nil
}

// Instructions returns nil if the server's instructions are as they were pinned.
func (g Grant) Instructions() error {
	if err := g.Err(); err != nil {
		return err
	}
	if live := g.state.live.Load(); live != nil && live.instructions != nil {
		return live.instructions
	}
	return nil
}

// Approved is what is pinned of a connector, in the bytes that were approved: for
// listing tools without starting the server.
type Approved struct {
	ID              plugins.ID
	Identity        Identity
	Tools           []ApprovedTool
	Prompts         []ApprovedTool
	Templates       []ApprovedTool
	Instructions    string // "" unless pinned
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
		ID: id, Identity: r.Run.Identity, ServerInfo: offer.ServerInfo, ProtocolVersion: offer.ProtocolVersion,
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
