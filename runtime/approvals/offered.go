package approvals

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"sallyport/runtime/env"
	"sallyport/runtime/permissions"
	"sallyport/runtime/plugins"
)

// OfferedTool is one tool to choose or leave, at the stage tools.
type OfferedTool struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`       // the plugin's text, made visible
	Refused     string            `json:"refused,omitempty"` // a code: it cannot be chosen
	Suggested   permissions.Class `json:"suggested"`         // the operator confirms it, or not
	// Before is "same" or "changed" for one that was allowed at the last choice,
	// "added" for one that was not on offer then, "" for one that was left, and
	// where there was no choice yet.
	Before string `json:"before,omitempty"`
	// Difference is the definition then and now as a unified difference, where Before is
	// "changed".
	Difference string          `json:"difference,omitempty"`
	Definition json.RawMessage `json:"definition,omitempty"` // none where it is not JSON
}

// Offered lists what a decision of the stage tools is about, in the server's
// order. Nothing in it is chosen: what was allowed before only stands beside it
// (spec/approval.md 3.2).
func (g *Gate) Offered(d Decision) []OfferedTool {
	out := []OfferedTool{}
	if d.Stage != StageTools {
		return out
	}
	last := g.lastChoice(d.Subject())
	set := d.Fields.Permitted.Set()
	for _, o := range offeredTools(d.Offer().Tools) {
		tool := OfferedTool{Name: o.name, Description: descriptionOf(o.raw), Definition: validJSON(o.raw), Suggested: permissions.Unknown}
		switch {
		case o.err != nil:
			tool.Refused = o.err.Code
		case !set.AllowsTool(o.name):
			tool.Refused = codeDenied
		default:
			tool.Suggested = permissions.Suggest(o.name, o.raw)
		}
		if last != nil {
			tool.Before = last.compare(o)
			if at := last.index(o.name); tool.Before == "changed" && at >= 0 {
				tool.Difference = udiff.Unified("before", "now", indented(last.Tools[at].Definition), indented(o.raw))
			}
		}
		out = append(out, tool)
	}
	return out
}

// lastChoice returns what was allowed last, nil where nothing ever was.
func (g *Gate) lastChoice(id plugins.ID) *before {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.records[id]; r != nil {
		return r.remembered()
	}
	return nil
}

// compare says how a tool stands to the last choice: "same" or "changed" if it was
// allowed, "added" if it was not on offer, "" if it was left.
func (b *before) compare(o offered) string {
	at := b.index(o.name)
	if at < 0 {
		if _, there := b.Offered[o.name]; !there {
			return "added"
		}
		return ""
	}
	if b.Tools[at].Pin == o.pin {
		return "same"
	}
	return "changed"
}

func (b *before) index(tool string) int {
	return slices.IndexFunc(b.Tools, func(p pinned) bool { return p.Name == tool })
}

func descriptionOf(raw []byte) string {
	var members map[string]json.RawMessage
	var text string
	if json.Unmarshal(raw, &members) != nil || json.Unmarshal(members["description"], &text) != nil {
		return ""
	}
	return visibleText(text)
}

// ApprovedIDs lists the connectors that have an approval on record, sorted; Approved
// says which of them may run.
func (g *Gate) ApprovedIDs() []plugins.ID {
	g.mu.Lock()
	defer g.mu.Unlock()
	ids := []plugins.ID{}
	for id, r := range g.records {
		if r.Run != nil {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b plugins.ID) int { return strings.Compare(a.String(), b.String()) })
	return ids
}

// Environment lists what a connector's process would get as it is declared now:
// names, where each comes from, and no value that is not the same for everybody.
func (g *Gate) Environment(ctx context.Context, id plugins.ID) ([]env.Shown, error) {
	g.mu.Lock()
	path := g.pathFor(id)
	g.mu.Unlock()
	if path == "" {
		var err error
		if path, err = g.userPath(ctx); err != nil {
			return nil, err
		}
	}
	connector, ok := g.cfg.Connector(id)
	switch {
	case !ok:
		return nil, unknownConnector(id)
	case connector.Invalid != nil:
		return nil, connector.Invalid
	case connector.Transport != plugins.Stdio:
		return []env.Shown{}, nil
	}
	plan, err := g.resolver.plan(connector, connector.Root, path)
	if err != nil {
		return nil, refusalOf(err)
	}
	return plan.Masked(), nil
}
