package approvals_test

import (
	"slices"
	"testing"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/approvals/approvalstest"
	"sallyport/runtime/audit"
)

func aBundle() approvals.BundleQuestion {
	return approvals.BundleQuestion{
		Plugin: "demo", Version: "1.4.0", Format: "agent-plugins-1.0.0", Digest: "a1:" + string(make64('a')),
		Source: "~/Downloads/demo.mcpb", Staged: "s-1", Servers: []string{"main"}, Files: 3, Bytes: 90,
	}
}

func make64(c byte) []byte { return slices.Repeat([]byte{c}, 64) }

func askBundle(t *testing.T, r *approvalstest.Rig, action string, q approvals.BundleQuestion) approvals.Decision {
	t.Helper()
	d, err := r.Gate.AskBundle(t.Context(), action, q, operator)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func answerBundle(t *testing.T, r *approvalstest.Rig, d approvals.Decision, allow bool) approvals.Decision {
	t.Helper()
	d, err := r.Gate.Answer(t.Context(), d.ID, approvals.Answer{Allow: allow}, operator)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// recorded returns "action result reason" of everything in the audit with that action.
func recorded(t *testing.T, r *approvalstest.Rig, action string) []string {
	t.Helper()
	page, err := r.Audit.Query(t.Context(), audit.Filter{Action: action})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, record := range page.Records {
		all = append(all, record.Action+" "+record.Result+" "+record.Reason)
	}
	return all
}

// A bundle is asked about, allowed, put in place, and each step is on record before it
// is made (spec/approval.md 4.1, spec/audit.md 3).
func TestABundleIsInstalledByAnAnswer(t *testing.T) {
	r := approvalstest.New(t)
	d := askBundle(t, r, approvals.ActInstall, aBundle())
	if d.Kind != approvals.KindApproval || d.Stage != approvals.StageBundle || d.Action != "install" || !d.Open() {
		t.Fatalf("the question is %+v", d)
	}
	if needed, err := r.Gate.StagedBundles(); err != nil || !needed["s-1"] {
		t.Error("the copy that waits for the answer is not kept")
	}
	r.Reopen()
	applying := answerBundle(t, r, d, true)
	if applying.State != approvals.DecisionApplying {
		t.Fatalf("an allowed bundle is %s", applying.State)
	}
	if got := recorded(t, r, audit.Install); !slices.Equal(got, []string{"install ok "}) {
		t.Errorf("the audit says %q before anything was done", got)
	}
	done, err := r.Gate.BundleDone(t.Context(), d.ID, nil)
	if err != nil || done.State != approvals.DecisionAllowed || done.AnsweredBy == nil || *done.AnsweredBy != operator {
		t.Fatalf("it ends as %+v (%v)", done, err)
	}
	if needed, err := r.Gate.StagedBundles(); err != nil || len(needed) != 0 {
		t.Error("the staged copy is still needed")
	}
	if _, err := r.Gate.BundleDone(t.Context(), d.ID, nil); coded.Of(err) != "decision-closed" {
		t.Errorf("a second end says %v", err)
	}
}

// What was not allowed, or failed, is on record with its reason and is never called
// installed.
func TestABundleThatIsNotInstalled(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(t *testing.T, r *approvalstest.Rig, d approvals.Decision)
		state approvals.DecisionState
		audit []string
	}{
		"denied": {func(t *testing.T, r *approvalstest.Rig, d approvals.Decision) { answerBundle(t, r, d, false) },
			approvals.DecisionDenied, nil},
		"not answered in time": {func(_ *testing.T, r *approvalstest.Rig, _ approvals.Decision) { r.Clock.Add(time.Hour) },
			approvals.DecisionExpired, nil},
		"asked anew": {func(t *testing.T, r *approvalstest.Rig, _ approvals.Decision) {
			askBundle(t, r, approvals.ActInstall, aBundle())
		}, approvals.DecisionSuperseded, nil},
		"allowed, and the copy is another one by then": {func(t *testing.T, r *approvalstest.Rig, d approvals.Decision) {
			answerBundle(t, r, d, true)
			fail(t, r, d, coded.New("changed-since-asked", "it is no longer what was asked about"))
		}, approvals.DecisionChanged, []string{"install failed changed-since-asked", "install ok "}},
		"allowed, and the disk is full": {func(t *testing.T, r *approvalstest.Rig, d approvals.Decision) {
			answerBundle(t, r, d, true)
			fail(t, r, d, coded.New("disk-full", "there is no room"))
		}, approvals.DecisionFailed, []string{"install failed disk-full", "install ok "}},
	} {
		t.Run(name, func(t *testing.T) {
			r := approvalstest.New(t)
			d := askBundle(t, r, approvals.ActInstall, aBundle())
			c.end(t, r, d)
			got, err := r.Gate.Decision(t.Context(), d.ID)
			if err != nil || got.State != c.state {
				t.Fatalf("it is %s (%v), want %s", got.State, err, c.state)
			}
			if got := recorded(t, r, audit.Install); !slices.Equal(got, c.audit) {
				t.Errorf("the audit says %q, want %q", got, c.audit)
			}
		})
	}
}

func fail(t *testing.T, r *approvalstest.Rig, d approvals.Decision, why error) {
	t.Helper()
	if _, err := r.Gate.BundleDone(t.Context(), d.ID, why); err != nil {
		t.Fatal(err)
	}
}

// An act that was allowed when Sallyport ended is not called done or failed by
// itself: whoever knows the disk says which.
func TestAnActOnABundleThatWasCutOff(t *testing.T) {
	r := approvalstest.New(t)
	d := askBundle(t, r, approvals.ActInstall, aBundle())
	answerBundle(t, r, d, true)
	r.Reopen()
	left := r.Gate.Unfinished()
	if len(left) != 1 || left[0].ID != d.ID || left[0].Bundle.Staged != "s-1" {
		t.Fatalf("after the restart %+v is unfinished", left)
	}
	fail(t, r, d, coded.New("interrupted", "Sallyport ended meanwhile"))
	if len(r.Gate.Unfinished()) != 0 {
		t.Error("it is unfinished still")
	}
}

// Removing a plugin ends its approvals before a file goes; what the audit knows stays.
func TestAnUninstallEndsTheApprovals(t *testing.T) {
	r := approvalstest.New(t)
	r.Approve(offer, "read_notes")
	grant := r.Grant()
	q := aBundle()
	q.Staged = ""
	d := askBundle(t, r, approvals.ActUninstall, q)
	if err := grant.Err(); err != nil {
		t.Fatalf("the question alone ends the approval: %v", err)
	}
	answerBundle(t, r, d, true)
	if err := grant.Err(); coded.Of(err) != "uninstalled" {
		t.Errorf("what runs ends with %v", err)
	}
	if _, err := r.Gate.Grant(t.Context(), r.ID); err == nil {
		t.Error("a removed plugin may start")
	}
	fail(t, r, d, nil)
	if got := recorded(t, r, audit.Uninstall); !slices.Equal(got, []string{"uninstall ok "}) {
		t.Errorf("the audit says %q", got)
	}
}

func TestWhoMayAskAboutABundleAndWhat(t *testing.T) {
	r := approvalstest.New(t)
	for name, c := range map[string]struct {
		action string
		by     approvals.By
		change func(*approvals.BundleQuestion)
		code   string
	}{
		"an agent may not":                           {approvals.ActInstall, approvals.By{User: "claude", Via: approvals.ViaAgent}, nil, "answer-not-allowed"},
		"a companion may not":                        {approvals.ActInstall, approvals.By{User: "app", Via: approvals.ViaCompanion}, nil, "answer-not-allowed"},
		"without a digest there is no question":      {approvals.ActInstall, operator, func(q *approvals.BundleQuestion) { q.Digest = "" }, "answer-invalid"},
		"without a name there is no question":        {approvals.ActInstall, operator, func(q *approvals.BundleQuestion) { q.Plugin = "" }, "answer-invalid"},
		"without a staged copy nothing is installed": {approvals.ActInstall, operator, func(q *approvals.BundleQuestion) { q.Staged = "" }, "answer-invalid"},
		"nothing is staged for a removal":            {approvals.ActUninstall, operator, nil, "answer-invalid"},
		"text that has no single reading":            {approvals.ActInstall, operator, func(q *approvals.BundleQuestion) { q.Version = "\xff" }, "answer-invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			q := aBundle()
			if c.change != nil {
				c.change(&q)
			}
			if _, err := r.Gate.AskBundle(t.Context(), c.action, q, c.by); coded.Of(err) != c.code {
				t.Errorf("it says %v, want %s", err, c.code)
			}
		})
	}
}

func TestTheSentenceAboutABundle(t *testing.T) {
	for want, c := range map[string]struct {
		action string
		change func(*approvals.BundleQuestion)
	}{
		"demo 1.4.0 is to be installed from ~/Downloads/demo.mcpb. Nothing of it runs yet.": {approvals.ActInstall, func(*approvals.BundleQuestion) {}},
		"demo 1.3.0 → 1.4.0: 2 files modified, 1 file added.": {approvals.ActUpdate, func(q *approvals.BundleQuestion) {
			q.Replaces, q.Changes = &approvals.BundleVersion{Version: "1.3.0"}, &approvals.FileCounts{Added: 1, Modified: 2}
		}},
		"demo stays at version 1.4.0 with other files: 1 file removed.": {approvals.ActUpdate, func(q *approvals.BundleQuestion) {
			q.Replaces, q.Changes = &approvals.BundleVersion{Version: "1.4.0"}, &approvals.FileCounts{Removed: 1}
		}},
		"demo 1.4.0 is to be removed; what it has stored is kept.":             {approvals.ActUninstall, func(*approvals.BundleQuestion) {}},
		"demo 1.4.0 is to be removed, with everything that it has stored.":     {approvals.ActUninstall, func(q *approvals.BundleQuestion) { q.Purge = true }},
		`demo 1\u{202E}0 is to be installed from ~/x. Nothing of it runs yet.`: {approvals.ActInstall, func(q *approvals.BundleQuestion) { q.Version, q.Source = "1\u202e0", "~/x" }},
	} {
		q := aBundle()
		c.change(&q)
		if got := q.Sentence(c.action); got != want {
			t.Errorf("it reads %q, want %q", got, want)
		}
	}
}

// A name that nobody vouches for is never shown without that being said, and another
// publisher is said first.
func TestWhatASignatureSaysIsAFact(t *testing.T) {
	for _, c := range []struct {
		why    string
		change func(*approvals.BundleQuestion)
		want   []string
	}{
		{"no signature", func(q *approvals.BundleQuestion) { q.Signature = "unsigned" }, []string{"unsigned: nobody signed it, so nothing says who made it"}},
		{"a folder", func(*approvals.BundleQuestion) {}, nil},
		{"a key of somebody's", func(q *approvals.BundleQuestion) {
			q.Signature, q.SignatureSays = "valid", "signed by a key that nobody vouches for; it calls itself \"Jane\u202e\""
		}, []string{`signed-unvouched: it is signed by a key that nobody vouches for; it calls itself "Jane\u{202E}"`}},
		{"a vouched one, after another", func(q *approvals.BundleQuestion) {
			q.Signature, q.SignatureSays, q.Vouched, q.Publisher = "valid", "signed by \"Jane\"", true, "sha256:2 \"Jane\""
			q.Replaces = &approvals.BundleVersion{Version: "1", Publisher: "sha256:1 \"Jane\""}
		}, []string{`publisher-changed: the publisher changed from sha256:1 "Jane" to sha256:2 "Jane"`, `signed-vouched: it is signed by "Jane"`}},
	} {
		q := aBundle()
		q.Signature = ""
		c.change(&q)
		var got []string
		for _, fact := range q.BundleFacts() {
			got = append(got, fact.Code+": "+fact.Sentence)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.why, got, c.want)
		}
	}
}

// Every act of the operator on a connector is a decision that can be looked up.
func TestEnableDisableAndRevokeAreDecisions(t *testing.T) {
	r := approvalstest.New(t)
	r.Approve(offer, "read_notes")
	for _, act := range []struct {
		name string
		do   func() error
	}{
		{"disable", func() error { return r.Gate.Disable(t.Context(), r.ID, operator) }},
		{"enable", func() error { return r.Gate.Enable(t.Context(), r.ID, operator) }},
		{"revoke", func() error { return r.Gate.Revoke(t.Context(), r.ID, operator) }},
	} {
		r.Clock.Add(time.Second)
		if err := act.do(); err != nil {
			t.Fatal(err)
		}
		r.Reopen()
		all, err := r.Gate.Decisions(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		d := all[0]
		if d.Action != act.name || d.State != approvals.DecisionAllowed || d.AnsweredBy == nil || *d.AnsweredBy != operator || d.Subject() != r.ID {
			t.Errorf("%s is kept as %+v", act.name, d)
		}
		journal, err := r.Gate.Journal(t.Context(), d.ID)
		if err != nil || len(journal) != 2 {
			t.Errorf("its journal is %v (%v)", journal, err)
		}
	}
}

// While an answer is carried out its question is not superseded: its end has to be on
// record, and its staged copy is needed.
func TestABundleIsNotAskedAboutWhileAnAnswerIsCarriedOut(t *testing.T) {
	r := approvalstest.New(t)
	d := askBundle(t, r, approvals.ActInstall, aBundle())
	answerBundle(t, r, d, true)
	if _, err := r.Gate.AskBundle(t.Context(), approvals.ActInstall, aBundle(), operator); coded.Of(err) != "bundle-busy" {
		t.Errorf("asked meanwhile: %v", err)
	}
	if needed, err := r.Gate.StagedBundles(); err != nil || !needed["s-1"] {
		t.Errorf("needed are %v (%v)", needed, err)
	}
	if done, err := r.Gate.BundleDone(t.Context(), d.ID, nil); err != nil || done.State != approvals.DecisionAllowed {
		t.Fatalf("it ends as %s (%v)", done.State, err)
	}
	askBundle(t, r, approvals.ActInstall, aBundle())
}
