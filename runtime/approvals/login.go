package approvals

import (
	"context"
	"fmt"

	"sallyport/internal/coded"
	"sallyport/runtime/plugins"
)

// ProbeWaits keeps an allowed run decision whose first try needs a person to sign in
// first: it is not over, nothing is approved yet, and ProbeGrant gives another try,
// also after a restart. It ends like any try that nobody ends.
func (g *Gate) ProbeWaits(ctx context.Context, decision string, why *coded.Error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	d, p := g.decisions[decision], g.probes[decision]
	switch {
	case d == nil:
		e := errNoDecision
		return &e
	case d.State != DecisionProbing || p == nil:
		return decisionClosed(*d)
	}
	t := newTransaction()
	next := *d
	next.Code = why.Code
	if err := t.putDecision(&next); err != nil {
		return err
	}
	t.note(d.ID, "waits", By{"", ViaSallyport}, why.Code)
	if err := g.commit(ctx, t); err != nil {
		return err
	}
	p.used, p.waits = false, why
	g.tell(Event{"connector", d.Subject(), why.Code})
	return nil
}

// settleProbes takes up the tries that waited for a sign-in when Sallyport ended, and
// closes the others. g.mu is held.
func (g *Gate) settleProbes(ctx context.Context) error {
	for _, d := range g.decisions {
		if d.State != DecisionProbing || d.Code != "oauth-login-needed" || d.AnsweredAt == nil || g.probes[d.ID] != nil ||
			!g.now().Before(d.AnsweredAt.Add(g.cfg.DecisionTTL())) {
			continue
		}
		g.probes[d.ID] = &probe{life: newLife(), waits: &coded.Error{Code: "oauth-login-needed",
			Sentence: "the server wants you to sign in", Next: "sallyport login " + d.Subject().String()}}
	}
	return g.interruptProbes(ctx)
}

// LoginGrant proves that a connector is approved as it is right now, for signing in to
// it: to run, whether or not its tools are chosen or it is blocked, or to be tried for
// the first time. Like that of a first try it permits no call. Where it is for a try
// that waits, decision is that of the try.
func (g *Gate) LoginGrant(ctx context.Context, id plugins.ID, by By) (grant Grant, decision string, err error) {
	if err := by.mayOperate(); err != nil {
		return Grant{}, "", err
	}
	g.mu.Lock()
	if open := g.openDecision(id); open != nil && open.State == DecisionProbing {
		if p := g.probes[open.ID]; p != nil && p.waits != nil {
			shown := *open
			g.mu.Unlock()
			grant, err = g.tryGrant(ctx, shown, p)
			return grant, shown.ID, err
		}
	}
	r, why := g.mayLogin(id)
	same, err := g.docs.stillThere(ctx, approvalKind, id.String())
	g.mu.Unlock()
	switch {
	case why != nil:
		return Grant{}, "", why
	case err != nil:
		return Grant{}, "", fmt.Errorf("cannot read the approval: %w", err)
	case !same:
		return Grant{}, "", tampered("the record was changed in the store while Sallyport ran")
	}
	resolved, err := g.resolve(ctx, id, Full, r.Run.Path)
	if err != nil {
		return Grant{}, "", err
	}
	if resolved.Identity != r.Run.Identity {
		return Grant{}, "", changedNow(id, r.Run.Fields, resolved.Fields)
	}
	launch, err := g.launch(ctx, resolved)
	if err != nil {
		return Grant{}, "", err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now, why := g.mayLogin(id)
	switch {
	case why != nil:
		return Grant{}, "", why
	case now != r:
		return Grant{}, "", coded.New("superseded", "the approval was changed at this moment; try again")
	}
	l := g.lives[id]
	if l == nil {
		l = newLife()
		g.lives[id] = l
	}
	return Grant{&grantState{id: id, identity: r.Run.Identity, launch: launch, probe: true, ended: l.ctx, fields: r.Run.Fields}}, "", nil
}

// mayLogin is mayRun where it does not matter that tools are to be chosen yet, or that
// the connector is blocked for want of the sign-in. g.mu is held.
func (g *Gate) mayLogin(id plugins.ID) (*record, *coded.Error) {
	r, why := g.mayRun(id)
	if why == nil {
		return r, nil
	}
	if t := g.trouble[id]; t != nil && t.why == why && t.state == Blocked || why.Code == "tools-required" {
		return g.records[id], nil
	}
	if r := g.records[id]; why.Code == "never-approved" || r == nil || r.Run == nil {
		return nil, &coded.Error{Code: "never-approved", Sentence: "nobody has approved it, so there is nothing to sign in to yet",
			Next: "review it and answer: sallyport approve " + id.String()}
	}
	return nil, why
}
