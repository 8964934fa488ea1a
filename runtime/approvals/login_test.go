package approvals_test

import (
	"testing"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/approvals/approvalstest"
)

var needsLogin = &coded.Error{Code: "oauth-login-needed", Sentence: "the server wants you to sign in"}

// waiting is a first try that was refused for want of a sign-in.
func waiting(t *testing.T, r *approvalstest.Rig) approvals.Decision {
	t.Helper()
	d, _ := r.Probing()
	if err := r.Gate.ProbeWaits(t.Context(), d.ID, needsLogin); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAFirstTryThatWaitsForASignIn(t *testing.T) {
	r := approvalstest.New(t)
	d := waiting(t, r)
	wantState(t, r, approvals.Blocked, "oauth-login-needed")
	if _, err := r.Gate.Grant(t.Context(), r.ID); coded.Of(err) != "never-approved" {
		t.Fatalf("what waits is approved: %v", err)
	}
	grant, decision, err := r.Gate.LoginGrant(t.Context(), r.ID, operator)
	if err != nil || decision != d.ID || !grant.Probe() {
		t.Fatal(decision, err)
	}
	_, err = r.Gate.CallGrant(t.Context(), grant, "read_notes", approvalstest.Client)
	wantCode(t, err, "tools-required")
	r.Reopen() // the question outlives the program
	wantState(t, r, approvals.Blocked, "oauth-login-needed")
	if _, err := r.Gate.ProbeGrant(t.Context(), d.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Gate.Probed(t.Context(), d.ID, offer); err != nil {
		t.Fatal(err)
	}
	wantState(t, r, approvals.ToolsRequired, "tools-required")
}

func TestAFirstTryThatWaitsEnds(t *testing.T) {
	t.Run("with the time of a decision", func(t *testing.T) {
		r := approvalstest.New(t)
		waiting(t, r)
		r.Clock.Add(approvals.DefaultDecisionTTL + time.Second)
		if err := r.Gate.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, _, err := r.Gate.LoginGrant(t.Context(), r.ID, operator)
		wantCode(t, err, "never-approved")
		r.Reopen()
		wantState(t, r, approvals.ApprovalRequired, "never-approved")
	})
	t.Run("with a change", func(t *testing.T) {
		r := approvalstest.New(t)
		waiting(t, r)
		r.Write("server.js", "evil", 0o644)
		_, _, err := r.Gate.LoginGrant(t.Context(), r.ID, operator)
		wantCode(t, err, "artifact-changed")
	})
	t.Run("with another question", func(t *testing.T) {
		r := approvalstest.New(t)
		d := waiting(t, r)
		r.Ask()
		_, err := r.Gate.ProbeGrant(t.Context(), d.ID)
		wantCode(t, err, "no-probe")
	})
}

// A blocked connector, and one whose tools are not chosen, can be signed in to; one
// that was switched off, revoked or changed cannot.
func TestWhoCanBeSignedInTo(t *testing.T) {
	r := approvalstest.New(t)
	r.Offered(offer)
	if _, _, err := r.Gate.LoginGrant(t.Context(), r.ID, operator); err != nil {
		t.Fatalf("without tools: %v", err)
	}
	r.Approve(offer, "read_notes")
	r.Gate.Block(r.ID, needsLogin)
	grant, decision, err := r.Gate.LoginGrant(t.Context(), r.ID, operator)
	if err != nil || decision != "" || !grant.Probe() {
		t.Fatal(decision, err)
	}
	if err := r.Gate.Disable(t.Context(), r.ID, operator); err != nil {
		t.Fatal(err)
	}
	wantCode(t, grant.Err(), "disabled")
	_, _, err = r.Gate.LoginGrant(t.Context(), r.ID, operator)
	wantCode(t, err, "disabled")
	if err := r.Gate.Revoke(t.Context(), r.ID, operator); err != nil {
		t.Fatal(err)
	}
	if _, _, err = r.Gate.LoginGrant(t.Context(), r.ID, operator); coded.Of(err) == "" {
		t.Fatal("a revoked connector can be signed in to")
	}
	other := approvalstest.New(t)
	other.Approve(offer, "read_notes")
	other.Write("server.js", "evil", 0o644)
	_, _, err = other.Gate.LoginGrant(t.Context(), other.ID, operator)
	wantCode(t, err, "artifact-changed")
}
