package approvals

import (
	"context"
	"errors"
	"fmt"

	"sallyport/internal/coded"
	"sallyport/runtime/audit"
)

// probe is the one try that an allowed run decision has.
type probe struct {
	life  *life
	used  bool
	waits *coded.Error // for a sign-in, before another try
}

// ProbeGrant returns the grant to start a connector once and list what it
// provides, for a run decision that was allowed. It is given exactly once.
func (g *Gate) ProbeGrant(ctx context.Context, decision string) (Grant, error) {
	g.mu.Lock()
	d, p := g.decisions[decision], g.probes[decision]
	if d == nil {
		g.mu.Unlock()
		e := errNoDecision
		return Grant{}, &e
	}
	if d.State != DecisionProbing || p == nil || p.used {
		g.mu.Unlock()
		return Grant{}, coded.New("no-probe", "the decision has no try left")
	}
	p.used, p.waits = true, nil
	shown := *d
	g.mu.Unlock()

	grant, err := g.tryGrant(ctx, shown, p)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // who stopped it says it better
	}
	if err != nil {
		// Nothing was started, so nobody else will say that the try is over.
		if failed := g.ProbeFailed(context.WithoutCancel(ctx), decision, err); failed != nil && coded.Of(failed) != "decision-closed" {
			return Grant{}, errors.Join(err, failed)
		}
		return Grant{}, err
	}
	return grant, nil
}

// tryGrant compares what is on disk with what was allowed a moment ago, in full.
func (g *Gate) tryGrant(ctx context.Context, d Decision, p *probe) (Grant, error) {
	resolved, err := g.resolve(ctx, d.Subject(), Full, d.Path)
	if err != nil {
		return Grant{}, err
	}
	if resolved.Identity != d.Identity {
		return Grant{}, changedNow(d.Subject(), d.Fields, resolved.Fields)
	}
	launch, err := g.launch(ctx, resolved)
	if err != nil {
		return Grant{}, err
	}
	grant := Grant{&grantState{id: d.Subject(), identity: d.Identity, launch: launch, probe: true, ended: p.life.ctx, fields: resolved.Fields}}
	return grant, grant.Err()
}

// Probed records that the connector came up and what it provides: it may run, and
// a second decision asks which tools may be used. Nothing that was allowed before
// is carried over (spec/approval.md 3.2).
func (g *Gate) Probed(ctx context.Context, decision string, offer Offer) (Decision, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.decisions[decision]
	if d == nil {
		e := errNoDecision
		return Decision{}, &e
	}
	if p := g.probes[decision]; d.State != DecisionProbing || p == nil || !p.used {
		return *d, coded.New("no-probe", "the decision is not being tried")
	}
	id := d.Subject()
	t := newTransaction()
	done := d.closed(DecisionAllowed, "")
	stored := storeOffer(offer)
	old := g.recordOf(id)
	r := old.changed()
	r.Before, r.Tools, r.Denied, r.Disabled, r.Revoked = old.remembered(), nil, nil, nil, nil
	r.Run = &runApproval{Identity: d.Identity, Fields: d.Fields, Path: d.Path, Decision: d.ID, Offer: stored, stamp: stamp{*d.AnsweredAt, *d.AnsweredBy}}
	tools := g.newDecision(matter{id, d.Identity, d.Fields, d.Path}, StageTools, *d.AnsweredBy)
	tools.Offered = &stored
	done.Next = tools.ID
	if err := t.putDecision(&done); err != nil {
		return *d, err
	}
	if err := t.putRecord(id, r); err != nil {
		return *d, err
	}
	t.note(d.ID, "probed", By{"", ViaSallyport}, fmt.Sprintf("%d tools", len(offer.Tools)))
	if err := g.ask(ctx, t, tools, *d.AnsweredBy); err != nil {
		return *d, err
	}
	delete(g.failures, id)
	delete(g.trouble, id)
	g.endLife(id, coded.New("superseded", "it was approved anew and has no tools yet"))
	g.endProbe(decision, coded.New("probe-done", "the first try is over"))
	g.tell(Event{"connector", id, "tools-required"})
	return *tools, nil
}

// ProbeFailed closes an allowed run decision whose connector did not come up. No
// approval is recorded (spec/approval.md 4.6).
func (g *Gate) ProbeFailed(ctx context.Context, decision string, cause error) error {
	return g.endTry(ctx, decision, ProbeFailure(cause), By{"", ViaSallyport})
}

// ProbeCancelled is ProbeFailed for a try that the operator ended: nothing is approved,
// nothing is denied, and it may be asked again.
func (g *Gate) ProbeCancelled(ctx context.Context, decision string, by By) error {
	if err := by.mayOperate(); err != nil {
		return err
	}
	return g.endTry(ctx, decision, CancelledProbe(), by)
}

func (g *Gate) endTry(ctx context.Context, decision string, why *coded.Error, by By) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.decisions[decision]
	if d == nil {
		e := errNoDecision
		return &e
	}
	if d.State != DecisionProbing {
		return decisionClosed(*d)
	}
	t := newTransaction()
	done := d.closed(DecisionProbeFailed, why.Code)
	if err := t.putDecision(&done); err != nil {
		return err
	}
	t.note(d.ID, "probe-failed", by, why.Code)
	record := g.answerAudit(audit.Start, *d, by)
	record.Result, record.Reason = audit.Failed, why.Code
	t.audit = append(t.audit, record)
	if err := g.commit(ctx, t); err != nil {
		return err
	}
	g.failures[d.Subject()] = failure{d.Identity, why}
	g.endProbe(decision, why)
	g.tell(Event{"connector", d.Subject(), why.Code})
	return nil
}

// CancelledProbe is why a try ended that the operator cancelled.
func CancelledProbe() *coded.Error {
	return &coded.Error{Code: "probe-cancelled", Sentence: "you cancelled the first try, so nothing was approved", Next: "review it again when you like"}
}

// ProbeFailure is why a first try failed, in words and with what to do next. It keeps a
// cause's code and sentence, and of any other error nothing: it may hold a path or what
// the program printed.
func ProbeFailure(cause error) *coded.Error {
	why := &coded.Error{Code: "probe-failed", Sentence: "it was allowed, but did not come up", Next: "look at its messages, then ask again", Err: cause}
	if code := coded.Of(cause); code != "" {
		inner := refusalOf(cause)
		why.Code, why.Sentence = code, inner.Sentence
		if inner.Next != "" {
			why.Next = inner.Next
		} else if next := afterProbe(code); next != "" {
			why.Next = next
		}
	}
	return why
}

// afterProbe is what to do about a server that failed its first try in a way that it
// cannot say itself.
func afterProbe(code string) string {
	switch code {
	case "transport-closed", "write-failed":
		return "its last error output mostly says why: mend that, then review it again"
	case "start-timeout":
		return "look at its last error output; where it was still downloading, review it again and it may be quicker"
	case "handshake-failed", "list-failed", "malformed-json", "invalid-message", "invalid-utf8", "frame-too-large":
		return "it does not speak MCP as it should: check that its command starts an MCP server, or tell its author"
	}
	return ""
}

// AskTools asks anew which tools may be used, with what a running server provides
// now: for a tool that changed or was added since (spec/approval.md 2.4).
func (g *Gate) AskTools(ctx context.Context, grant Grant, offer Offer, by By) (Decision, error) {
	if err := by.mayOperate(); err != nil {
		return Decision{}, err
	}
	if err := grant.Err(); err != nil {
		return Decision{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	id := grant.ID()
	r := g.records[id]
	if grant.Probe() || r == nil || r.Run == nil || r.Run.Identity != grant.Identity() {
		return Decision{}, coded.New("no-grant", "the approval to run that the question was about is gone")
	}
	d := g.newDecision(matter{id, r.Run.Identity, r.Run.Fields, r.Run.Path}, StageTools, by)
	stored := storeOffer(offer)
	d.Offered = &stored
	if err := g.ask(ctx, newTransaction(), d, by); err != nil {
		return Decision{}, err
	}
	return *d, nil
}
