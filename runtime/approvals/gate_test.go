package approvals_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

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

func wantLaunchFromSnapshot(t *testing.T, r *approvalstest.Rig, l approvals.Launch) {
	t.Helper()
	if strings.Contains(strings.Join(append(l.Args, l.Dir), " "), r.Root) {
		t.Fatalf("the launch speaks of the source folder: %v in %s", l.Args, l.Dir)
	}
	if len(l.Args) != 1 || !strings.HasPrefix(l.Args[0], l.Dir) || l.Data != r.PluginData("demo") {
		t.Fatalf("got %v in %s, data %s", l.Args, l.Dir, l.Data)
	}
	got, err := os.ReadFile(l.Args[0])
	if err != nil || !strings.Contains(string(got), "version one") {
		t.Fatalf("got %q, %v", got, err)
	}
}

// TestAChangeOfAnyField is spec/approval.md 2.1 at the gate: one field is changed
// alone, the start is refused with its code and what runs is ended with it.
func TestAChangeOfAnyField(t *testing.T) {
	edit := func(edit func(*plugins.Connector)) func(*approvalstest.Rig) {
		return func(r *approvalstest.Rig) { r.Edit(edit) }
	}
	for _, row := range []struct {
		what, code string
		change     func(r *approvalstest.Rig)
	}{
		{"the source", "binding-changed", edit(func(c *plugins.Connector) { c.Source = "elsewhere" })},
		{"the version", "version-changed", edit(func(c *plugins.Connector) { c.Version = "1.4.1" })},
		{"one byte of a file", "artifact-changed", func(r *approvalstest.Rig) { r.Write("server.js", "// version 0ne\nconsole.log('hello')\n", 0o644) }},
		{"a file added", "artifact-changed", func(r *approvalstest.Rig) { r.Write(".hidden", "", 0o644) }},
		{"the command", "command-changed", func(r *approvalstest.Rig) {
			os.Link(filepath.Join(r.Dir, "bin", "node"), filepath.Join(r.Dir, "bin", "nodejs"))
			r.Edit(func(c *plugins.Connector) { c.Launch.Command = "nodejs" })
		}},
		{"the program's bytes", "executable-changed", func(r *approvalstest.Rig) { r.WriteOutside("bin/node", "another node\n", 0o755) }},
		{"another program before it on the PATH", "executable-changed", func(r *approvalstest.Rig) { r.WriteOutside("early/node", "stand-in for node\n", 0o755) }},
		{"an argument", "args-changed", edit(func(c *plugins.Connector) { c.Launch.Args = append(slices.Clone(c.Launch.Args), "--inspect") })},
		{"the working directory", "cwd-changed", edit(func(c *plugins.Connector) { c.Launch.Cwd = "./work" })},
		{"a variable", "env-changed", edit(func(c *plugins.Connector) { c.Launch.Env = []plugins.Value{{Name: "A", Value: "b"}} })},
		{"an inherited name", "env-changed", edit(func(c *plugins.Connector) { c.Launch.Inherit = []string{"DISPLAY"} })},
		{"the permissions", "permissions-changed", edit(func(c *plugins.Connector) { c.Requested.Net = []string{"api.example.com:443"} })},
		{"an option", "options-changed", edit(func(c *plugins.Connector) { c.Options.StdoutNoise = "skip" })},
	} {
		t.Run(row.what, func(t *testing.T) {
			r := approvalstest.New(t)
			r.Approve(offer, "read_notes")
			running := r.Grant()
			r.Gate.Live(running, offer)
			row.change(r)
			s := r.Gate.Recheck(t.Context(), r.ID)
			if s.State != approvals.ApprovalRequired || s.Reason != row.code {
				t.Fatalf("got %s (%s)", s.State, s.Reason)
			}
			if len(s.Changes) == 0 || s.Changes[0].Code != row.code {
				t.Fatalf("got changes %+v", s.Changes)
			}
			select {
			case <-running.Done():
			case <-time.After(5 * time.Second):
				t.Fatal("the running server was not ended")
			}
			wantCode(t, running.Err(), row.code)
			_, err := running.Launch()
			wantCode(t, err, row.code)
			_, err = r.Gate.CallGrant(t.Context(), running, "read_notes", approvalstest.Client)
			wantCode(t, err, row.code)
			_, err = r.Gate.Grant(t.Context(), r.ID)
			wantCode(t, err, row.code)
		})
	}
}

// The fields that only a connector without a bundle, or one that is dialled, has.
func TestAChangeOfAnInput(t *testing.T) {
	for _, row := range []struct {
		what   string
		launch func(dir string, l *plugins.Launch)
	}{
		{"an absolute argument", func(dir string, l *plugins.Launch) { l.Args = []string{filepath.Join(dir, "work", "script.py")} }},
		{"behind an equals sign", func(dir string, l *plugins.Launch) {
			l.Args = []string{"--config=" + filepath.Join(dir, "work", "script.py")}
		}},
		{"relative to the working directory", func(dir string, l *plugins.Launch) {
			l.Args, l.Cwd = []string{"script.py"}, filepath.Join(dir, "work")
		}},
		{"a variable", func(dir string, l *plugins.Launch) {
			l.Args, l.Env = nil, []plugins.Value{{Name: "STARTUP", Value: filepath.Join(dir, "work", "script.py"), FromOperator: true}}
		}},
	} {
		t.Run(row.what, func(t *testing.T) {
			r := approvalstest.New(t)
			r.WriteOutside("work/script.py", "print(1)\n", 0o644)
			r.Edit(func(c *plugins.Connector) {
				c.Root = ""
				row.launch(r.Dir, &c.Launch)
			})
			r.Approve(offer, "read_notes")
			launch, err := r.Grant().Launch()
			if err != nil || launch.Digest != "" || launch.Dir == "" {
				t.Fatal(launch.Dir, launch.Digest, err)
			}
			r.WriteOutside("work/script.py", "print(2)\n", 0o644)
			_, err = r.Gate.Grant(t.Context(), r.ID)
			wantCode(t, err, "input-changed")
		})
	}
}

func TestAChangeOfARemote(t *testing.T) {
	remote := func(r *approvalstest.Rig) {
		r.Edit(func(c *plugins.Connector) {
			c.Transport, c.Launch = plugins.StreamableHTTP, plugins.Launch{URL: "https://api.example.com/mcp"}
		})
	}
	for _, row := range []struct {
		code string
		edit func(*plugins.Connector)
	}{
		{"endpoint-changed", func(c *plugins.Connector) { c.Launch.URL = "https://api.example.net/mcp" }},
		{"headers-changed", func(c *plugins.Connector) { c.Launch.Headers = []plugins.Value{{Name: "x-team", Value: "a"}} }},
		{"transport-changed", func(c *plugins.Connector) { c.Transport = plugins.SSE }},
	} {
		r := approvalstest.New(t)
		remote(r)
		r.Approve(offer, "read_notes")
		if l, err := r.Grant().Launch(); err != nil || l.URL != "https://api.example.com/mcp" {
			t.Fatal(l.URL, err)
		}
		r.Edit(row.edit)
		_, err := r.Gate.Grant(t.Context(), r.ID)
		wantCode(t, err, row.code)
	}
}

func TestBytesThatComeBackAreApprovedAgain(t *testing.T) {
	r := approvalstest.New(t)
	before, err := os.ReadFile(filepath.Join(r.Root, "server.js"))
	if err != nil {
		t.Fatal(err)
	}
	r.Approve(offer, "read_notes")
	r.Write("server.js", "evil", 0o644)
	r.Gate.Recheck(t.Context(), r.ID)
	r.Write("server.js", string(before), 0o644)
	r.Grant()
}

func TestADamagedSnapshotIsRebuiltOnlyFromTheApprovedBytes(t *testing.T) {
	r := approvalstest.New(t)
	r.Approve(offer, "read_notes")
	launch, _ := r.Grant().Launch()
	os.Chmod(launch.Dir, 0o700)
	os.Chmod(launch.Args[0], 0o600)
	if err := os.WriteFile(launch.Args[0], []byte("evil"), 0o600); err != nil {
		t.Fatal(err)
	}
	launch, err := r.Grant().Launch()
	if err != nil {
		t.Fatal(err)
	}
	wantLaunchFromSnapshot(t, r, launch)
}

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

func TestSnapshotsThatNothingNeedsAreDropped(t *testing.T) {
	r := approvalstest.New(t)
	count := func() int {
		found, _ := filepath.Glob(filepath.Join(r.Dir, "data", "snapshots", "a1-*.leaves"))
		return len(found)
	}
	r.Approve(offer, "read_notes")
	for _, text := range []string{"second", "third", "fourth"} {
		r.Write("server.js", text, 0o644)
		r.Approve(offer, "read_notes")
	}
	if err := r.Gate.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 2 { // the approved one, and the one before it to compare with
		t.Fatalf("%d snapshots are kept", n)
	}
	r.Grant()
}

func TestTheApprovedPathIsReused(t *testing.T) {
	r := approvalstest.New(t)
	r.Approve(offer, "read_notes")
	launch, err := r.Grant().Launch()
	if err != nil {
		t.Fatal(err)
	}
	if launch.Path != filepath.Join(r.Dir, "bin", "node") {
		t.Fatalf("got %s", launch.Path)
	}
	path, err := launch.Env.Path()
	if err != nil || !strings.HasSuffix(path, filepath.Join(r.Dir, "bin")) {
		t.Fatal(path, err)
	}
}

func TestAProgramInTheBundleRunsFromTheSnapshot(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a program has another name there")
	}
	r := approvalstest.New(t)
	r.Write("bin/run", "#!"+filepath.Join(r.Dir, "bin", "node")+"\n", 0o755)
	r.Bundle("./bin/run")
	r.Approve(offer, "read_notes")
	launch, err := r.Grant().Launch()
	if err != nil {
		t.Fatal(err)
	}
	if launch.Path != filepath.Join(launch.Dir, "bin", "run") || !launch.Executable.InBundle || strings.HasPrefix(launch.Path, r.Root) {
		t.Fatalf("got %+v", launch.Executable)
	}
	// The interpreter is outside: it is part of the identity by its bytes.
	r.WriteOutside("bin/node", "another node\n", 0o755)
	_, err = r.Gate.Grant(t.Context(), r.ID)
	wantCode(t, err, "executable-changed")
}

func TestALinkIntoTheSourceFolderDoesNotRunTheSource(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	r := approvalstest.New(t)
	r.Write("bin/run", "binary\n", 0o755)
	if err := os.Symlink(filepath.Join(r.Root, "bin", "run"), filepath.Join(r.Dir, "bin", "linked")); err != nil {
		t.Fatal(err)
	}
	r.Bundle("linked")
	r.Approve(offer, "read_notes")
	launch, err := r.Grant().Launch()
	if err != nil {
		t.Fatal(err)
	}
	if launch.Path != filepath.Join(launch.Dir, "bin", "run") {
		t.Fatalf("it would run %s", launch.Path)
	}
}

func TestWorkingDirectories(t *testing.T) {
	for _, row := range []struct{ declared, want, code string }{
		{"", "ROOT", ""},
		{"./", "ROOT", ""},
		{"./server", "ROOT/server", ""},
		{"${PLUGIN_ROOT}/server", "ROOT/server", ""},
		{"${PLUGIN_DATA}", "DATA", ""},
		{"${PLUGIN_DATA}/in", "DATA/in", ""},
		{"../elsewhere", "", "cwd-outside"},
		{"./../elsewhere", "", "cwd-outside"},
		{"${PLUGIN_ROOT}/../elsewhere", "", "cwd-outside"},
		{"${PLUGIN_DATA}/../elsewhere", "", "cwd-outside"},
	} {
		r := approvalstest.New(t)
		r.Edit(func(c *plugins.Connector) { c.Launch.Cwd = row.declared })
		d, err := r.Gate.Answer(t.Context(), r.Ask().ID, approvals.Answer{Allow: true}, operator)
		if err != nil {
			t.Fatal(err)
		}
		grant, err := r.Gate.ProbeGrant(t.Context(), d.ID)
		wantCode(t, err, row.code)
		if err == nil {
			launch, _ := grant.Launch()
			root := filepath.Dir(launch.Args[0])
			want := strings.NewReplacer("ROOT", root, "DATA", r.PluginData("demo")).Replace(row.want)
			if launch.Dir != filepath.FromSlash(want) {
				t.Errorf("%q: got %s, want %s", row.declared, launch.Dir, want)
			}
		}
		r.Close()
	}
}
