package approvals

import (
	"context"
	"errors"
	"fmt"

	"sallyport/internal/coded"
	"sallyport/runtime/artifact"
	"sallyport/runtime/audit"
	"sallyport/runtime/permissions"
	"sallyport/runtime/plugins"
)

// Answer is what the operator says. Nothing in it has a default that allows.
type Answer struct {
	Allow bool
	// Tools are the names that may be called, for the stage tools. Allowing none
	// takes an empty list; a nil one is no answer.
	Tools []string
	// Classes confirms a risk class of a chosen tool (spec/permissions.md); one
	// that is not confirmed is unknown.
	Classes map[string]permissions.Class
	// Always lets the chosen tools be called without asking, whatever their class,
	// as long as this approval stands (spec/permissions.md 3).
	Always bool
	// AcceptUnpinned, for the stage run, accepts that code is fetched at every start
	// which the approval does not fix.
	AcceptUnpinned bool
	// For is how long an allow of a call holds; "" is ForOnce.
	For Lasting
}

// Answer carries an answer out, once. An allow is checked against what is on disk
// now: any difference from what was shown refuses with "changed-since-asked" and
// asks anew; the new decision is returned with the refusal (spec/approval.md
// 4.3). An allow to run stages the snapshot and leaves the decision in probing:
// ProbeGrant comes next.
func (g *Gate) Answer(ctx context.Context, decision string, a Answer, by By) (Decision, error) {
	d, err := g.beginAnswer(ctx, decision, by)
	if err != nil {
		return d, err
	}
	defer g.endAnswer(decision)
	switch {
	case d.Kind == KindCall:
		return g.answerCall(ctx, d, a, by)
	case a.For != "":
		return d, coded.New("answer-invalid", "only an allow of a call is for a length of time")
	case !a.Allow:
		return g.deny(ctx, d, by)
	case d.Stage == StageRun:
		return g.allowRun(ctx, d, a, by)
	case d.Stage == StageBundle:
		return g.allowBundle(ctx, d, by)
	}
	return g.allowTools(ctx, d, a, by)
}

// beginAnswer takes the decision for one answer: a second one, or an expiry, that
// comes while it is carried out finds it taken.
func (g *Gate) beginAnswer(ctx context.Context, decision string, by By) (Decision, error) {
	if err := by.mayAnswer(g.AnswerOnlyInGUI()); err != nil {
		return Decision{}, err
	}
	if err := g.expire(ctx); err != nil {
		return Decision{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.decisions[decision]
	switch {
	case d == nil:
		e := errNoDecision
		return Decision{}, &e
	case g.docs.fault != nil:
		return *d, g.docs.fault
	case d.State == DecisionExpired:
		return *d, &coded.Error{Code: "decision-expired", Sentence: "nobody answered in time, so nothing was allowed", Next: "ask again"}
	case d.State != DecisionOpen || g.answering[decision]:
		return *d, decisionClosed(*d)
	}
	g.answering[decision] = true
	return *d, nil
}

func (g *Gate) endAnswer(decision string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.answering, decision)
}

// stillOpen returns the decision if nothing took its place while the answer was
// checked. g.mu is held.
func (g *Gate) stillOpen(d Decision) error {
	now := g.decisions[d.ID]
	if now == nil {
		e := errNoDecision
		return &e
	}
	if now.State != DecisionOpen {
		return decisionClosed(*now)
	}
	return nil
}

// answered returns d with the answer in it. g.mu is held.
func (g *Gate) answered(d Decision, state DecisionState, answer string, by By) Decision {
	now := g.now()
	d.State, d.Answer, d.AnsweredBy, d.AnsweredAt = state, answer, &by, &now
	return d.withoutArguments()
}

func (g *Gate) answerAudit(action string, d Decision, by By) audit.Record {
	record := g.auditOf(action, audit.OK, d.Subject(), by)
	record.Version, record.Identity, record.Decision, record.Target = d.Fields.Version, string(d.Identity), d.ID, string(d.Stage)
	if d.Bundle != nil {
		record.Version = d.Bundle.Version
	}
	if d.Call != nil {
		record.Target, record.Client = d.Call.Tool, d.Call.Client
	}
	return record
}

// deny records the answer and applies nothing. For the tools, what may run stays
// as it was: without tools.
func (g *Gate) deny(ctx context.Context, d Decision, by By) (Decision, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.stillOpen(d); err != nil {
		return d, err
	}
	next := g.answered(d, DecisionDenied, Deny, by).closed(DecisionDenied, "")
	t := newTransaction()
	if err := t.putDecision(&next); err != nil {
		return d, err
	}
	id := d.Subject()
	if d.Stage == StageRun {
		r := g.recordOf(id).changed()
		r.Denied = &denial{d.Identity, stamp{g.now(), by}}
		if err := t.putRecord(id, r); err != nil {
			return d, err
		}
	}
	t.note(d.ID, "denied", by, "")
	t.audit = append(t.audit, g.answerAudit(audit.Deny, d, by))
	if err := g.commit(ctx, t); err != nil {
		return d, err
	}
	if d.Stage == StageRun && g.records[id].Run != nil && g.records[id].Run.Identity == d.Identity {
		g.endLife(id, coded.New("denied", "the operator denied it"))
	}
	g.tell(Event{"decision", id, "denied"})
	return next, nil
}

// recordOf returns the record of id, a new one where there is none that counts.
// g.mu is held.
func (g *Gate) recordOf(id plugins.ID) *record {
	if r := g.records[id]; r != nil {
		return r
	}
	return newRecord(id)
}

func (g *Gate) allowRun(ctx context.Context, d Decision, a Answer, by By) (Decision, error) {
	resolved, err := g.resolve(ctx, d.Subject(), Full, d.Path)
	if err != nil || resolved.Identity != d.Identity {
		return g.changedSinceAsked(ctx, d, by, err)
	}
	if err := unpinned(resolved, a.AcceptUnpinned); err != nil {
		return d, err // the question stays open
	}
	if digest := resolved.Digest(); digest != "" {
		_, err := g.stage(ctx, resolved.Connector.Root, digest)
		if coded.Of(err) == artifact.CodeChangedSinceAsked {
			return g.changedSinceAsked(ctx, d, by, nil)
		}
		if err != nil {
			return d, fmt.Errorf("cannot keep the approved copy: %w", err)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.stillOpen(d); err != nil {
		return d, err
	}
	next := g.answered(d, DecisionProbing, Allow, by)
	t := newTransaction()
	if err := t.putDecision(&next); err != nil {
		return d, err
	}
	t.note(d.ID, "allowed", by, accepted(resolved))
	t.audit = append(t.audit, g.answerAudit(audit.Allow, d, by))
	if err := g.commit(ctx, t); err != nil {
		return d, err
	}
	g.probes[d.ID] = &probe{life: newLife()}
	g.tell(Event{"decision", d.Subject(), ""})
	return next, nil
}

// accepted is what the journal says beside an allow.
func accepted(r Resolved) string {
	if unpinned(r, false) != nil {
		return "accepted code that is not fixed by this approval"
	}
	return ""
}

// changedSinceAsked closes d unanswered and asks about what is there now. cause
// is set where what is there now cannot even be resolved: then nothing is asked.
func (g *Gate) changedSinceAsked(ctx context.Context, d Decision, by By, cause error) (Decision, error) {
	if ctx.Err() != nil {
		return d, ctx.Err() // nothing changed: nobody waited for the comparison
	}
	refusal := &coded.Error{Code: "changed-since-asked", Sentence: "it is no longer what the question showed",
		Next: "look at what changed and answer the new question", Err: cause}
	var now Resolved
	if cause == nil {
		now, cause = g.resolveNow(ctx, d.Subject())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.stillOpen(d); err != nil {
		return d, err
	}
	closed := d.closed(DecisionChanged, "changed-since-asked")
	t := newTransaction()
	record := g.answerAudit(audit.Refuse, d, by)
	record.Result, record.Reason = audit.Refused, "changed-since-asked"
	t.audit = append(t.audit, record)
	t.note(d.ID, "changed-since-asked", by, "")
	if cause != nil {
		refusal.Next = "mend it, then ask again"
		if err := t.putDecision(&closed); err != nil {
			return d, err
		}
		return closed, errors.Join(refusal, g.commit(ctx, t))
	}
	anew := g.newDecision(now.matter(), StageRun, by)
	closed.Next = anew.ID
	if err := t.putDecision(&closed); err != nil {
		return d, err
	}
	if err := g.ask(ctx, t, anew, by); err != nil {
		return d, err
	}
	return *anew, refusal
}
