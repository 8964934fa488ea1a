package approvals

import (
	"context"
	"encoding/json"
	"slices"

	"sallyport/internal/coded"
	"sallyport/runtime/audit"
)

// codeScopeChanged is what a call is refused with whose tool was withdrawn from its
// client before it was answered (spec/permissions.md 6).
const codeScopeChanged = "scope-changed"

// ScopeChanged is the refusal of a call that was under way when its tool was
// withdrawn from the client. The client knew the tool: it is told.
func ScopeChanged() *coded.Error {
	return &coded.Error{Code: codeScopeChanged, Sentence: "the operator took this tool from the client, so the call was cancelled",
		Next: "the operator can grant it again: sallyport clients grant"}
}

// SetClientScope changes what a client sees; its token stays.
func (g *Gate) SetClientScope(ctx context.Context, name string, scope Scope, by By) error {
	_, err := g.changeScope(ctx, name, audit.ClientGrant, nil, by, func(Scope) (Scope, error) { return scope, scope.check() })
	return err
}

// GrantClient lets a client see more: lines as in Scope.Only.
func (g *Gate) GrantClient(ctx context.Context, name string, lines []string, by By) (Client, error) {
	return g.changeScope(ctx, name, audit.ClientGrant, lines, by, func(s Scope) (Scope, error) { return s.with(lines) })
}

// GrantAll lets a client see everything that is enabled, now and later.
func (g *Gate) GrantAll(ctx context.Context, name string, by By) (Client, error) {
	return g.changeScope(ctx, name, audit.ClientGrant, nil, by, func(Scope) (Scope, error) { return Scope{All: true}, nil })
}

// RevokeClient lets a client see less, at once: its calls of what it no longer sees
// are cancelled, its questions about them closed, and the answers that stood for them
// forgotten.
func (g *Gate) RevokeClient(ctx context.Context, name string, lines []string, by By) (Client, error) {
	return g.changeScope(ctx, name, audit.ClientRevoke, lines, by, func(s Scope) (Scope, error) {
		return s.without(lines, g.enabledNames(), g.toolNames)
	})
}

// changeScope replaces a client's scope. Whoever may operate may narrow one; making
// one wider is an answer.
func (g *Gate) changeScope(ctx context.Context, name, action string, lines []string, by By, change func(Scope) (Scope, error)) (Client, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	may := by.mayOperate()
	if action != audit.ClientRevoke {
		may = by.mayAnswer(g.docs.guiOnly())
	}
	if may != nil {
		return Client{}, may
	}
	old := (*g.clients.Load())[name]
	if old == nil {
		return Client{}, unknownClient()
	}
	c := *old
	var err error
	if err = (Scope{Only: lines}).check(); err == nil {
		c.Scope, err = change(old.Scope)
	}
	if err != nil {
		return Client{}, err
	}
	t := newTransaction()
	withdrawn := func(id, tool string) bool { return !c.Scope.All && !c.Scope.covers(id, tool) }
	if err := g.withdraw(t, name, codeScopeChanged, withdrawn); err != nil {
		return Client{}, err
	}
	if err := g.writeClient(ctx, t, action, name, &c, by, lines...); err != nil {
		return Client{}, err
	}
	return c.Client, nil
}

// RotateClient gives a client another token, which is shown once. The old one and
// those of its processes are worth nothing from then on, and what it was asking for
// is over: whoever had the old token may have asked it.
func (g *Gate) RotateClient(ctx context.Context, name string, by By) (token string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := by.mayAnswer(g.docs.guiOnly()); err != nil {
		return "", err
	}
	old := (*g.clients.Load())[name]
	if old == nil {
		return "", unknownClient()
	}
	token = newToken()
	c := *old
	c.Token, c.Rotated = tokenSum(token), g.now()
	t := newTransaction()
	if err := g.closeCallsOf(t, name, "client-rotated", func(string, string) bool { return true }); err != nil {
		return "", err
	}
	if err := g.writeClient(ctx, t, audit.ClientRotate, name, &c, by); err != nil {
		return "", err
	}
	g.sessions.dropClient(name)
	return token, nil
}

// Client returns one client.
func (g *Gate) Client(name string) (Client, error) {
	c := (*g.clients.Load())[name]
	if c == nil {
		return Client{}, unknownClient()
	}
	return c.Client, nil
}

// withdraw adds to t that a client loses tools: its questions about them close, and
// nothing that was answered stands for the day that it gets them back. g.mu is held.
func (g *Gate) withdraw(t *transaction, name, code string, lost func(id, tool string) bool) error {
	if err := g.closeCallsOf(t, name, code, lost); err != nil {
		return err
	}
	gone := func(s Standing) bool {
		id, tool, _ := entry(s.Tool)
		return s.Client == name && lost(id, tool)
	}
	p := g.policy.Load()
	g.setSession(slices.DeleteFunc(slices.Clone(p.session), gone))
	next := p.policyDocument
	next.Standing = slices.DeleteFunc(slices.Clone(p.Standing), gone)
	if len(next.Standing) == len(p.Standing) {
		return nil
	}
	return t.putPolicy(next)
}

// closeCallsOf adds to t that a client's open questions are over, and forgets allows
// that it has not used. g.mu is held.
func (g *Gate) closeCallsOf(t *transaction, name, code string, about func(id, tool string) bool) error {
	for _, d := range g.decisions {
		if d.Kind == KindCall && d.State == DecisionOpen && d.Call.Client == name && about(d.Subject().String(), d.Call.Tool) {
			if err := g.closeCall(t, *d, DecisionSuperseded, code); err != nil {
				return err
			}
		}
	}
	for id, u := range g.unused {
		if u.decision.Call.Client == name && about(u.decision.Subject().String(), u.decision.Call.Tool) {
			delete(g.unused, id)
		}
	}
	return nil
}

// enabledNames are the connectors with approved tools. g.mu is held.
func (g *Gate) enabledNames() []string {
	names := []string{}
	for id, r := range g.records {
		if r.Tools != nil {
			names = append(names, id.String())
		}
	}
	slices.Sort(names)
	return names
}

// toolNames are the approved tools of a connector. g.mu is held.
func (g *Gate) toolNames(id string) []string {
	var names []string
	if r := g.records[parseID(id)]; r != nil && r.Tools != nil {
		for _, p := range r.Tools.Tools {
			names = append(names, p.Name)
		}
	}
	return names
}

// removedID is the sealed document of the names that were removed and not added again.
const removedID = "removed-clients"

// maxRemoved bounds it; the oldest are forgotten.
const maxRemoved = 256

type removedClients struct {
	Schema int      `json:"schema"`
	Names  []string `json:"names"`
}

// WasRemoved reports whether the operator removed a client of this name and added none
// since. Where that cannot be read it is so: what adds clients by itself then does not.
func (g *Gate) WasRemoved(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	removed, err := g.removed()
	return err != nil || slices.Contains(removed.Names, name)
}

func (g *Gate) removed() (removedClients, error) {
	var removed removedClients
	body, ok, problem := g.docs.get(settingKind, removedID)
	if problem != nil {
		return removed, problem
	}
	if !ok {
		return removed, nil
	}
	return removed, json.Unmarshal(body, &removed)
}

// noteRemoved adds to t that a name was removed, or is not any more. g.mu is held.
func (g *Gate) noteRemoved(t *transaction, name string, gone bool) error {
	removed, err := g.removed()
	if err == nil && slices.Contains(removed.Names, name) == gone {
		return nil
	}
	names := slices.DeleteFunc(slices.Clone(removed.Names), func(one string) bool { return one == name })
	if gone {
		names = append(names, name)
	}
	names = names[max(0, len(names)-maxRemoved):]
	return t.batch.put(settingKind, removedID, removedClients{schemaVersion, names})
}
