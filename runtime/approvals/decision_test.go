package approvals_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/approvals/approvalstest"
)

func TestChangedSinceAsked(t *testing.T) {
	r := approvalstest.New(t)
	d := r.Ask()
	r.Write("server.js", "evil", 0o644)
	anew, err := r.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: true}, operator)
	wantCode(t, err, "changed-since-asked")
	if anew.ID == d.ID || !anew.Open() || anew.Identity == d.Identity {
		t.Fatalf("it was not asked anew: %+v", anew)
	}
	old, _ := r.Gate.Decision(t.Context(), d.ID)
	if old.State != approvals.DecisionChanged || old.Answer != "" || old.Next != anew.ID {
		t.Fatalf("got %+v", old)
	}
	_, err = r.Gate.ProbeGrant(t.Context(), d.ID)
	wantCode(t, err, "no-probe")
	wantState(t, r, approvals.Pending, "pending")
}

func TestChangedBetweenTheTwoQuestions(t *testing.T) {
	r := approvalstest.New(t)
	tools := r.Offered(offer)
	r.Write("server.js", "evil", 0o644)
	anew, err := r.Gate.Answer(t.Context(), tools.ID, approvals.Answer{Allow: true, Tools: []string{"read_notes"}}, operator)
	wantCode(t, err, "changed-since-asked")
	if anew.Stage != approvals.StageRun {
		t.Fatalf("got stage %s", anew.Stage)
	}
	_, err = r.Gate.Grant(t.Context(), r.ID)
	wantCode(t, err, "tools-required")
}

func TestWhoMayAnswer(t *testing.T) {
	r := approvalstest.New(t)
	d := r.Ask()
	for _, via := range []string{approvals.ViaAgent, approvals.ViaCompanion, approvals.ViaSallyport, "mcp", ""} {
		_, err := r.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: true}, approvals.By{User: "x", Via: via})
		wantCode(t, err, "answer-not-allowed")
		wantCode(t, r.Gate.Revoke(t.Context(), r.ID, approvals.By{User: "x", Via: via}), "answer-not-allowed")
	}
	wantCode(t, r.Gate.SetAnswerOnlyInGUI(t.Context(), true, operator), "answer-only-in-gui")
	gui := approvals.By{User: "x", Via: approvals.ViaGUI}
	if err := r.Gate.SetAnswerOnlyInGUI(t.Context(), true, gui); err != nil {
		t.Fatal(err)
	}
	r.Reopen()
	for _, via := range []string{approvals.ViaCLI, approvals.ViaAPI, approvals.ViaBrowser, approvals.ViaWindowAttached} {
		_, err := r.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: true}, approvals.By{User: "x", Via: via})
		wantCode(t, err, "answer-only-in-gui")
	}
	if _, err := r.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: true}, gui); err != nil {
		t.Fatal(err)
	}
}

func TestAnAgentDoesNotTakeAwayTheQuestionThatIsBeingRead(t *testing.T) {
	r := approvalstest.New(t)
	d := r.Ask()
	agent := approvals.By{User: "a", Via: approvals.ViaAgent}
	same, err := r.Gate.Ask(t.Context(), r.ID, agent)
	if err != nil || same.ID != d.ID {
		t.Fatal(same.ID, err)
	}
}

func TestDecisionsOverARestart(t *testing.T) {
	r := approvalstest.New(t)
	d := r.Ask()
	r.Reopen()
	kept, err := r.Gate.Decision(t.Context(), d.ID)
	if err != nil || !kept.Open() || !kept.ExpiresAt.Equal(d.ExpiresAt) || kept.Identity != d.Identity {
		t.Fatalf("got %+v, %v", kept, err)
	}
	if _, err := r.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: true}, operator); err != nil {
		t.Fatal(err)
	}
	r.Reopen()
	kept, _ = r.Gate.Decision(t.Context(), d.ID)
	if kept.State != approvals.DecisionInterrupted {
		t.Fatalf("got %s", kept.State)
	}
	wantState(t, r, approvals.ApprovalRequired, "never-approved")
	journal, err := r.Gate.Journal(t.Context(), d.ID)
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	for _, e := range journal {
		events = append(events, e.Event)
	}
	if !slices.Equal(events, []string{"asked", "allowed", "interrupted"}) {
		t.Fatalf("got %v", events)
	}
	r.Approve(offer, "read_notes")
	r.Reopen()
	r.Grant()
}

func TestExpiry(t *testing.T) {
	r := approvalstest.New(t)
	d := r.Ask()
	r.Clock.Add(approvals.DefaultDecisionTTL)
	_, err := r.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: true}, operator)
	wantCode(t, err, "decision-expired")
	wantState(t, r, approvals.ApprovalRequired, "never-approved")
	open, _ := r.Gate.Decisions(t.Context(), true)
	if len(open) != 0 {
		t.Fatalf("got %+v", open)
	}
}

func TestAClockThatGoesBackMakesNoQuestionLastLonger(t *testing.T) {
	r := approvalstest.New(t)
	r.Clock.Add(7 * time.Hour)
	d := r.Ask()
	r.Clock.Add(-7 * time.Hour)
	_, err := r.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: true}, operator)
	wantCode(t, err, "decision-expired")
}

func TestOneOpenDecisionPerConnector(t *testing.T) {
	r := approvalstest.New(t)
	first, second := r.Ask(), r.Ask()
	_, err := r.Gate.Answer(t.Context(), first.ID, approvals.Answer{Allow: true}, operator)
	wantCode(t, err, "decision-closed")
	kept, _ := r.Gate.Decision(t.Context(), first.ID)
	if kept.State != approvals.DecisionSuperseded || kept.Next != second.ID {
		t.Fatalf("got %+v", kept)
	}
	// A question that is being tried is superseded with its grant.
	d, err := r.Gate.Answer(t.Context(), second.ID, approvals.Answer{Allow: true}, operator)
	if err != nil {
		t.Fatal(err)
	}
	grant, err := r.Gate.ProbeGrant(t.Context(), d.ID)
	if err != nil {
		t.Fatal(err)
	}
	r.Ask()
	wantCode(t, grant.Err(), "superseded")
	_, err = r.Gate.Probed(t.Context(), d.ID, offer)
	wantCode(t, err, "no-probe")
}

func TestAnsweringAtOnce(t *testing.T) {
	r := approvalstest.New(t)
	d := r.Ask()
	var group sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 8 {
		group.Go(func() {
			_, err := r.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: i%2 == 0}, operator)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if coded.Of(err) != "decision-closed" {
				t.Errorf("got %v", err)
			}
		})
	}
	group.Wait()
	if won != 1 {
		t.Fatalf("%d answers were taken", won)
	}
}

func TestExpiryAndAnswerAtTheSameMoment(t *testing.T) {
	r := approvalstest.New(t)
	for range 20 {
		d := r.Ask()
		var group sync.WaitGroup
		group.Go(func() { r.Clock.Add(approvals.DefaultDecisionTTL) })
		group.Go(func() { r.Gate.Sweep(t.Context()) })
		var answer error
		group.Go(func() { _, answer = r.Gate.Answer(t.Context(), d.ID, approvals.Answer{}, operator) })
		group.Wait()
		r.Gate.Sweep(t.Context())
		kept, _ := r.Gate.Decision(t.Context(), d.ID)
		if want := map[bool]approvals.DecisionState{true: approvals.DecisionDenied, false: approvals.DecisionExpired}[answer == nil]; kept.State != want {
			t.Fatalf("the answer said %v, the decision is %s", answer, kept.State)
		}
	}
}

func TestDeny(t *testing.T) {
	r := approvalstest.New(t)
	d, err := r.Gate.Answer(t.Context(), r.Ask().ID, approvals.Answer{}, operator)
	if err != nil || d.State != approvals.DecisionDenied || *d.AnsweredBy != operator {
		t.Fatalf("%+v %v", d, err)
	}
	wantState(t, r, approvals.Denied, "denied")
	r.Reopen()
	wantState(t, r, approvals.Denied, "denied")
	_, err = r.Gate.Grant(t.Context(), r.ID)
	wantCode(t, err, "denied")
	r.Write("server.js", "other", 0o644)
	wantState(t, r, approvals.ApprovalRequired, "never-approved")
}

func TestAFailedProbeRecordsNoApproval(t *testing.T) {
	r := approvalstest.New(t)
	d, grant := r.Probing()
	if err := r.Gate.ProbeFailed(t.Context(), d.ID, coded.New("no-answer", "the server did not answer")); err != nil {
		t.Fatal(err)
	}
	wantCode(t, grant.Err(), "no-answer")
	wantState(t, r, approvals.ApprovalRequired, "no-answer")
	_, err := r.Gate.Grant(t.Context(), r.ID)
	wantCode(t, err, "never-approved")
}

func TestNothingIsCarriedForward(t *testing.T) {
	r := approvalstest.New(t)
	r.Approve(offer, "read_notes")
	running := r.Grant()
	r.Offered(offer) // the same bytes, asked and tried again
	wantState(t, r, approvals.ToolsRequired, "tools-required")
	wantCode(t, running.Err(), "superseded")
	_, err := r.Gate.Grant(t.Context(), r.ID)
	wantCode(t, err, "tools-required")
	if _, ok := r.Gate.Approved(r.ID); ok {
		t.Fatal("tools are served that nobody chose again")
	}
}

func TestATryThatCannotBeginIsOver(t *testing.T) {
	r := approvalstest.New(t)
	d, err := r.Gate.Answer(t.Context(), r.Ask().ID, approvals.Answer{Allow: true}, operator)
	if err != nil {
		t.Fatal(err)
	}
	r.Write("server.js", "evil", 0o644)
	_, err = r.Gate.ProbeGrant(t.Context(), d.ID)
	wantCode(t, err, "artifact-changed")
	kept, _ := r.Gate.Decision(t.Context(), d.ID)
	if kept.State != approvals.DecisionProbeFailed || kept.Code != "artifact-changed" {
		t.Fatalf("got %s (%s)", kept.State, kept.Code)
	}
	wantState(t, r, approvals.ApprovalRequired, "never-approved")
}

func TestAForgottenTryEnds(t *testing.T) {
	r := approvalstest.New(t)
	d, grant := r.Probing()
	r.Clock.Add(approvals.DefaultDecisionTTL)
	if err := r.Gate.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantCode(t, grant.Err(), "interrupted")
	_, err := r.Gate.Probed(t.Context(), d.ID, offer)
	wantCode(t, err, "no-probe")
}
