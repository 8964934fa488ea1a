package approvals

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	"sallyport/internal/coded"
	"sallyport/internal/jcs"
	"sallyport/runtime/audit"
	"sallyport/runtime/plugins"
)

// StageBundle is the question whether a bundle as a whole may be put among the
// plugins, take another's place, or be removed. It allows nothing of it to run:
// that is asked about each connector (StageRun).
const StageBundle Stage = "bundle"

// The acts on a bundle: Decision.Action of the stage bundle.
const (
	ActInstall   = "install"
	ActUpdate    = "update"
	ActUndo      = "undo" // the version before takes its place again
	ActUninstall = "uninstall"
)

// BundleQuestion is what a decision of the stage bundle is about. An allow is for
// exactly this and nothing else. The JSON names are part of its identity.
type BundleQuestion struct {
	Plugin  string `json:"plugin"`
	Version string `json:"version"`
	Format  string `json:"format"`
	// Digest is of the tree that would be put in place, or be removed.
	Digest string `json:"digest"`
	// Source says where it came from, without a path of the user's.
	Source string `json:"source"`
	// Staged names the copy that waits; empty for an uninstall and an undo.
	Staged    string `json:"staged,omitempty"`
	Publisher string `json:"publisher,omitempty"` // of a valid signature
	Signature string `json:"signature,omitempty"` // "valid", "unsigned", or empty where the source has none
	// SignatureSays is what a valid signature is worth, in a sentence; Vouched, that an
	// authority which this computer trusts confirms the name.
	SignatureSays string `json:"signatureSays,omitempty"`
	Vouched       bool   `json:"vouched,omitempty"`
	// Replaces is what lies there now; nil for an install.
	Replaces *BundleVersion `json:"replaces,omitempty"`
	// Changes is how the files differ from Replaces.
	Changes *FileCounts `json:"changes,omitempty"`
	// Purge removes the plugin's own data too (uninstall only).
	Purge bool `json:"purge,omitempty"`
	// Env and Inherit are the operator's own words about the connector that this is made
	// of: references and names, which go to its entry in config.json with the allow.
	Env     map[string]string `json:"env,omitempty"`
	Inherit []string          `json:"inherit,omitempty"`
	// Servers are the connectors that it declares, or that stop for an uninstall.
	Servers []string `json:"servers"`
	Files   int      `json:"files"`
	Bytes   int64    `json:"bytes"`
}

// BundleVersion is an installed bundle.
type BundleVersion struct {
	Version   string `json:"version"`
	Digest    string `json:"digest"`
	Publisher string `json:"publisher,omitempty"`
}

// FileCounts is a difference of two trees in numbers.
type FileCounts struct {
	Added    int `json:"added"`
	Removed  int `json:"removed"`
	Modified int `json:"modified"`
}

// identity names the question exactly: "b1:" and the SHA-256 of its RFC 8785 form.
func (q BundleQuestion) identity() Identity {
	q.Servers = present(q.Servers)
	sum, err := jcs.Sum("b1:", q)
	if err != nil {
		return "" // a text that is not valid UTF-8: nothing equals it
	}
	return Identity(sum)
}

// Sentence opens the question, in words.
func (q BundleQuestion) Sentence(action string) string {
	name := Visible(q.Plugin)
	if q.Version != "" {
		name += " " + Visible(q.Version)
	}
	switch {
	case action == ActUninstall && q.Purge:
		return name + " is to be removed, with everything that it has stored."
	case action == ActUninstall:
		return name + " is to be removed; what it has stored is kept."
	case q.Replaces == nil:
		return fmt.Sprintf("%s is to be installed from %s. Nothing of it runs yet.", name, Visible(q.Source))
	}
	return fmt.Sprintf("%s %s: %s.", Visible(q.Plugin), q.step(), q.changed())
}

// step is the change of version in words.
func (q BundleQuestion) step() string {
	old, now := Visible(q.Replaces.Version), Visible(q.Version)
	if old == now {
		return "stays at version " + now + " with other files"
	}
	return old + " → " + now
}

func (q BundleQuestion) changed() string {
	if q.Changes == nil {
		return "which files changed cannot be told"
	}
	var words []string
	for _, part := range []struct {
		n    int
		what string
	}{{q.Changes.Modified, "modified"}, {q.Changes.Added, "added"}, {q.Changes.Removed, "removed"}} {
		if part.n > 0 {
			words = append(words, counted(part.n, "file")+" "+part.what)
		}
	}
	if len(words) == 0 {
		return "no file changed"
	}
	return strings.Join(words, ", ")
}

// BundleFacts are what a careful friend would point at, most serious first.
func (q BundleQuestion) BundleFacts() []Fact {
	facts := []Fact{}
	if old := q.Replaces; old != nil && old.Publisher != q.Publisher {
		facts = append(facts, Fact{"publisher-changed", fmt.Sprintf("the publisher changed from %s to %s", publisherWords(old.Publisher), publisherWords(q.Publisher)), true})
	}
	if q.Signature == "valid" && q.SignatureSays != "" {
		code := "signed-unvouched"
		if q.Vouched {
			code = "signed-vouched"
		}
		facts = append(facts, Fact{code, "it is " + Visible(q.SignatureSays), false})
	}
	if q.Signature == "unsigned" {
		facts = append(facts, Fact{"unsigned", "nobody signed it, so nothing says who made it", false})
	}
	return facts
}

func publisherWords(publisher string) string {
	if publisher == "" {
		return "nobody (unsigned)"
	}
	return Visible(publisher)
}

func errNotBundle() *coded.Error {
	return coded.New("answer-invalid", "the question about a bundle is not complete, so it cannot be asked")
}

// AskBundle asks whether a bundle may be installed, replace another or be removed.
// The decision is on disk when AskBundle returns; an open one about the same plugin
// is superseded (spec/approval.md 4.2, 4.4).
func (g *Gate) AskBundle(ctx context.Context, action string, q BundleQuestion, by By) (Decision, error) {
	if err := by.mayOperate(); err != nil {
		return Decision{}, err
	}
	identity := q.identity()
	if q.Plugin == "" || q.Digest == "" || identity == "" || (q.Staged == "") != (action == ActUninstall || action == ActUndo) {
		return Decision{}, errNotBundle()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.docs.fault != nil {
		return Decision{}, g.docs.fault
	}
	if open := g.openDecision(plugins.ID{Plugin: q.Plugin}); open != nil && open.State == DecisionApplying {
		return Decision{}, &coded.Error{Code: "bundle-busy", Sentence: "what was allowed about this plugin is being done at this moment", Next: "ask again when it is done"}
	}
	now := g.now()
	q.Servers = present(q.Servers)
	d := &Decision{
		Schema: schemaVersion, ID: newDecisionID(), Kind: KindApproval, Stage: StageBundle, Action: action, Plugin: q.Plugin,
		Options: []string{Allow, Deny}, CreatedAt: now, ExpiresAt: now.Add(g.cfg.DecisionTTL()), State: DecisionOpen,
		AskedBy: by, Identity: identity, Bundle: &q,
	}
	if err := g.ask(ctx, newTransaction(), d, by); err != nil {
		return Decision{}, err
	}
	return *d, nil
}

func newDecisionID() string { return "d-" + strings.ToLower(rand.Text()[:16]) }

// bundleAction is the audit's word for an act on a bundle.
func bundleAction(action string) string {
	switch action {
	case ActUpdate, ActUndo:
		return audit.Update
	case ActUninstall:
		return audit.Uninstall
	}
	return audit.Install
}

// allowBundle takes the allow and puts it on record before anything is done. The
// caller does it now and says with BundleDone what came of it. The approvals of a
// plugin that is to be removed end here, before its files go.
func (g *Gate) allowBundle(ctx context.Context, d Decision, by By) (Decision, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.stillOpen(d); err != nil {
		return d, err
	}
	next := g.answered(d, DecisionApplying, Allow, by)
	t := newTransaction()
	if err := t.putDecision(&next); err != nil {
		return d, err
	}
	t.note(d.ID, "allowed", by, "")
	t.audit = append(t.audit, g.answerAudit(audit.Allow, d, by), g.answerAudit(bundleAction(d.Action), d, by))
	ended := g.endApprovals(t, d)
	if err := g.commit(ctx, t); err != nil {
		return d, err
	}
	why := coded.New("uninstalled", "the plugin was removed")
	for _, id := range ended {
		g.endLife(id, why)
		g.tell(Event{"connector", id, why.Code})
	}
	g.tell(Event{"decision", d.Subject(), ""})
	return next, nil
}

// endApprovals forgets every approval of a plugin that is to be removed: the audit
// keeps who had allowed what. g.mu is held.
func (g *Gate) endApprovals(t *transaction, d Decision) (ended []plugins.ID) {
	if d.Action != ActUninstall {
		return nil
	}
	for id := range g.records {
		if id.Plugin == d.Plugin {
			t.batch.remove(approvalKind, id.String())
			ended = append(ended, id)
		}
	}
	return ended
}

// BundleDone records what came of an allowed act on a bundle: done, where cause is
// nil, and failed with a reason otherwise. What failed left the
// bundle that lay there, but where cause itself says otherwise (data-not-removed).
func (g *Gate) BundleDone(ctx context.Context, decision string, cause error) (Decision, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.decisions[decision]
	switch {
	case d == nil:
		e := errNoDecision
		return Decision{}, &e
	case d.State != DecisionApplying:
		return *d, decisionClosed(*d)
	}
	next, t := d.closed(DecisionAllowed, ""), newTransaction()
	by := By{"", ViaSallyport}
	event := "done"
	if cause != nil {
		why := refusalOf(cause)
		event = why.Code
		next = d.closed(DecisionFailed, why.Code)
		if why.Code == "changed-since-asked" {
			next.State = DecisionChanged
		}
		record := g.answerAudit(bundleAction(d.Action), *d, *d.AnsweredBy)
		record.Result, record.Reason = audit.Failed, why.Code
		t.audit = append(t.audit, record)
	}
	if err := t.putDecision(&next); err != nil {
		return *d, err
	}
	t.note(d.ID, event, by, "")
	if err := g.commit(ctx, t); err != nil {
		return *d, err
	}
	g.tell(Event{"decision", d.Subject(), next.Code})
	return next, nil
}

// Unfinished lists the acts on bundles that were allowed and are not done: those of
// an earlier run, where nothing does one now. Their end is told with BundleDone, by
// whoever knows what lies on disk.
func (g *Gate) Unfinished() []Decision {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []Decision
	for _, d := range g.decisions {
		if d.State == DecisionApplying {
			all = append(all, *d)
		}
	}
	return all
}

// StagedBundles names the staged copies that an open decision is about: what else
// is staged may go. While the decisions do not count, or not yet, nobody knows which
// those are, and the error says why.
func (g *Gate) StagedBundles() (map[string]bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.docs.fault != nil {
		return nil, g.docs.fault
	}
	needed := map[string]bool{}
	for _, d := range g.decisions {
		if d.Bundle != nil && d.Open() && d.Bundle.Staged != "" {
			needed[d.Bundle.Staged] = true
		}
	}
	return needed, nil
}

// String is the counts, for logs and tests.
func (c FileCounts) String() string {
	return "+" + strconv.Itoa(c.Added) + " -" + strconv.Itoa(c.Removed) + " ~" + strconv.Itoa(c.Modified)
}
