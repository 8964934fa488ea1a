package approvals

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"sallyport/internal/coded"
	"sallyport/runtime/audit"
	"sallyport/runtime/permissions"
)

// allowTools pins what was chosen from what was shown (spec/approval.md 2.3), and
// with that the connector is enabled.
func (g *Gate) allowTools(ctx context.Context, d Decision, a Answer, by By) (Decision, error) {
	chosen, err := chooseTools(d, a)
	if err != nil {
		return d, err
	}
	resolved, err := g.resolve(ctx, d.Subject(), Full, d.Path)
	if err != nil || resolved.Identity != d.Identity {
		return g.changedSinceAsked(ctx, d, by, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.stillOpen(d); err != nil {
		return d, err
	}
	id := d.Subject()
	old := g.records[id]
	if old == nil || old.Run == nil || old.Run.Identity != d.Identity {
		return d, &coded.Error{Code: "changed-since-asked", Sentence: "the approval to run that the question was about is gone", Next: "ask again"}
	}
	next := g.answered(d, DecisionAllowed, Allow, by).closed(DecisionAllowed, "")
	next.Tools = slices.Clone(a.Tools)
	r := old.changed()
	chosen.Decision, chosen.stamp = d.ID, stamp{g.now(), by}
	r.Before, r.Tools = old.remembered(), chosen
	r.Denied, r.Disabled, r.Revoked = nil, nil, nil
	t := newTransaction()
	if err := t.putDecision(&next); err != nil {
		return d, err
	}
	if err := t.putRecord(id, r); err != nil {
		return d, err
	}
	t.note(d.ID, "allowed", by, strings.Join(a.Tools, " "))
	t.audit = append(t.audit, g.answerAudit(audit.Enable, d, by))
	if err := g.commit(ctx, t); err != nil {
		return d, err
	}
	delete(g.failures, id)
	delete(g.trouble, id)
	g.endLife(id, coded.New("superseded", "the tools were chosen anew"))
	g.tell(Event{"connector", id, ""})
	return next, nil
}

// pinsOf returns the pins of the tools that can be pinned.
func pinsOf(tools []json.RawMessage) map[string]Pin {
	pins := map[string]Pin{}
	for _, o := range offeredTools(tools) {
		if o.err == nil {
			pins[o.name] = o.pin
		}
	}
	return pins
}

// chooseTools checks every chosen name against the offer that was shown.
func chooseTools(d Decision, a Answer) (*toolsApproval, error) {
	offer := d.Offer()
	if a.Tools == nil && len(offer.Tools) > 0 {
		return nil, &coded.Error{Code: "tools-not-chosen", Sentence: "no tools were named", Next: "name the tools that may be called, or an empty list for none"}
	}
	out := &toolsApproval{Tools: []pinned{}, Offered: pinsOf(offer.Tools)}
	states := offeredTools(offer.Tools)
	set := d.Fields.Permitted.Set()
	for _, name := range slices.Compact(sorted(a.Tools)) {
		at := slices.IndexFunc(states, func(s offered) bool { return s.name == name })
		switch {
		case at < 0:
			return nil, toolMissing(name)
		case states[at].err != nil:
			return nil, states[at].err
		case !set.AllowsTool(name):
			return nil, toolNotPermitted(name)
		}
		class, err := confirmed(a.Classes, name)
		if err != nil {
			return nil, err
		}
		out.Tools = append(out.Tools, pinned{name, states[at].pin, class, a.Always, states[at].raw})
	}
	out.Prompts, out.Templates = pinAll(offer.Prompts, "name", PinPrompt), pinAll(offer.Templates, "uriTemplate", PinTemplate)
	if offer.Instructions != "" {
		// Instructions that cannot be pinned are not shown to anybody, no more.
		out.Instructions, _ = PinText(offer.Instructions)
	}
	return out, nil
}

// confirmed is the class that the operator gave a tool; unknown without one.
func confirmed(classes map[string]permissions.Class, name string) (permissions.Class, error) {
	class, ok := classes[name]
	if !ok {
		return permissions.Unknown, nil
	}
	return class, checkClass(class)
}

func checkClass(class permissions.Class) error {
	if slices.Contains([]permissions.Class{permissions.Read, permissions.Write, permissions.Destructive, permissions.Unknown}, class) {
		return nil
	}
	return coded.New("class-invalid", "a risk class is read, write, destructive or unknown")
}
