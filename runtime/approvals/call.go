package approvals

import (
	"context"

	"sallyport/internal/coded"
)

// CallGrant proves that a client may call a tool now: the grant stands, the tool
// is granted, pinned and live as pinned, and the client's scope covers it. It
// reads nothing and waits for nothing.
func (g *Gate) CallGrant(ctx context.Context, grant Grant, tool, client string) (CallGrant, error) {
	if grant.state != nil { // first: what a client may not see has no state either
		if why := g.clientMay(client, grant.state.id, tool); why != nil {
			return CallGrant{}, why
		}
	}
	if err := grant.Err(); err != nil {
		return CallGrant{}, err
	}
	if grant.state.probe {
		return CallGrant{}, &coded.Error{Code: "tools-required", Sentence: "nothing is called before its tools are chosen", Next: "choose its tools: sallyport approve " + word(grant.ID())}
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
