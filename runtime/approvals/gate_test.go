package approvals_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/approvals/approvalstest"
	"sallyport/runtime/permissions"
	"sallyport/runtime/plugins"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	operator = approvalstest.Operator
	offer    = approvalstest.OfferOf("read_notes", "delete_notes")
)

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if coded.Of(err) != code {
		t.Fatalf("got %v (%s), want %s", err, coded.Of(err), code)
	}
}

func wantState(t *testing.T, r *approvalstest.Rig, state approvals.State, reason string) approvals.Status {
	t.Helper()
	s := r.Gate.Status(t.Context(), r.ID)
	if s.State != state || s.Reason != reason {
		t.Fatalf("got %s (%s: %s), want %s (%s)", s.State, s.Reason, s.Sentence, state, reason)
	}
	if state != approvals.Enabled && s.Sentence == "" {
		t.Fatalf("%s says nothing", state)
	}
	if strings.Contains(s.Sentence+s.Next, r.Dir) {
		t.Fatalf("the sentence holds an absolute path: %s", s.Sentence)
	}
	return s
}

func TestTheWholeWayToACall(t *testing.T) {
	r := approvalstest.New(t)
	wantState(t, r, approvals.ApprovalRequired, "never-approved")
	d := r.Ask()
	if s := wantState(t, r, approvals.Pending, "pending"); s.Decision != d.ID {
		t.Fatalf("the status names decision %q", s.Decision)
	}
	_, err := r.Gate.ProbeGrant(t.Context(), d.ID)
	wantCode(t, err, "no-probe")

	d, err = r.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: true}, operator)
	if err != nil || d.State != approvals.DecisionProbing {
		t.Fatal(d.State, err)
	}
	wantState(t, r, approvals.Probing, "probing")
	_, err = r.Gate.Grant(t.Context(), r.ID)
	wantCode(t, err, "never-approved")

	grant, err := r.Gate.ProbeGrant(t.Context(), d.ID)
	if err != nil || !grant.Probe() {
		t.Fatal(grant.Probe(), err)
	}
	_, err = r.Gate.ProbeGrant(t.Context(), d.ID)
	wantCode(t, err, "no-probe")
	launch, err := grant.Launch()
	if err != nil {
		t.Fatal(err)
	}
	wantLaunchFromSnapshot(t, r, launch)
	_, err = r.Gate.CallGrant(t.Context(), grant, "read_notes", approvals.Operator)
	wantCode(t, err, "tools-required")

	tools, err := r.Gate.Probed(t.Context(), d.ID, offer)
	if err != nil || tools.Stage != approvals.StageTools || !tools.Open() {
		t.Fatal(tools.Stage, err)
	}
	wantState(t, r, approvals.ToolsRequired, "tools-required")
	wantCode(t, grant.Err(), "probe-done")
	_, err = r.Gate.Grant(t.Context(), r.ID)
	wantCode(t, err, "tools-required")

	_, err = r.Gate.Answer(t.Context(), tools.ID, approvals.Answer{Allow: true, Tools: []string{"read_notes"}}, operator)
	if err != nil {
		t.Fatal(err)
	}
	s := wantState(t, r, approvals.Enabled, "")
	if s.Approved == nil || !slices.Equal(s.Approved.Tools, []string{"read_notes"}) || s.Approved.ToolsBy != operator {
		t.Fatalf("got %+v", s.Approved)
	}

	grant = r.Grant()
	_, err = r.Gate.CallGrant(t.Context(), grant, "read_notes", approvalstest.Client)
	wantCode(t, err, "tool-missing") // not listed live yet
	states := r.Gate.Live(grant, offer)
	if len(states) != 2 || states[0].State != approvals.ToolAllowed || states[1].State != approvals.ToolOffered {
		t.Fatalf("got %+v", states)
	}
	call := r.CallGrant(grant, "read_notes")
	if call.Err() != nil || call.Tool() != "read_notes" || call.Client() != approvalstest.Client {
		t.Fatal(call.Err())
	}
	_, err = r.Gate.CallGrant(t.Context(), grant, "delete_notes", approvalstest.Client)
	wantCode(t, err, "permission-denied")
	_, err = r.Gate.CallGrant(t.Context(), grant, "read_notes", "stranger")
	wantCode(t, err, "permission-denied")
	wantCode(t, approvals.Grant{}.Err(), "no-grant")
	_, err = r.Gate.CallGrant(t.Context(), approvals.Grant{}, "read_notes", approvals.Operator)
	wantCode(t, err, "no-grant")
}

func TestChoosingTools(t *testing.T) {
	odd := offer
	odd.Tools = append(slices.Clone(offer.Tools),
		approvalstest.Tool("twin", "one"), approvalstest.Tool("twin", "two"),
		[]byte(`{"name":"inexact","n":9007199254740993}`),
		[]byte(`{"name":"hidden","name":"delete_notes"}`))
	r := approvalstest.New(t)
	d := r.Offered(odd)
	for _, row := range []struct {
		code  string
		tools []string
	}{
		{"tools-not-chosen", nil},
		{"tool-missing", []string{"read_notes", "other"}},
		{"tool-duplicate", []string{"twin"}},
		{"tool-unpinnable", []string{"inexact"}},
		{"tool-duplicate", []string{"delete_notes"}}, // some reader sees it twice
	} {
		_, err := r.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: true, Tools: row.tools}, operator)
		wantCode(t, err, row.code)
	}
	_, err := r.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: true, Tools: []string{"read_notes"},
		Classes: map[string]permissions.Class{"read_notes": "harmless"}}, operator)
	wantCode(t, err, "class-invalid")
	if _, err := r.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: true, Tools: []string{"read_notes"},
		Classes: map[string]permissions.Class{"read_notes": permissions.Read}}, operator); err != nil {
		t.Fatal(err)
	}
	if a, ok := r.Gate.Approved(r.ID); !ok || a.Tools[0].Class != "read" {
		t.Fatalf("got %+v", a)
	}
	grant := r.Grant()
	states := r.Gate.Live(grant, odd)
	codes := map[string]string{}
	for _, s := range states {
		codes[s.Name+"/"+s.State] = s.Code
	}
	if codes["read_notes/allowed"] != "" || codes["twin/blocked"] != "tool-duplicate" || codes["inexact/blocked"] != "tool-unpinnable" {
		t.Fatalf("got %v", codes)
	}
}

// C41 and C45 live: a changed, added, doubled or missing tool is blocked, the
// others go on.
func TestLiveDefinitions(t *testing.T) {
	r := approvalstest.New(t)
	r.Approve(offer, "read_notes", "delete_notes")
	grant := r.Grant()
	for _, row := range []struct {
		what string
		live approvals.Offer
		tool string
		code string
	}{
		{"a word of a description changed", approvals.Offer{Tools: []json.RawMessage{approvalstest.Tool("read_notes", "copies notes elsewhere"), offer.Tools[1]}}, "read_notes", "tool-changed"},
		{"the other tool of the same server", approvals.Offer{Tools: []json.RawMessage{approvalstest.Tool("read_notes", "changed"), offer.Tools[1]}}, "delete_notes", ""},
		{"a new tool", approvalstest.OfferOf("read_notes", "delete_notes", "send_notes"), "send_notes", "tool-added"},
		{"a renamed tool", approvalstest.OfferOf("reads_notes", "delete_notes"), "read_notes", "tool-missing"},
		{"a doubled tool", approvalstest.OfferOf("read_notes", "read_notes", "delete_notes"), "read_notes", "tool-duplicate"},
		{"the same again", offer, "read_notes", ""},
	} {
		r.Gate.Live(grant, row.live)
		_, err := r.Gate.CallGrant(t.Context(), grant, row.tool, approvalstest.Client)
		if coded.Of(err) != row.code {
			t.Errorf("%s: got %v, want %q", row.what, err, row.code)
		}
	}
	// A restart begins without a list: nothing is called on what was live before.
	again := r.Grant()
	_, err := r.Gate.CallGrant(t.Context(), again, "read_notes", approvalstest.Client)
	wantCode(t, err, "tool-missing")
}

func TestPermissionPatternsNarrowTheTools(t *testing.T) {
	r := approvalstest.New(t)
	r.Edit(func(c *plugins.Connector) { c.Requested.Tools = []string{"read_*"} })
	d := r.Offered(offer)
	_, err := r.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: true, Tools: []string{"delete_notes"}}, operator)
	wantCode(t, err, "permission-denied")
	if _, err := r.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: true, Tools: []string{"read_notes"}}, operator); err != nil {
		t.Fatal(err)
	}
}

func TestRevokeDisableEnable(t *testing.T) {
	r := approvalstest.New(t)
	r.Approve(offer, "read_notes")
	running := r.Grant()
	if err := r.Gate.Disable(t.Context(), r.ID, operator); err != nil {
		t.Fatal(err)
	}
	wantCode(t, running.Err(), "disabled")
	wantState(t, r, approvals.Disabled, "disabled")
	r.Reopen()
	_, err := r.Gate.Grant(t.Context(), r.ID)
	wantCode(t, err, "disabled")
	if err := r.Gate.Enable(t.Context(), r.ID, operator); err != nil {
		t.Fatal(err)
	}
	running = r.Grant()
	r.Gate.Disable(t.Context(), r.ID, operator)
	wantCode(t, running.Err(), "disabled")
	r.Write("server.js", "other", 0o644)
	wantCode(t, r.Gate.Enable(t.Context(), r.ID, operator), "artifact-changed")
	r.Write("server.js", "// version one\nconsole.log('hello')\n", 0o644)
	if err := r.Gate.Enable(t.Context(), r.ID, operator); err != nil {
		t.Fatal(err)
	}
	running = r.Grant()
	if err := r.Gate.Revoke(t.Context(), r.ID, operator); err != nil {
		t.Fatal(err)
	}
	wantCode(t, running.Err(), "revoked")
	wantState(t, r, approvals.ApprovalRequired, "revoked")
	wantCode(t, r.Gate.Enable(t.Context(), r.ID, operator), "never-approved")
}

func TestParkedAndBlocked(t *testing.T) {
	r := approvalstest.New(t)
	r.Approve(offer, "read_notes")
	if err := r.Gate.Park(t.Context(), r.ID, coded.New("crash-loop", "it crashed 5 times in a row")); err != nil {
		t.Fatal(err)
	}
	wantState(t, r, approvals.Parked, "crash-loop")
	_, err := r.Gate.Grant(t.Context(), r.ID)
	wantCode(t, err, "crash-loop")
	if err := r.Gate.Enable(t.Context(), r.ID, operator); err != nil {
		t.Fatal(err)
	}
	wantState(t, r, approvals.Enabled, "")
	r.Gate.Block(r.ID, coded.New("secret-unavailable", "a secret is missing"))
	wantState(t, r, approvals.Blocked, "secret-unavailable")
	r.Gate.Unpark(r.ID)
	r.Grant()
}

func TestWhatIsGoneOrBrokenIsInvalid(t *testing.T) {
	r := approvalstest.New(t)
	r.Approve(offer, "read_notes")
	running := r.Grant()
	r.Bundle("no-such-program")
	s := r.Gate.Recheck(t.Context(), r.ID)
	if s.State != approvals.Invalid || s.Reason != "exec-not-found" {
		t.Fatalf("got %s (%s)", s.State, s.Reason)
	}
	wantCode(t, running.Err(), "exec-not-found")
	os.RemoveAll(r.Root)
	wantState(t, r, approvals.Invalid, "connector-unknown")
}

func TestCloseEndsGrants(t *testing.T) {
	r := approvalstest.New(t)
	r.Approve(offer, "read_notes")
	running := r.Grant()
	events, _ := r.Gate.Subscribe()
	gate := r.Gate
	r.Close()
	wantCode(t, running.Err(), "closing")
	if _, open := <-events; open {
		t.Fatal("the subscription is still open")
	}
	_, err := gate.Grant(t.Context(), r.ID)
	wantCode(t, err, "closing")
}
