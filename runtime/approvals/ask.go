package approvals

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/coded"
	"sallyport/runtime/audit"
	"sallyport/runtime/plugins"
)

// keptDecisions is how many closed decisions stay listed. The journal and the
// audit of the older ones remain.
const keptDecisions = 200

// Ask reads the connector as it is now, in full, and asks whether it may run. The
// decision is on disk when Ask returns (spec/approval.md 4.2). An open decision
// of the same connector is superseded; who may not answer only gets to see it.
func (g *Gate) Ask(ctx context.Context, id plugins.ID, by By) (Decision, error) {
	resolved, err := g.resolveNow(ctx, id)
	if err != nil {
		return Decision{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if open := g.openDecision(id); open != nil && !by.isOperator() && open.Identity == resolved.Identity {
		return *open, nil
	}
	t := newTransaction()
	d := g.newDecision(resolved.matter(), StageRun, by)
	if err := g.ask(ctx, t, d, by); err != nil {
		return Decision{}, err
	}
	return *d, nil
}

// resolveNow resolves a connector for a question, with the user's PATH of now.
func (g *Gate) resolveNow(ctx context.Context, id plugins.ID) (Resolved, error) {
	path, err := g.userPath(ctx)
	if err != nil {
		return Resolved{}, err
	}
	return g.resolve(ctx, id, Full, path)
}

func (g *Gate) userPath(ctx context.Context) (string, error) {
	if g.cfg.UserPath == nil {
		path, _ := g.cfg.Parent.Lookup("PATH")
		return path, nil
	}
	path, err := g.cfg.UserPath(ctx)
	if err != nil {
		return "", fmt.Errorf("cannot find out the user's PATH: %w", err)
	}
	return path, nil
}

func (g *Gate) resolve(ctx context.Context, id plugins.ID, mode Mode, path string) (Resolved, error) {
	find := g.cfg.Connector
	if mode == Full && g.cfg.ConnectorNow != nil {
		find = g.cfg.ConnectorNow
	}
	connector, ok := find(id)
	if !ok {
		return Resolved{}, unknownConnector(id)
	}
	if connector.ID != id {
		return Resolved{}, coded.New("binding-changed", "another connector lies where this one was")
	}
	resolved, err := g.resolver.Resolve(ctx, connector, mode, path)
	if err != nil {
		return resolved, refusalOf(err)
	}
	return resolved, nil
}

func unknownConnector(id plugins.ID) *coded.Error {
	return &coded.Error{Code: "connector-unknown", Sentence: fmt.Sprintf("there is no connector %q", Visible(id.String())),
		Next: "look at sallyport plugins list"}
}

// matter is what a decision is about: a connector as it was found.
type matter struct {
	id       plugins.ID
	identity Identity
	fields   Fields
	path     string // the user's PATH that was used
}

func (r Resolved) matter() matter { return matter{r.Connector.ID, r.Identity, r.Fields, r.Path} }

// newDecision makes a decision about m. g.mu is held.
func (g *Gate) newDecision(m matter, stage Stage, by By) *Decision {
	now := g.now()
	return &Decision{
		Schema: schemaVersion, ID: newDecisionID(), Kind: KindApproval, Stage: stage,
		Action: g.actionFor(m.id, stage, m.identity), Plugin: m.id.Plugin, Server: m.id.Server,
		Options: []string{Allow, Deny}, CreatedAt: now, ExpiresAt: now.Add(g.cfg.DecisionTTL()),
		State: DecisionOpen, AskedBy: by, Identity: m.identity, Fields: m.fields, Path: m.path,
	}
}

func (g *Gate) actionFor(id plugins.ID, stage Stage, identity Identity) string {
	r := g.records[id]
	switch {
	case stage == StageTools:
		return "tools"
	case r == nil || r.Run == nil && r.Before == nil:
		return "install"
	case r.Run != nil && r.Run.Identity == identity:
		return "reconnect"
	}
	return "upgrade"
}

// ask supersedes what is open, and writes d with the rest of t. g.mu is held.
func (g *Gate) ask(ctx context.Context, t *transaction, d *Decision, by By) error {
	id := d.Subject()
	var superseded string
	if open := g.openDecision(id); open != nil && t.batch[docKey{decisionKind, open.ID}] == nil {
		closed := open.closed(DecisionSuperseded, "superseded")
		closed.Next = d.ID
		if err := t.putDecision(&closed); err != nil {
			return err
		}
		t.note(open.ID, "superseded", by, d.ID)
		superseded = open.ID
	}
	if err := t.putDecision(d); err != nil {
		return err
	}
	t.note(d.ID, "asked", by, string(d.Stage)+" "+d.Action)
	t.audit = append(t.audit, g.answerAudit(audit.Ask, *d, by))
	g.prune(t)
	if err := g.commit(ctx, t); err != nil {
		return err
	}
	if superseded != "" {
		g.endProbe(superseded, coded.New("superseded", "the question was asked anew"))
	}
	g.tell(Event{"decision", id, ""})
	return nil
}

// openDecision returns the decision whether id may run, or which of its tools, that
// waits for an answer or is being tried. g.mu is held.
func (g *Gate) openDecision(id plugins.ID) *Decision {
	for _, d := range g.decisions {
		if d.Kind != KindCall && d.Open() && d.Subject() == id {
			return d
		}
	}
	return nil
}

// prune drops the oldest closed decisions above the bound, of each kind by itself:
// calls, of which there may be many, push out no approval. g.mu is held.
func (g *Gate) prune(t *transaction) {
	g.pruneKind(t, KindApproval)
	g.pruneKind(t, KindCall)
}

func (g *Gate) pruneKind(t *transaction, kind string) {
	var closed []*Decision
	for _, d := range g.decisions {
		if d.Kind == kind && !d.Open() && t.batch[docKey{decisionKind, d.ID}] == nil {
			closed = append(closed, d)
		}
	}
	if len(closed) <= keptDecisions {
		return
	}
	slices.SortFunc(closed, func(a, b *Decision) int { return a.CreatedAt.Compare(b.CreatedAt) })
	for _, d := range closed[:len(closed)-keptDecisions] {
		t.batch.remove(decisionKind, d.ID)
	}
}

// Decisions lists decisions, newest first; with openOnly those that wait.
func (g *Gate) Decisions(ctx context.Context, openOnly bool) ([]Decision, error) {
	if err := g.expire(ctx); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	out := []Decision{}
	for _, d := range g.decisions {
		if !openOnly || d.Open() {
			out = append(out, *d)
		}
	}
	slices.SortFunc(out, func(a, b Decision) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	return out, nil
}

// Decision returns one decision as it is now.
func (g *Gate) Decision(ctx context.Context, id string) (Decision, error) {
	if err := g.expire(ctx); err != nil {
		return Decision{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.decisions[id]
	if d == nil {
		e := errNoDecision
		return Decision{}, &e
	}
	return *d, nil
}
