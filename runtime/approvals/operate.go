package approvals

import (
	"context"

	"sallyport/internal/coded"
	"sallyport/runtime/audit"
	"sallyport/runtime/plugins"
)

// Revoke ends an approval for good: what it allowed has to be asked for again.
func (g *Gate) Revoke(ctx context.Context, id plugins.ID, by By) error {
	return g.operate(ctx, id, by, audit.Revoke, coded.New("revoked", "its approval was revoked"), func(r *record) error {
		r.Before, r.Run, r.Tools = r.remembered(), nil, nil
		r.Revoked = &stamp{g.now(), by}
		return nil
	})
}

// Disable keeps a connector from running until Enable; its approval stays.
func (g *Gate) Disable(ctx context.Context, id plugins.ID, by By) error {
	return g.operate(ctx, id, by, audit.Disable, coded.New("disabled", "the operator disabled it"), func(r *record) error {
		r.Disabled = &stamp{g.now(), by}
		return nil
	})
}

// Enable ends Disable and Park. It approves nothing: what changed meanwhile has to
// be asked for.
func (g *Gate) Enable(ctx context.Context, id plugins.ID, by By) error {
	g.mu.Lock()
	r := g.records[id]
	g.mu.Unlock()
	if r == nil || r.Run == nil {
		return &coded.Error{Code: "never-approved", Sentence: "there is no approval to enable", Next: "review it and answer: sallyport approve " + word(id)}
	}
	resolved, err := g.resolve(ctx, id, Full, r.Run.Path)
	if err != nil {
		return err
	}
	if resolved.Identity != r.Run.Identity {
		return changedNow(id, r.Run.Fields, resolved.Fields)
	}
	err = g.operate(ctx, id, by, audit.Enable, nil, func(now *record) error {
		if now.Run == nil || now.Run.Identity != resolved.Identity {
			return coded.New("superseded", "the approval was changed at this moment; try again")
		}
		now.Disabled = nil
		return nil
	})
	if err == nil {
		g.Unpark(id)
	}
	return err
}

// settled writes an act that was asked for and answered in one word as the decision
// that it is, so that who did it and when stands beside the other answers.
func (g *Gate) settled(t *transaction, id plugins.ID, action string, old *record, by By) error {
	now := g.now()
	d := &Decision{
		Schema: schemaVersion, ID: newDecisionID(), Kind: KindApproval, Action: action, Plugin: id.Plugin, Server: id.Server,
		Options: []string{Allow, Deny}, CreatedAt: now, ExpiresAt: now, State: DecisionAllowed,
		Answer: Allow, AnsweredBy: &by, AnsweredAt: &now, AskedBy: by,
	}
	if old.Run != nil {
		d.Identity, d.Fields = old.Run.Identity, old.Run.Fields
	}
	t.note(d.ID, "asked", by, action)
	t.note(d.ID, "allowed", by, "")
	return t.putDecision(d)
}

// operate applies an operator's act to the record of id: on disk and in the audit
// first, then grants end with why.
func (g *Gate) operate(ctx context.Context, id plugins.ID, by By, action string, why *coded.Error, act func(*record) error) error {
	if action == audit.Enable {
		if err := by.mayAnswer(g.AnswerOnlyInGUI()); err != nil {
			return err
		}
	} else if err := by.mayOperate(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.records[id]
	if old == nil {
		if problem := g.problemOf(id); problem != nil {
			return problem
		}
		return &coded.Error{Code: "never-approved", Sentence: "there is no approval of it", Next: "see how each stands: sallyport plugins list"}
	}
	r := old.changed()
	if err := act(r); err != nil {
		return err
	}
	t := newTransaction()
	if err := t.putRecord(id, r); err != nil {
		return err
	}
	record := g.auditOf(action, audit.OK, id, by)
	if old.Run != nil {
		record.Identity, record.Version = string(old.Run.Identity), old.Run.Fields.Version
	}
	t.audit = append(t.audit, record)
	if err := g.settled(t, id, action, old, by); err != nil {
		return err
	}
	var open *Decision
	if why != nil {
		if open = g.openDecision(id); open != nil {
			closed := open.closed(DecisionSuperseded, why.Code)
			if err := t.putDecision(&closed); err != nil {
				return err
			}
			t.note(open.ID, why.Code, by, "")
		}
	}
	if err := g.commit(ctx, t); err != nil {
		return err
	}
	code := ""
	if why != nil {
		code = why.Code
		g.endLife(id, why)
		if open != nil {
			g.endProbe(open.ID, why)
		}
	}
	g.tell(Event{"connector", id, code})
	return nil
}
