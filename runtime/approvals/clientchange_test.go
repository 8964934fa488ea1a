package approvals_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/runtime/approvals"
	"sallyport/runtime/approvals/approvalstest"
	"sallyport/runtime/audit"
)

func TestGrantAndRevokeChangeAScopeByLines(t *testing.T) {
	r := approvalstest.New(t)
	r.Approve(offer, "read_notes", "delete_notes")
	all := []string{"everything"}
	for _, row := range []struct {
		what          string
		before        []string
		grant, revoke []string
		after         []string
		code          string
	}{
		{what: "a connector is granted", before: nil, grant: []string{"demo/main"}, after: []string{"demo/main"}},
		{what: "a tool is granted", before: nil, grant: []string{"demo/main:read_notes"}, after: []string{"demo/main:read_notes"}},
		{what: "a connector takes the place of its tools", before: []string{"demo/main:read_notes", "other/main:x"}, grant: []string{"demo/main"}, after: []string{"demo/main", "other/main:x"}},
		{what: "a tool of a connector that is seen whole adds nothing", before: []string{"demo/main"}, grant: []string{"demo/main:read_notes"}, after: []string{"demo/main"}},
		{what: "nothing is added to everything", before: all, grant: []string{"demo/main"}, after: all, code: "scope-all"},
		{what: "what is no connector is not granted", before: nil, grant: []string{"../x"}, after: nil, code: "scope-invalid"},
		{what: "a connector is revoked with its tools", before: []string{"demo/main:read_notes", "other/main"}, revoke: []string{"demo/main"}, after: []string{"other/main"}},
		{what: "a tool is revoked", before: []string{"demo/main:delete_notes", "demo/main:read_notes"}, revoke: []string{"demo/main:delete_notes"}, after: []string{"demo/main:read_notes"}},
		{what: "a tool of a connector that was seen whole leaves the others", before: []string{"demo/main"}, revoke: []string{"demo/main:delete_notes"}, after: []string{"demo/main:read_notes"}},
		{what: "a connector of everything leaves what else is enabled now", before: all, revoke: []string{"demo/main"}, after: nil},
		{what: "a tool of everything leaves the others", before: all, revoke: []string{"demo/main:delete_notes"}, after: []string{"demo/main:read_notes"}},
		{what: "what is not seen is not revoked", before: []string{"demo/main:read_notes"}, revoke: []string{"other/main"}, after: []string{"demo/main:read_notes"}, code: "scope-absent"},
		{what: "nor a tool that is not seen", before: []string{"demo/main:read_notes"}, revoke: []string{"demo/main:x"}, after: []string{"demo/main:read_notes"}, code: "scope-absent"},
	} {
		scope := approvals.Scope{Only: row.before}
		if slices.Equal(row.before, all) {
			scope = approvals.Scope{All: true}
		}
		if err := r.Gate.SetClientScope(t.Context(), me, scope, operator); err != nil {
			t.Fatal(row.what, err)
		}
		revision := r.Gate.ScopesRevision()
		var err error
		if row.grant != nil {
			_, err = r.Gate.GrantClient(t.Context(), me, row.grant, operator)
		} else {
			_, err = r.Gate.RevokeClient(t.Context(), me, row.revoke, operator)
		}
		if row.code != "" {
			wantCode(t, err, row.code)
		} else if err != nil {
			t.Errorf("%s: %v", row.what, err)
		}
		c, err := r.Gate.Client(me)
		if err != nil {
			t.Fatal(err)
		}
		if wholly := slices.Equal(row.after, all); c.Scope.All != wholly || !wholly && !slices.Equal(c.Scope.Only, row.after) {
			t.Errorf("%s: it sees %+v, want %v", row.what, c.Scope, row.after)
		}
		if changed := r.Gate.ScopesRevision() != revision; changed != (row.code == "") {
			t.Errorf("%s: the revision changed: %v", row.what, changed)
		}
	}
	if _, err := r.Gate.GrantAll(t.Context(), me, operator); err != nil {
		t.Fatal(err)
	}
	r.Reopen()
	if c, _ := r.Gate.Client(me); !c.Scope.All {
		t.Error("the change is gone after a restart")
	}
	for _, change := range []func(string, approvals.By) error{
		func(name string, by approvals.By) error {
			_, err := r.Gate.GrantClient(t.Context(), name, []string{"demo/main"}, by)
			return err
		},
		func(name string, by approvals.By) error {
			_, err := r.Gate.RevokeClient(t.Context(), name, []string{"demo/main"}, by)
			return err
		},
		func(name string, by approvals.By) error {
			_, err := r.Gate.RotateClient(t.Context(), name, by)
			return err
		},
	} {
		wantCode(t, change("nobody", operator), "client-unknown")
		wantCode(t, change(me, approvals.By{User: "x", Via: approvals.ViaAgent}), "answer-not-allowed")
	}
	page, err := r.Audit.Query(t.Context(), audit.Filter{Action: audit.ClientRevoke})
	if err != nil || len(page.Records) == 0 || page.Records[0].Target != "demo/main:delete_notes" || page.Records[0].Client != me {
		t.Errorf("the audit has %+v %v", page.Records, err)
	}
}

func TestARotatedTokenIsTheOnlyOne(t *testing.T) {
	r := approvalstest.New(t)
	old, err := r.Gate.AddClient(t.Context(), "claude", approvals.Scope{Only: []string{"demo/main"}}, operator)
	if err != nil {
		t.Fatal(err)
	}
	process, _, err := r.Gate.NewSessionToken("claude")
	if err != nil {
		t.Fatal(err)
	}
	r.Clock.Add(time.Hour)
	fresh, err := r.Gate.RotateClient(t.Context(), "claude", operator)
	if err != nil || fresh == old || !strings.HasPrefix(fresh, "sp_") {
		t.Fatal(fresh, err)
	}
	for restarted := range 2 {
		for what, token := range map[string]string{"the old token": old, "a process's token": process} {
			if _, ok := r.Gate.ClientByToken(token); ok {
				t.Errorf("%s still opens something (restarts: %d)", what, restarted)
			}
		}
		c, ok := r.Gate.ClientByToken(fresh)
		if !ok || !slices.Equal(c.Scope.Only, []string{"demo/main"}) || c.Rotated.Sub(c.At) != time.Hour {
			t.Errorf("the new token gives %+v %v", c, ok)
		}
		r.Reopen()
	}
}

func TestWithdrawingAToolEndsWhatWasAskedAndAnsweredAboutIt(t *testing.T) {
	c := newCaller(t)
	if _, err := c.Gate.AddClient(t.Context(), "another", approvals.Scope{All: true}, operator); err != nil {
		t.Fatal(err)
	}
	first := c.call(me, "delete_notes", theseBytes)
	c.answer(c.open(1)[0].ID, approvals.Answer{Allow: true, For: approvals.ForAlways})
	first.ends("")
	if err := c.Gate.SetRule(t.Context(), approvals.Rule{Tool: "demo/main:read_notes", Verdict: approvals.MustAsk}, operator); err != nil {
		t.Fatal(err)
	}
	waits, stays := c.call(me, "read_notes", theseBytes), c.call("another", "read_notes", theseBytes)
	c.open(2)
	if _, err := c.Gate.RevokeClient(t.Context(), me, []string{"demo/main"}, operator); err != nil {
		t.Fatal(err)
	}
	waits.ends("scope-changed")
	stays.waits()
	if open := c.open(1); open[0].Call.Client != "another" {
		t.Errorf("the question that is left is %+v", open[0])
	}
	if standing := c.Gate.Policy().Standing; len(standing) != 0 {
		t.Errorf("an answer still stands: %+v", standing)
	}
	if _, err := c.Gate.GrantClient(t.Context(), me, []string{"demo/main"}, operator); err != nil {
		t.Fatal(err)
	}
	c.call(me, "delete_notes", theseBytes)
	c.open(2) // it is asked about again
}

func TestADenyHoldsForIdenticalCallsForTenMinutes(t *testing.T) {
	c := newCaller(t)
	if _, err := c.Gate.AddClient(t.Context(), "another", approvals.Scope{All: true}, operator); err != nil {
		t.Fatal(err)
	}
	first := c.call(me, "delete_notes", theseBytes)
	c.answer(c.open(1)[0].ID, approvals.Answer{})
	first.ends("call-denied")
	for range 3 {
		c.call(me, "delete_notes", theseBytes).ends("denied-recently")
	}
	c.open(0)
	for _, row := range []struct{ what, client, tool, sent string }{
		{"other bytes", me, "delete_notes", otherBytes},
		{"another client", "another", "delete_notes", theseBytes},
	} {
		a := c.call(row.client, row.tool, row.sent)
		d := c.open(1)[0]
		a.waits()
		c.answer(d.ID, approvals.Answer{Allow: true})
		a.ends("")
	}
	c.Reopen()
	c.start()
	c.call(me, "delete_notes", theseBytes).ends("denied-recently")
	c.Clock.Add(10*time.Minute - time.Millisecond)
	c.call(me, "delete_notes", theseBytes).ends("denied-recently")
	c.Clock.Add(time.Millisecond)
	again := c.call(me, "delete_notes", theseBytes)
	d := c.open(1)[0]
	again.waits()
	c.answer(d.ID, approvals.Answer{})
	again.ends("call-denied")
	if err := c.Gate.SetRule(t.Context(), approvals.Rule{Tool: "demo/main:delete_notes", Client: me, Verdict: approvals.MayCall}, operator); err != nil {
		t.Fatal(err)
	}
	c.call(me, "delete_notes", theseBytes).ends("") // the operator changed their mind
}

func TestAClosedQuestionKeepsNoArguments(t *testing.T) {
	for _, row := range []struct {
		how  string
		code string
		end  func(*caller, *attempt, approvals.Decision)
	}{
		{"allowed", "", func(c *caller, _ *attempt, d approvals.Decision) { c.answer(d.ID, approvals.Answer{Allow: true}) }},
		{"denied", "call-denied", func(c *caller, _ *attempt, d approvals.Decision) { c.answer(d.ID, approvals.Answer{}) }},
		{"its client was removed", "call-interrupted", func(c *caller, _ *attempt, _ approvals.Decision) {
			if err := c.Gate.RemoveClient(c.t.Context(), me, operator); err != nil {
				c.t.Fatal(err)
			}
		}},
		{"expired", "call-cancelled", func(c *caller, a *attempt, _ approvals.Decision) {
			a.cancel()
			c.Clock.Add(120 * time.Second)
			if err := c.Gate.Sweep(c.t.Context()); err != nil {
				c.t.Fatal(err)
			}
		}},
	} {
		t.Run(row.how, func(t *testing.T) {
			c := newCaller(t)
			a := c.call(me, "delete_notes", theseBytes)
			open := c.open(1)[0]
			if !strings.Contains(open.Call.Arguments, `"id": 7`) {
				t.Fatalf("it shows %q", open.Call.Arguments)
			}
			row.end(c, a, open)
			a.ends(row.code)
			closed, err := c.Gate.Decision(t.Context(), open.ID)
			if err != nil || closed.Open() || closed.Call.Arguments != "" || closed.Call.Sent != theseBytes {
				t.Errorf("kept: %+v %v", closed.Call, err)
			}
		})
	}
}
