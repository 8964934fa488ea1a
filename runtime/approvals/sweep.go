package approvals

import (
	"context"
	"fmt"

	"sallyport/internal/coded"
	"sallyport/runtime/artifact"
	"sallyport/runtime/audit"
)

// Sweep closes the decisions that nobody answered in time and drops the
// snapshots that nothing approved needs. It is called now and then.
func (g *Gate) Sweep(ctx context.Context) error {
	if err := g.expire(ctx); err != nil {
		return err
	}
	if g.cfg.Snapshots == nil {
		return nil
	}
	g.collecting.Lock()
	defer g.collecting.Unlock()
	if _, err := g.cfg.Snapshots.Collect(ctx, g.Keep()); err != nil {
		return fmt.Errorf("cannot collect the snapshots: %w", err)
	}
	return nil
}

// expire closes open decisions whose time is over (spec/approval.md 4.3). One
// whose answer is being carried out was answered in time.
func (g *Gate) expire(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.endForgottenTries(ctx); err != nil {
		return err
	}
	t := newTransaction()
	var closed []*Decision
	for _, d := range g.decisions {
		if d.State != DecisionOpen || g.answering[d.ID] || !g.isOver(d) {
			continue
		}
		next := d.closed(DecisionExpired, "expired")
		if err := t.putDecision(&next); err != nil {
			return err
		}
		by := By{"", ViaSallyport}
		t.note(d.ID, "expired", by, "")
		t.audit = append(t.audit, g.answerAudit(audit.Expire, *d, by))
		closed = append(closed, d)
	}
	if len(closed) == 0 || g.closed {
		return nil
	}
	if err := g.commit(ctx, t); err != nil {
		return err
	}
	for _, d := range closed {
		g.tell(Event{"decision", d.Subject(), "expired"})
	}
	return nil
}

// endForgottenTries closes decisions whose try nobody ended within the time of a
// decision: what was allowed then is not started much later. g.mu is held.
func (g *Gate) endForgottenTries(ctx context.Context) error {
	forgotten := false
	for id := range g.probes {
		if d := g.decisions[id]; d == nil || !g.now().Before(d.AnsweredAt.Add(g.cfg.DecisionTTL())) {
			g.endProbe(id, coded.New("interrupted", "the first try took too long"))
			forgotten = true
		}
	}
	if !forgotten || g.closed {
		return nil
	}
	return g.interruptProbes(ctx)
}

// isOver reports whether d's time is over. A question from the future was asked
// now at the latest, and waits no longer than any other (C80).
func (g *Gate) isOver(d *Decision) bool {
	now := g.now()
	if d.CreatedAt.After(now.Add(d.ExpiresAt.Sub(d.CreatedAt))) {
		return true // the clock went back by more than a whole wait
	}
	return !now.Before(d.ExpiresAt)
}

// interruptProbes closes the decisions that were being tried when Sallyport
// ended: nobody knows what came of it. g.mu is held.
func (g *Gate) interruptProbes(ctx context.Context) error {
	if g.docs.fault != nil {
		return nil
	}
	t := newTransaction()
	for _, d := range g.decisions {
		if d.State != DecisionProbing || g.probes[d.ID] != nil {
			continue
		}
		next := d.closed(DecisionInterrupted, "interrupted")
		if err := t.putDecision(&next); err != nil {
			return err
		}
		t.note(d.ID, "interrupted", By{"", ViaSallyport}, "")
	}
	if len(t.batch) == 0 {
		return nil
	}
	return g.commit(ctx, t)
}

// Keep returns the digests whose snapshots something needs: approvals, the ones
// before them (for showing what changed), and questions being tried.
func (g *Gate) Keep() map[artifact.Digest]bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	keep := map[artifact.Digest]bool{}
	add := func(f Fields) {
		if d := artifact.Digest(f.Artifact); d.Valid() {
			keep[d] = true
		}
	}
	for _, r := range g.records {
		if r.Run != nil {
			add(r.Run.Fields)
		}
		if r.Before != nil {
			add(r.Before.Fields)
		}
	}
	for _, d := range g.decisions {
		if d.Open() {
			add(d.Fields)
		}
	}
	if len(g.docs.problems()) > 0 {
		// What does not count may be accepted yet: nothing of it is thrown away.
		for _, d := range g.docs.digests() {
			keep[d] = true
		}
	}
	return keep
}
