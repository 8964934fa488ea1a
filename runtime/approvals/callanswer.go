package approvals

import (
	"context"
	"slices"

	"sallyport/internal/coded"
	"sallyport/runtime/audit"
)

// answerCall carries out the answer to a question about a call.
func (g *Gate) answerCall(ctx context.Context, d Decision, a Answer, by By) (Decision, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.stillOpen(d); err != nil {
		return d, err
	}
	if !a.Allow {
		return g.settleAnswer(ctx, newTransaction(), g.answered(d, DecisionDenied, Deny, by), audit.Deny, "denied", by)
	}
	if a.For == "" {
		a.For = ForOnce
	}
	if !slices.Contains([]Lasting{ForOnce, ForSession, ForHours, ForAlways}, a.For) {
		return d, coded.New("answer-invalid", "an allow of a call is for once, session, 8h or always")
	}
	if !g.callStands(d) {
		return g.refuseStale(ctx, d, by)
	}
	return g.allowCall(ctx, d, a.For, by)
}

// callStands reports whether what was asked about may still be called. g.mu is held.
func (g *Gate) callStands(d Decision) bool {
	r, why := g.mayRun(d.Subject())
	return why == nil && r.Run.Identity == d.Identity && r.Tools != nil && r.Tools.Decision == d.Call.Approval &&
		g.clientMay(d.Call.Client, d.Subject(), d.Call.Tool) == nil
}

func (g *Gate) refuseStale(ctx context.Context, d Decision, by By) (Decision, error) {
	t := newTransaction()
	closed := d.closed(DecisionChanged, "changed-since-asked")
	if err := t.putDecision(&closed); err != nil {
		return d, err
	}
	t.note(d.ID, "changed-since-asked", by, "")
	record := g.answerAudit(audit.Refuse, d, by)
	record.Result, record.Reason = audit.Refused, "changed-since-asked"
	t.audit = append(t.audit, record)
	if err := g.commit(ctx, t); err != nil {
		return d, err
	}
	g.tell(Event{"decision", d.Subject(), "changed-since-asked"})
	return closed, &coded.Error{Code: "changed-since-asked", Sentence: "what the call was about is no longer approved as it was", Next: "let the client try again"}
}

// allowCall records the allow, and what is to hold longer with it. g.mu is held.
func (g *Gate) allowCall(ctx context.Context, d Decision, lasting Lasting, by By) (Decision, error) {
	t := newTransaction()
	now := g.policy.Load()
	session := now.session
	if lasting != ForOnce {
		if now.doubtful {
			return d, &coded.Error{Code: "policy-unreadable", Sentence: "the stored policy does not verify, so nothing is added to it",
				Next: "allow this call once, and see sallyport doctor"}
		}
		standing := Standing{Tool: toolName(d.Subject(), d.Call.Tool), Client: d.Call.Client, For: lasting, Approval: d.Call.Approval, At: g.now(), By: by}
		if lasting == ForHours {
			standing.Until = standing.At.Add(StandingTime)
		}
		before := func(s Standing) bool { return s.Tool == standing.Tool && s.Client == standing.Client }
		if lasting == ForSession {
			session = append(slices.DeleteFunc(slices.Clone(session), before), standing)
		} else {
			next := now.policyDocument
			next.Standing = append(slices.DeleteFunc(g.standingNow(next.Standing), before), standing)
			if err := t.putPolicy(next); err != nil {
				return d, err
			}
		}
	}
	next := g.answered(d, DecisionAllowed, Allow, by)
	next.For = lasting
	// Before the commit, which wakes the call: it finds the allow, once it gets the lock.
	g.unused[d.ID] = unused{next, g.now().Add(retryTime)}
	answered, err := g.settleAnswer(ctx, t, next, audit.Allow, "allowed", by)
	if err != nil {
		delete(g.unused, d.ID)
		return d, err
	}
	g.setSession(session)
	return answered, nil
}

func (g *Gate) settleAnswer(ctx context.Context, t *transaction, next Decision, action, event string, by By) (Decision, error) {
	if err := t.putDecision(&next); err != nil {
		return next, err
	}
	t.note(next.ID, event, by, string(next.For))
	t.audit = append(t.audit, g.answerAudit(action, next, by))
	if err := g.commit(ctx, t); err != nil {
		return next, err
	}
	g.tell(Event{"decision", next.Subject(), event})
	return next, nil
}
