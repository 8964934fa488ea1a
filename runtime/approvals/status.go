package approvals

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"sallyport/internal/coded"
	"sallyport/runtime/artifact"
	"sallyport/runtime/plugins"
)

// State of a connector (spec/approval.md 3).
type State string

// The states, in the order in which a connector usually goes through them.
const (
	ApprovalRequired State = "approval_required"
	Pending          State = "pending"
	Probing          State = "probing"
	ToolsRequired    State = "tools_required"
	Enabled          State = "enabled"
	Disabled         State = "disabled"
	Denied           State = "denied"
	Invalid          State = "invalid"
	Blocked          State = "blocked"
	Parked           State = "parked"
)

// Status is a connector as it stands. Every state but Enabled has a reason code
// and a sentence that says what to do next.
type Status struct {
	ID       plugins.ID
	State    State
	Reason   string
	Sentence string
	Next     string
	Version  string
	Digest   artifact.Digest // of what is on disk now; "" without a bundle
	Identity Identity        // of what is on disk now
	Approved *ApprovedView   // nil where nothing is approved
	Decision string          // the open one
	Changes  []Change        // since the approval
}

// ApprovedView is who approved what, and when.
type ApprovedView struct {
	Identity Identity
	Digest   artifact.Digest
	Version  string
	By       By
	At       time.Time
	Tools    []string
	ToolsBy  By
	ToolsAt  time.Time
}

// Status says how a connector stands, from a cached digest: for lists.
func (g *Gate) Status(ctx context.Context, id plugins.ID) Status {
	g.mu.Lock()
	path := g.pathFor(id)
	g.mu.Unlock()
	if path == "" {
		path, _ = g.userPath(ctx)
	}
	resolved, err := g.resolve(ctx, id, Cached, path)
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.statusOf(id, resolved, err)
}

// pathFor returns the PATH that was approved for id. g.mu is held.
func (g *Gate) pathFor(id plugins.ID) string {
	if r := g.records[id]; r != nil && r.Run != nil {
		return r.Run.Path
	}
	return ""
}

// Statuses lists every connector on disk and every one that was approved, sorted.
func (g *Gate) Statuses(ctx context.Context) []Status {
	seen := map[plugins.ID]bool{}
	if g.cfg.Connectors != nil {
		for _, id := range g.cfg.Connectors() {
			seen[id] = true
		}
	}
	g.mu.Lock()
	for key := range g.docs.rows {
		if key.kind == approvalKind {
			seen[parseID(key.id)] = true
		}
	}
	g.mu.Unlock()
	ids := slices.SortedFunc(maps.Keys(seen), func(a, b plugins.ID) int { return strings.Compare(a.String(), b.String()) })
	out := make([]Status, len(ids))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, id := range ids {
		group.Go(func() error {
			out[i] = g.Status(ctx, id)
			return nil
		})
	}
	_ = group.Wait() // every Status says its own
	return out
}

// statusOf combines what is on disk with what is recorded. g.mu is held.
func (g *Gate) statusOf(id plugins.ID, now Resolved, err error) Status {
	s := Status{ID: id, Version: now.Connector.Version, Digest: now.Digest(), Identity: now.Identity}
	r := g.records[id]
	if r != nil {
		s.Approved = g.approvedView(r)
	}
	if open := g.openDecision(id); open != nil {
		s.Decision = open.ID
	}
	say := func(state State, why *coded.Error) Status {
		s.State, s.Reason, s.Sentence, s.Next = state, why.Code, why.Error(), why.Next
		return s
	}
	if err != nil {
		return say(Invalid, refusalOf(err))
	}
	if r != nil && r.Run != nil && s.Identity != r.Run.Identity {
		s.Changes = Changes(r.Run.Fields, now.Fields)
	}
	problem := g.problemOf(id)
	matches := problem == nil && r != nil && r.Run != nil && r.Run.Identity == s.Identity
	if matches && r.Tools != nil {
		if _, why := g.mayRun(id); why == nil {
			s.State = Enabled
			return s
		}
	}
	if open := g.openDecision(id); open != nil && (open.Stage == StageRun || !matches) {
		return say(g.stateOfOpen(open))
	}
	switch {
	case problem != nil && problem.Code == codeUnavailable:
		return say(Blocked, problem)
	case problem != nil:
		return say(ApprovalRequired, problem)
	case r != nil && r.Denied != nil && r.Denied.Identity == s.Identity:
		return say(Denied, errDenied(id))
	case matches || r != nil && r.Disabled != nil && r.Run != nil:
		return say(g.stateOfRecord(id))
	}
	if f, failed := g.failures[id]; failed && f.identity == s.Identity {
		return say(ApprovalRequired, f.why)
	}
	if r != nil && r.Run != nil {
		return say(ApprovalRequired, changedNow(id, r.Run.Fields, now.Fields))
	}
	_, why := g.mayRun(id)
	if why == nil || why.Code == "denied" || why.Code == "tools-required" {
		why = &coded.Error{Code: "never-approved", Sentence: "nobody has approved it as it is now", Next: "review it and answer: sallyport approve " + word(id)}
	}
	return say(ApprovalRequired, why)
}

func (g *Gate) stateOfOpen(open *Decision) (State, *coded.Error) {
	if p := g.probes[open.ID]; p != nil && p.waits != nil {
		return Blocked, p.waits
	}
	if open.State == DecisionProbing {
		return Probing, &coded.Error{Code: "probing", Sentence: "it was allowed and is being tried for the first time", Next: "wait a moment"}
	}
	return Pending, &coded.Error{Code: "pending", Sentence: "a question about it is open", Next: "answer it: sallyport approve " + word(open.Subject())}
}

// stateOfRecord is the state of an approval that is met but not enabled.
func (g *Gate) stateOfRecord(id plugins.ID) (State, *coded.Error) {
	_, why := g.mayRun(id)
	switch {
	case why == nil:
		return ApprovalRequired, coded.New("never-approved", "nobody has approved it as it is now")
	case why.Code == "disabled":
		return Disabled, why
	case why.Code == "denied":
		return Denied, why
	case why.Code == "tools-required":
		return ToolsRequired, why
	case g.trouble[id] != nil:
		return g.trouble[id].state, why
	}
	return ApprovalRequired, why
}

func (g *Gate) approvedView(r *record) *ApprovedView {
	if r.Run == nil {
		return nil
	}
	v := &ApprovedView{
		Identity: r.Run.Identity, Digest: r.Run.digest(), Version: r.Run.Fields.Version,
		By: r.Run.By, At: g.past(r.Run.At), Tools: []string{},
	}
	if r.Tools != nil {
		v.ToolsBy, v.ToolsAt = r.Tools.By, g.past(r.Tools.At)
		for _, tool := range r.Tools.Tools {
			v.Tools = append(v.Tools, tool.Name)
		}
	}
	return v
}
