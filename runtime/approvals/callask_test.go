package approvals_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/runtime/approvals"
	"sallyport/runtime/approvals/approvalstest"
	"sallyport/runtime/audit"
	"sallyport/runtime/permissions"
)

// caller is an approved plugin and calls of it by agents.
type caller struct {
	*approvalstest.Rig
	t     *testing.T
	grant approvals.Grant
}

func newCaller(t *testing.T) *caller {
	t.Helper()
	r := approvalstest.New(t)
	r.Approve(offer, "read_notes", "delete_notes")
	c := &caller{Rig: r, t: t}
	c.start()
	return c
}

func (c *caller) start() {
	c.t.Helper()
	c.grant = c.Grant()
	c.Gate.Live(c.grant, offer)
}

// attempt is a call that may be waiting.
type attempt struct {
	t      *testing.T
	cancel context.CancelFunc
	result chan error
	told   atomic.Int64
}

const (
	theseBytes = "sha256:1"
	otherBytes = "sha256:2"
)

func (c *caller) call(client, tool, sent string) *attempt {
	c.t.Helper()
	grant, err := c.Gate.CallGrant(c.t.Context(), c.grant, tool, client)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	a := &attempt{t: c.t, cancel: cancel, result: make(chan error, 1)}
	gate, done := c.Gate, make(chan struct{})
	go func() {
		defer close(done)
		a.result <- gate.Consent(ctx, grant, sent, json.RawMessage(`{"name":"x","arguments":{"id":7,"password":"s3cret"}}`), func() { a.told.Add(1) })
	}()
	c.t.Cleanup(func() {
		cancel()
		<-done
	})
	return a
}

// ends waits for the call and compares its code; "" is the go-ahead.
func (a *attempt) ends(code string) {
	a.t.Helper()
	select {
	case err := <-a.result:
		if code == "" && err != nil {
			a.t.Fatalf("it is refused: %v", err)
		}
		if code != "" {
			wantCode(a.t, err, code)
		}
	case <-time.After(20 * time.Second):
		a.t.Fatal("it waits for ever")
	}
}

func (a *attempt) waits() {
	a.t.Helper()
	select {
	case err := <-a.result:
		a.t.Fatalf("it does not wait: %v", err)
	default:
	}
}

// open waits until there are n open questions, and returns them, newest first.
func (c *caller) open(n int) []approvals.Decision {
	c.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		open, err := c.Gate.Decisions(c.t.Context(), true)
		if err != nil {
			c.t.Fatal(err)
		}
		if len(open) == n {
			return open
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%d questions are open, want %d", len(open), n)
		}
	}
}

func (c *caller) answer(id string, a approvals.Answer) {
	c.t.Helper()
	if _, err := c.Gate.Answer(c.t.Context(), id, a, operator); err != nil {
		c.t.Fatal(err)
	}
}

func (c *caller) journal(id string) string {
	c.t.Helper()
	entries, err := c.Gate.Journal(context.Background(), id)
	if err != nil {
		c.t.Fatal(err)
	}
	var events []string
	for _, e := range entries {
		events = append(events, e.Event)
	}
	return strings.Join(events, " ")
}

const me = approvalstest.Client

func TestACallIsAskedAndAllowedOnce(t *testing.T) {
	c := newCaller(t)
	first := c.call(me, "delete_notes", theseBytes)
	d := c.open(1)[0]
	first.waits()
	if d.Kind != approvals.KindCall || d.Subject() != c.ID || d.Identity != c.grant.Identity() || d.ExpiresAt.Sub(d.CreatedAt) != 120*time.Second {
		t.Errorf("it asks %+v", d)
	}
	if q := d.Call; q.Tool != "delete_notes" || q.Client != me || q.Sent != theseBytes || q.Class != permissions.Unknown ||
		strings.Contains(q.Arguments, "s3cret") || !strings.Contains(q.Arguments, `"id": 7`) {
		t.Errorf("it shows %+v", q)
	}
	if s := d.Call.Sentence(d.Subject()); s != "test wants demo/main to run delete_notes." {
		t.Errorf("it says %q", s)
	}
	if s := wantState(t, c.Rig, approvals.Enabled, ""); s.Decision != "" {
		t.Errorf("a question about a call is one about the connector: %+v", s)
	}
	c.answer(d.ID, approvals.Answer{Allow: true})
	first.ends("")
	if first.told.Load() == 0 {
		t.Error("nobody was told that it waits")
	}
	_, err := c.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: true}, operator)
	wantCode(t, err, "decision-closed")
	again := c.call(me, "delete_notes", theseBytes)
	if c.open(1)[0].ID == d.ID {
		t.Error("a used allow is used again")
	}
	again.cancel()
	again.ends("call-cancelled")
	if got := c.journal(d.ID); got != "asked allowed" {
		t.Errorf("its journal: %s", got)
	}
	var told []string
	page, err := c.Audit.Query(t.Context(), audit.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range page.Records {
		if r.Decision == d.ID {
			told = append(told, r.Action+" "+r.Target+" "+r.Client)
		}
	}
	if got := strings.Join(told, ", "); got != "allow delete_notes test, ask delete_notes test" {
		t.Errorf("on record: %s", got)
	}
}

func TestACallIsRefused(t *testing.T) {
	for _, row := range []struct {
		name, code string
		state      approvals.DecisionState
		act        func(c *caller, a *attempt, d approvals.Decision)
	}{
		{"when the operator denies it", "call-denied", approvals.DecisionDenied, func(c *caller, _ *attempt, d approvals.Decision) {
			c.answer(d.ID, approvals.Answer{})
		}},
		{"when nobody answers in 120 s", "call-expired", approvals.DecisionExpired, func(c *caller, _ *attempt, d approvals.Decision) {
			c.Clock.Add(119 * time.Second)
			c.open(1)
			c.Clock.Add(time.Second)
			c.open(0)
			_, err := c.Gate.Answer(c.t.Context(), d.ID, approvals.Answer{Allow: true}, operator)
			wantCode(c.t, err, "decision-expired")
		}},
		{"when its client gives up or goes", "call-cancelled", approvals.DecisionOpen, func(_ *caller, a *attempt, _ approvals.Decision) { a.cancel() }},
		{"when the approval is revoked", "revoked", approvals.DecisionSuperseded, func(c *caller, _ *attempt, _ approvals.Decision) {
			if err := c.Gate.Revoke(c.t.Context(), c.ID, operator); err != nil {
				c.t.Fatal(err)
			}
		}},
		{"when the plugin changes on disk", "artifact-changed", approvals.DecisionSuperseded, func(c *caller, _ *attempt, _ approvals.Decision) {
			c.Write("server.js", "// version two\n", 0o644)
			c.Gate.Recheck(c.t.Context(), c.ID)
		}},
		{"when its client is removed", "call-interrupted", approvals.DecisionSuperseded, func(c *caller, _ *attempt, _ approvals.Decision) {
			if err := c.Gate.RemoveClient(c.t.Context(), me, operator); err != nil {
				c.t.Fatal(err)
			}
		}},
		{"when Sallyport ends", "call-interrupted", approvals.DecisionInterrupted, func(c *caller, _ *attempt, _ approvals.Decision) { c.Reopen() }},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newCaller(t)
			a := c.call(me, "delete_notes", theseBytes)
			d := c.open(1)[0]
			row.act(c, a, d)
			a.ends(row.code)
			now, err := c.Gate.Decision(t.Context(), d.ID)
			if err != nil || now.State != row.state {
				t.Errorf("the decision is %s (%v), want %s", now.State, err, row.state)
			}
		})
	}
}

func TestAnAllowIsForNothingElse(t *testing.T) {
	c := newCaller(t)
	if _, err := c.Gate.AddClient(t.Context(), "other", approvals.Scope{All: true}, operator); err != nil {
		t.Fatal(err)
	}
	late := c.call(me, "delete_notes", theseBytes)
	d := c.open(1)[0]
	late.cancel()
	late.ends("call-cancelled")
	c.answer(d.ID, approvals.Answer{Allow: true})
	for _, other := range []struct{ name, client, tool, sent string }{
		{"other bytes", me, "delete_notes", otherBytes},
		{"another tool", me, "read_notes", theseBytes},
		{"another client", "other", "delete_notes", theseBytes},
	} {
		a := c.call(other.client, other.tool, other.sent)
		c.answer(c.open(1)[0].ID, approvals.Answer{})
		a.ends("call-denied")
	}
	c.call(me, "delete_notes", theseBytes).ends("") // it was there all the time
	if got := c.journal(d.ID); got != "asked client-gone allowed served-retry" {
		t.Errorf("its journal: %s", got)
	}
}

func TestARetryIsServedOnceWithinFiveMinutes(t *testing.T) {
	for _, row := range []struct {
		name   string
		after  time.Duration
		served bool
	}{{"at the end of them", 5*time.Minute - time.Second, true}, {"and not after", 5 * time.Minute, false}} {
		t.Run(row.name, func(t *testing.T) {
			c := newCaller(t)
			late := c.call(me, "delete_notes", theseBytes)
			d := c.open(1)[0]
			late.cancel()
			late.ends("call-cancelled")
			c.answer(d.ID, approvals.Answer{Allow: true})
			c.Clock.Add(row.after)
			if row.served {
				c.call(me, "delete_notes", theseBytes).ends("")
			}
			again := c.call(me, "delete_notes", theseBytes)
			c.answer(c.open(1)[0].ID, approvals.Answer{})
			again.ends("call-denied")
		})
	}
}

func TestAnAllowEndsWithItsApproval(t *testing.T) {
	c := newCaller(t)
	late := c.call(me, "delete_notes", theseBytes)
	d := c.open(1)[0]
	late.cancel()
	late.ends("call-cancelled")
	c.answer(d.ID, approvals.Answer{Allow: true, For: approvals.ForAlways})
	if len(c.Gate.Policy().Standing) != 1 {
		t.Fatalf("not listed: %+v", c.Gate.Policy())
	}
	c.Approve(offer, "read_notes", "delete_notes") // the same bytes, chosen anew
	c.start()
	if p := c.Gate.Policy(); len(p.Standing) != 0 {
		t.Errorf("carried forward: %+v", p)
	}
	a := c.call(me, "delete_notes", theseBytes)
	c.answer(c.open(1)[0].ID, approvals.Answer{})
	a.ends("call-denied")
}

func TestARevokedApprovalIsNotCalledByALateAnswer(t *testing.T) {
	c := newCaller(t)
	late := c.call(me, "delete_notes", theseBytes)
	d := c.open(1)[0]
	late.cancel()
	late.ends("call-cancelled")
	if err := c.Gate.Revoke(t.Context(), c.ID, operator); err != nil {
		t.Fatal(err)
	}
	now, err := c.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: true}, operator)
	wantCode(t, err, "changed-since-asked")
	if now.State != approvals.DecisionChanged {
		t.Errorf("it is %s", now.State)
	}
}

func TestARetryWaitsOnTheQuestionThatIsOpen(t *testing.T) {
	c := newCaller(t)
	first := c.call(me, "delete_notes", theseBytes)
	d := c.open(1)[0]
	first.cancel()
	first.ends("call-cancelled")
	second := c.call(me, "delete_notes", theseBytes)
	for !strings.Contains(c.journal(d.ID), "asked-again") {
		time.Sleep(time.Millisecond)
	}
	c.open(1)
	c.answer(d.ID, approvals.Answer{Allow: true})
	second.ends("")
}

func TestEqualCallsAtOnceShareNothing(t *testing.T) {
	c := newCaller(t)
	first := c.call(me, "delete_notes", theseBytes)
	one := c.open(1)[0]
	second := c.call(me, "delete_notes", theseBytes)
	c.open(2)
	c.answer(one.ID, approvals.Answer{Allow: true})
	first.ends("")
	second.waits()
	c.answer(c.open(1)[0].ID, approvals.Answer{})
	second.ends("call-denied")
}

func TestHowLongAnAllowHolds(t *testing.T) {
	for _, row := range []struct {
		lasting             approvals.Lasting
		now, hours, restart bool // is it asked no more?
	}{
		{approvals.ForOnce, false, false, false},
		{approvals.ForSession, true, true, false},
		{approvals.ForHours, true, false, true},
		{approvals.ForAlways, true, true, true},
	} {
		t.Run(string(row.lasting), func(t *testing.T) {
			c := newCaller(t)
			holds := func(when string, want bool) {
				t.Helper()
				grant := c.CallGrant(c.grant, "delete_notes")
				if got := c.Gate.Verdict(grant) == approvals.MayCall; got != want {
					t.Errorf("%s it holds: %v", when, got)
				}
				if got := len(c.Gate.Policy().Standing) == 1; got != want {
					t.Errorf("%s it is listed: %v", when, got)
				}
			}
			allow := func() {
				t.Helper()
				a := c.call(me, "delete_notes", theseBytes)
				c.answer(c.open(1)[0].ID, approvals.Answer{Allow: true, For: row.lasting})
				a.ends("")
			}
			allow()
			holds("at once", row.now)
			if grant := c.CallGrant(c.grant, "read_notes"); c.Gate.Verdict(grant) != approvals.MustAsk {
				t.Error("it holds for another tool")
			}
			c.Reopen()
			c.start()
			holds("after a restart", row.restart)
			if !row.restart && row.now {
				allow()
			}
			c.Clock.Add(8 * time.Hour)
			holds("after 8 hours", row.hours)
			if !row.hours {
				return
			}
			about := approvals.Rule{Tool: "demo/main:delete_notes", Client: me}
			if err := c.Gate.RemoveRule(t.Context(), about, operator); err != nil {
				t.Fatal(err)
			}
			holds("taken back", false)
			wantCode(t, c.Gate.RemoveRule(t.Context(), about, operator), "rule-unknown")
		})
	}
}

func TestOnlyAnOperatorAnswersAndSetsRules(t *testing.T) {
	c := newCaller(t)
	a := c.call(me, "delete_notes", theseBytes)
	d := c.open(1)[0]
	for _, via := range []string{approvals.ViaAgent, approvals.ViaCompanion, approvals.ViaSallyport, "", "other"} {
		by := approvals.By{User: "tester", Via: via}
		_, err := c.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: true}, by)
		wantCode(t, err, "answer-not-allowed")
		rule := approvals.Rule{Class: permissions.Unknown, Verdict: approvals.MayCall}
		wantCode(t, c.Gate.SetRule(t.Context(), rule, by), "answer-not-allowed")
		wantCode(t, c.Gate.RemoveRule(t.Context(), rule, by), "answer-not-allowed")
	}
	_, err := c.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: true, For: "a while"}, operator)
	wantCode(t, err, "answer-invalid")
	a.waits()
}

func TestRulesAreKeptAndRefused(t *testing.T) {
	c := newCaller(t)
	set := func(rule approvals.Rule) error { return c.Gate.SetRule(t.Context(), rule, operator) }
	for _, row := range []struct {
		name, code string
		rule       approvals.Rule
	}{
		{"about nothing", "policy-invalid", approvals.Rule{Verdict: approvals.MayCall}},
		{"about both", "policy-invalid", approvals.Rule{Class: "read", Tool: "a/b:c", Verdict: approvals.MayCall}},
		{"about a class that is none", "class-invalid", approvals.Rule{Class: "safe", Verdict: approvals.MayCall}},
		{"about a whole connector", "policy-invalid", approvals.Rule{Tool: "demo/main", Verdict: approvals.MayCall}},
		{"without a verdict", "policy-invalid", approvals.Rule{Class: "read"}},
		{"for a client that is none", "client-unknown", approvals.Rule{Class: "read", Client: "nobody", Verdict: approvals.MayCall}},
	} {
		t.Run(row.name, func(t *testing.T) { wantCode(t, set(row.rule), row.code) })
	}
	deny := approvals.Rule{Tool: "demo/main:delete_notes", Client: me, Verdict: approvals.NotAtAll}
	for _, rule := range []approvals.Rule{{Class: permissions.Unknown, Verdict: approvals.MayCall}, deny, deny} {
		if err := set(rule); err != nil {
			t.Fatal(err)
		}
	}
	c.Reopen()
	c.start()
	if p := c.Gate.Policy(); len(p.Rules) != 2 || p.Rules[1].By != operator {
		t.Errorf("kept: %+v", p)
	}
	c.call(me, "delete_notes", theseBytes).ends("policy-denied")
	c.call(me, "read_notes", theseBytes).ends("")
	// Who gets a name that was free again gets nothing of what was said about it.
	if err := c.Gate.RemoveClient(t.Context(), me, operator); err != nil {
		t.Fatal(err)
	}
	if p := c.Gate.Policy(); len(p.Rules) != 1 {
		t.Errorf("after the client is gone: %+v", p)
	}
}

// TestAPolicyThatWasEditedAsksAboutEverything: no deny is lost to an edit of the
// file, and no allow comes from one.
func TestAPolicyThatWasEditedAsksAboutEverything(t *testing.T) {
	for name, statement := range map[string]string{
		"edited":  `UPDATE sealed SET body = CAST(replace(CAST(body AS TEXT), 'unknown', 'destructive') AS BLOB) WHERE kind = 'setting' AND id = 'policy'`,
		"removed": `DELETE FROM sealed WHERE kind = 'setting' AND id = 'policy'`,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCaller(t)
			if err := c.Gate.SetRule(t.Context(), approvals.Rule{Class: permissions.Unknown, Verdict: approvals.MayCall}, operator); err != nil {
				t.Fatal(err)
			}
			edit(t, c.Rig, statement)
			c.Reopen()
			c.start()
			a := c.call(me, "delete_notes", theseBytes)
			d := c.open(1)[0]
			_, err := c.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: true, For: approvals.ForAlways}, operator)
			wantCode(t, err, "policy-unreadable")
			c.answer(d.ID, approvals.Answer{Allow: true})
			a.ends("")
		})
	}
}

func TestToolsApprovedToBeCalledAreNotAskedAbout(t *testing.T) {
	r := approvalstest.New(t)
	answer := approvals.Answer{Allow: true, Tools: []string{"delete_notes"}, Always: true}
	if _, err := r.Gate.Answer(t.Context(), r.Offered(offer).ID, answer, operator); err != nil {
		t.Fatal(err)
	}
	c := &caller{Rig: r, t: t}
	c.start()
	c.call(me, "delete_notes", theseBytes).ends("")
	if p := r.Gate.Policy(); len(p.Approved) != 1 || p.Approved[0] != "demo/main:delete_notes" {
		t.Errorf("listed: %+v", p)
	}
	r.Approve(offer, "delete_notes") // a new approval starts anew
	c.start()
	if got := r.Gate.Verdict(r.CallGrant(c.grant, "delete_notes")); got != approvals.MustAsk {
		t.Errorf("it is carried forward: %s", got)
	}
	operators, err := r.Gate.CallGrant(t.Context(), c.grant, "delete_notes", approvals.Operator)
	if err != nil || r.Gate.Verdict(operators) != approvals.MayCall {
		t.Errorf("the operator is asked about the operator's own call: %v", err)
	}
}

func TestAConfirmedReadIsNotAskedAbout(t *testing.T) {
	r := approvalstest.New(t)
	answer := approvals.Answer{Allow: true, Tools: []string{"read_notes", "delete_notes"},
		Classes: map[string]permissions.Class{"read_notes": permissions.Read}}
	if _, err := r.Gate.Answer(t.Context(), r.Offered(offer).ID, answer, operator); err != nil {
		t.Fatal(err)
	}
	c := &caller{Rig: r, t: t}
	c.start()
	c.call(me, "read_notes", theseBytes).ends("")
	if got := r.Gate.Verdict(r.CallGrant(c.grant, "delete_notes")); got != approvals.MustAsk {
		t.Errorf("what is not confirmed is: %s", got)
	}
}

func TestAClientAsksAtMost32Questions(t *testing.T) {
	c := newCaller(t)
	for i := range 32 {
		c.call(me, "delete_notes", fmt.Sprint("sha256:", i))
	}
	c.open(32)
	c.call(me, "delete_notes", "sha256:more").ends("call-limit")
}
