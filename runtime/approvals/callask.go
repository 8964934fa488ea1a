package approvals

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/audit"
	"sallyport/runtime/permissions"
	"sallyport/runtime/plugins"
)

// KindCall is the kind of a decision about one call (spec/permissions.md 4).
const KindCall = "call"

const (
	// DefaultCallTTL is how long a call waits for an answer.
	DefaultCallTTL = 120 * time.Second
	// retryTime is how long an allow that nobody waited for serves one identical
	// call.
	retryTime = 5 * time.Minute
	// deniedTime is how long a deny holds for identical calls: nobody is asked the
	// same question twice for the same bytes.
	deniedTime = 10 * time.Minute
	// maxOpenCalls is how many open questions about calls one client may cause.
	maxOpenCalls = 32
	// tellEvery is how often a waiting agent hears that it waits.
	tellEvery = 10 * time.Second
)

// CallQuestion is what a decision of the kind call is about. An allow is for
// exactly this and nothing else.
type CallQuestion struct {
	Tool   string            `json:"tool"` // the server's own name
	Client string            `json:"client"`
	Class  permissions.Class `json:"class"`
	// Sent is the SHA-256 of the bytes that would be sent, as mcp.SentSum has it.
	Sent string `json:"sent"`
	// Arguments are for a person to read: secrets masked, hidden characters visible,
	// limited in length. LeftOut says that there is more.
	Arguments string `json:"arguments"`
	LeftOut   bool   `json:"leftOut,omitempty"`
	Pin       Pin    `json:"pin"`
	Approval  string `json:"approval"` // the decision that chose the tools
}

// Sentence opens the question, in words.
func (q CallQuestion) Sentence(id plugins.ID) string {
	return fmt.Sprintf("%s wants %s to run %s.", Visible(q.Client), Visible(id.String()), Visible(q.Tool))
}

// same reports whether an allow of q is one of other too.
func (q CallQuestion) same(other CallQuestion) bool {
	return q.Tool == other.Tool && q.Client == other.Client && q.Sent == other.Sent && q.Pin == other.Pin && q.Approval == other.Approval
}

// callWait is one call that waits for the answer to its decision.
type callWait struct {
	asked Decision      // as it was asked; never changes
	done  chan struct{} // closed when the decision is
	ended DecisionState // how; set before done is closed
	code  string        // and why, where nobody answered
}

// unused is an allow that no call has used yet.
type unused struct {
	decision Decision
	until    time.Time
}

// Consent returns nil once the policy or the operator lets this call be made: at
// once, or after waiting for the answer to a question. It is for one call. sent is
// the sum of the bytes that would be sent (mcp.SentSum) and params what they say.
// waiting, called at once and every 10 s meanwhile, returns at once; it may be nil.
//
// Everything but an allow is a refusal: policy-denied, call-denied, call-expired,
// call-cancelled, call-interrupted, call-limit,
// denied-recently, scope-changed, or why the grant ended. The caller
// proves again that the call may be made: the world went on meanwhile.
func (g *Gate) Consent(ctx context.Context, c CallGrant, sent string, params json.RawMessage, waiting func()) error {
	switch g.Verdict(c) {
	case MayCall:
		return nil
	case NotAtAll:
		return &coded.Error{Code: "policy-denied", Sentence: "the operator's policy does not let this client call this tool",
			Next: "the operator can change it: sallyport policy list"}
	}
	if err := g.expire(ctx); err != nil {
		return err
	}
	w, err := g.beginCall(ctx, c, g.questionOf(c, sent, params))
	if err != nil || w == nil {
		return err
	}
	if waiting == nil {
		waiting = func() {}
	}
	return g.awaitCall(ctx, w, c, waiting)
}

func (g *Gate) questionOf(c CallGrant, sent string, params json.RawMessage) CallQuestion {
	facts := g.factsOf(c)
	q := CallQuestion{Tool: c.tool, Client: c.client, Class: facts.class, Sent: sent, Approval: facts.approval}
	if q.Class == "" {
		q.Class = permissions.Unknown
	}
	if c.grant.state != nil && c.grant.state.approved != nil {
		for _, p := range c.grant.state.approved.Tools {
			if p.Name == c.tool {
				q.Pin = p.Pin
			}
		}
	}
	q.Arguments, q.LeftOut = argumentsText(params)
	return q
}

// beginCall uses an allow that an identical call before was given too late (nil,
// nil), waits on where one was given up, or asks.
func (g *Gate) beginCall(ctx context.Context, c CallGrant, q CallQuestion) (*callWait, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.docs.fault != nil {
		return nil, g.docs.fault
	}
	if served, err := g.serveRetry(ctx, c, q); served || err != nil {
		return nil, err
	}
	if g.deniedRecently(c, q) {
		return nil, &coded.Error{Code: "denied-recently", Sentence: "the operator denied this very call a moment ago, and is not asked again",
			Next: "do not repeat it; the operator can allow the tool with sallyport policy set"}
	}
	by := By{q.Client, ViaAgent}
	open := 0
	for _, d := range g.decisions {
		if d.Kind != KindCall || d.State != DecisionOpen || d.Call.Client != q.Client {
			continue
		}
		if open++; g.waiting[d.ID] == nil && d.Identity == c.grant.Identity() && d.Subject() == c.grant.ID() && d.Call.same(q) {
			if err := g.noteCall(ctx, d.ID, "asked-again", by); err != nil {
				return nil, err
			}
			return g.waitOn(*d), nil
		}
	}
	if open >= maxOpenCalls {
		return nil, &coded.Error{Code: "call-limit", Sentence: fmt.Sprintf("%d calls of this client wait for the operator already", open),
			Next: "wait until they are answered"}
	}
	return g.askCall(ctx, c, q, by)
}

// serveRetry uses up an allow that nobody waited for. g.mu is held.
func (g *Gate) serveRetry(ctx context.Context, c CallGrant, q CallQuestion) (bool, error) {
	for id, u := range g.unused {
		if !g.now().Before(u.until) {
			delete(g.unused, id)
			continue
		}
		if u.decision.Identity == c.grant.Identity() && u.decision.Subject() == c.grant.ID() && u.decision.Call.same(q) {
			delete(g.unused, id)
			return true, g.noteCall(ctx, id, "served-retry", By{q.Client, ViaAgent})
		}
	}
	return false, nil
}

// deniedRecently reports whether the operator said no to this very call within the
// last minutes. A clock that went back makes a no last no longer. g.mu is held.
func (g *Gate) deniedRecently(c CallGrant, q CallQuestion) bool {
	for _, d := range g.decisions {
		if d.Kind != KindCall || d.State != DecisionDenied || d.AnsweredAt == nil {
			continue
		}
		age := g.now().Sub(*d.AnsweredAt)
		if age >= 0 && age < deniedTime && d.Identity == c.grant.Identity() && d.Subject() == c.grant.ID() && d.Call.same(q) {
			return true
		}
	}
	return false
}

// noteCall writes into a decision's journal. g.mu is held.
func (g *Gate) noteCall(ctx context.Context, decision, event string, by By) error {
	t := newTransaction()
	t.note(decision, event, by, "")
	return g.commit(ctx, t)
}

// askCall opens the question; it is on disk before anybody is asked. g.mu is held.
func (g *Gate) askCall(ctx context.Context, c CallGrant, q CallQuestion, by By) (*callWait, error) {
	id, now := c.grant.ID(), g.now()
	d := &Decision{
		Schema: schemaVersion, ID: newDecisionID(), Kind: KindCall, Action: KindCall,
		Plugin: id.Plugin, Server: id.Server, Options: []string{Allow, Deny}, CreatedAt: now, ExpiresAt: now.Add(g.cfg.CallTTL),
		State: DecisionOpen, AskedBy: by, Identity: c.grant.Identity(), Call: &q,
	}
	t := newTransaction()
	if err := t.putDecision(d); err != nil {
		return nil, err
	}
	t.note(d.ID, "asked", by, q.Tool)
	t.audit = append(t.audit, g.answerAudit(audit.Ask, *d, by))
	g.prune(t)
	if err := g.commit(ctx, t); err != nil {
		return nil, err
	}
	g.tell(Event{"decision", id, ""})
	return g.waitOn(*d), nil
}

func (g *Gate) waitOn(d Decision) *callWait {
	w := &callWait{asked: d, done: make(chan struct{})}
	g.waiting[d.ID] = w
	return w
}

// awaitCall waits for whatever comes first. Nothing but an allow, to a client that is
// still there, returns nil.
func (g *Gate) awaitCall(ctx context.Context, w *callWait, c CallGrant, waiting func()) error {
	expiry, again := time.NewTimer(w.asked.ExpiresAt.Sub(g.now())), time.NewTicker(tellEvery)
	defer expiry.Stop()
	defer again.Stop()
	waiting()
	for {
		select {
		case <-w.done:
			return g.settleCall(ctx, w)
		case <-ctx.Done():
			return g.leaveCall(ctx, w)
		case <-c.grant.Done():
			select {
			case <-w.done: // it ended first
				return g.settleCall(ctx, w)
			default:
			}
			g.endCall(ctx, w, DecisionSuperseded, coded.Of(c.grant.Err()))
			return c.grant.Err()
		case <-expiry.C:
			g.endCall(ctx, w, DecisionExpired, "expired")
			return g.settleCall(ctx, w)
		case <-again.C:
			waiting()
		}
	}
}

// settleCall turns how the decision ended into this call's go-ahead or refusal. An
// allow is used up by it.
func (g *Gate) settleCall(ctx context.Context, w *callWait) error {
	if ctx.Err() != nil {
		return callCancelled() // the allow is kept for the retry
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	id := w.asked.ID
	if _, there := g.unused[id]; there {
		delete(g.unused, id)
		return nil
	}
	switch w.ended {
	case DecisionDenied:
		return &coded.Error{Code: "call-denied", Sentence: "the operator denied this call", Next: "do not try it again without asking why"}
	case DecisionExpired:
		return &coded.Error{Code: "call-expired", Sentence: "nobody answered in time, so the call was not made",
			Next: "the operator sees and answers it with sallyport decisions watch; then try again"}
	}
	if w.code == codeScopeChanged {
		return ScopeChanged()
	}
	return &coded.Error{Code: "call-interrupted", Sentence: "the question about this call ended without an answer, so the call was not made",
		Next: "try again"}
}

// leaveCall is for a call whose client gave up or went. It is not made; the
// question stays open for the time that it has, so that an answer that comes late
// serves the client's next try.
func (g *Gate) leaveCall(ctx context.Context, w *callWait) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	id := w.asked.ID
	if g.waiting[id] == w {
		delete(g.waiting, id)
		if err := g.noteCall(context.WithoutCancel(ctx), id, "client-gone", By{w.asked.Call.Client, ViaAgent}); err != nil {
			g.log.Error("the journal of a decision cannot be written", "error", err)
		}
	}
	return callCancelled()
}

func callCancelled() error {
	return &coded.Error{Code: "call-cancelled", Sentence: "the client gave up before the operator answered, so the call was not made",
		Next: "an identical call within 5 minutes of the operator's yes is made without asking again"}
}

// endCall closes the decision of a call that waits, unless something did already.
func (g *Gate) endCall(ctx context.Context, w *callWait, state DecisionState, code string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.decisions[w.asked.ID]
	if g.waiting[w.asked.ID] != w || d == nil {
		return
	}
	t := newTransaction()
	err := g.closeCall(t, *d, state, code)
	if err == nil {
		err = g.commit(context.WithoutCancel(ctx), t)
	}
	if err != nil {
		g.log.Error("a decision cannot be closed", "error", err)
		g.wake(w.asked.ID, state, code)
		return
	}
	g.tell(Event{"decision", d.Subject(), code})
}

// closeCall adds to t that nobody answered d. g.mu is held.
func (g *Gate) closeCall(t *transaction, d Decision, state DecisionState, code string) error {
	next := d.closed(state, code)
	if err := t.putDecision(&next); err != nil {
		return err
	}
	by := By{"", ViaSallyport}
	t.note(d.ID, code, by, "")
	action := audit.Expire
	record := g.answerAudit(action, d, by)
	if state != DecisionExpired {
		record.Result, record.Reason = audit.Refused, code
	}
	t.audit = append(t.audit, record)
	return nil
}

// wake ends the wait on a decision that is closed. g.mu is held.
func (g *Gate) wake(decision string, state DecisionState, code string) {
	if w := g.waiting[decision]; w != nil {
		w.ended, w.code = state, code
		delete(g.waiting, decision)
		close(w.done)
	}
}

// interruptCalls closes questions that nobody waits on: those of an earlier run.
// g.mu is held.
func (g *Gate) interruptCalls(ctx context.Context) error {
	if g.docs.fault != nil {
		return nil
	}
	t := newTransaction()
	for _, d := range g.decisions {
		if d.Kind == KindCall && d.State == DecisionOpen && g.waiting[d.ID] == nil {
			if err := g.closeCall(t, *d, DecisionInterrupted, "interrupted"); err != nil {
				return err
			}
		}
	}
	if len(t.batch) == 0 {
		return nil
	}
	return g.commit(ctx, t)
}

// dropClient adds to t that a client is gone: its questions close, and nothing
// that was answered it stands for whoever gets its name. g.mu is held.
func (g *Gate) dropClient(t *transaction, name string) error {
	if err := g.closeCallsOf(t, name, "client-removed", func(string, string) bool { return true }); err != nil {
		return err
	}
	p := g.policy.Load()
	g.setSession(slices.DeleteFunc(slices.Clone(p.session), func(s Standing) bool { return s.Client == name }))
	if next, changed := p.withoutClient(name); changed {
		return t.putPolicy(next)
	}
	return nil
}
