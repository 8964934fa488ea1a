package approvals

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"sallyport/internal/coded"
	"sallyport/runtime/artifact"
	"sallyport/runtime/audit"
	"sallyport/runtime/plugins"
)

// Grant proves that a connector is approved as it is right now: it reads the
// source, the executable and the approved snapshot in full. Every start asks for
// one, restarts included (spec/approval.md 5.1, 5.2). The refusal is the reason
// code of what changed, or of the state the connector is in.
func (g *Gate) Grant(ctx context.Context, id plugins.ID) (Grant, error) {
	r, err := g.standing(ctx, id)
	if err != nil {
		return Grant{}, err
	}
	var resolved Resolved
	var snapshot artifact.Snapshot
	var snapshotErr error
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		resolved, err = g.resolve(inner, id, Full, r.Run.Path)
		return err
	})
	if digest := r.Run.digest(); digest != "" {
		group.Go(func() error {
			snapshot, snapshotErr = g.cfg.Snapshots.Verify(inner, digest)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		if ctx.Err() == nil {
			g.endBecause(id, r, refusalOf(err))
		}
		return Grant{}, err
	}
	if resolved.Identity != r.Run.Identity {
		why := changedNow(id, r.Run.Fields, resolved.Fields)
		g.endBecause(id, r, why)
		return Grant{}, why
	}
	if snapshotErr != nil {
		// The source gives the approved digest, so the copy can be made again.
		if snapshot, err = g.snapshot(ctx, resolved.Connector.Root, r.Run.digest()); err != nil {
			return Grant{}, fmt.Errorf("cannot verify the approved copy: %w", err)
		}
	}
	launch, err := g.launchFrom(resolved, snapshot.Dir)
	if err != nil {
		return Grant{}, err
	}
	return g.mint(id, r, resolved, launch)
}

// standing returns the record that allows id to run, as it also is on disk.
func (g *Gate) standing(ctx context.Context, id plugins.ID) (*record, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, coded.New("closing", "Sallyport is closing")
	}
	r, why := g.mayRun(id)
	if why != nil {
		return nil, why
	}
	same, err := g.docs.stillThere(ctx, approvalKind, id.String())
	if err != nil {
		return nil, fmt.Errorf("cannot read the approval: %w", err)
	}
	if !same {
		problem := tampered("the record was changed in the store while Sallyport ran")
		key := docKey{approvalKind, id.String()}
		row := g.docs.rows[key]
		row.problem = problem
		g.docs.rows[key] = row
		delete(g.records, id)
		g.endLife(id, problem)
		g.tell(Event{"connector", id, problem.Code})
		return nil, problem
	}
	return r, nil
}

// mayRun returns the record of id, or why it allows nothing, without looking at
// the disk. g.mu is held.
func (g *Gate) mayRun(id plugins.ID) (*record, *coded.Error) {
	if why := g.problemOf(id); why != nil {
		return nil, why
	}
	r := g.records[id]
	switch {
	case r == nil || r.Run == nil && r.Revoked == nil && r.Denied == nil:
		return nil, &coded.Error{Code: "never-approved", Sentence: "nobody has approved it", Next: "review it and answer: sallyport approve " + word(id)}
	case r.Disabled != nil:
		return nil, &coded.Error{Code: "disabled", Sentence: "the operator disabled it", Next: "let it run again: sallyport enable " + word(id)}
	case r.Run == nil && r.Revoked != nil:
		return nil, &coded.Error{Code: "revoked", Sentence: "its approval was revoked", Next: "review it and approve it again: sallyport approve " + word(id)}
	case r.Denied != nil && (r.Run == nil || r.Denied.Identity == r.Run.Identity):
		return nil, errDenied(id)
	case g.trouble[id] != nil:
		return nil, g.trouble[id].why
	case r.Tools == nil:
		return nil, &coded.Error{Code: "tools-required", Sentence: "it may run, but nobody has chosen its tools yet", Next: "choose its tools: sallyport approve " + word(id)}
	}
	return r, nil
}

func errDenied(id plugins.ID) *coded.Error {
	return &coded.Error{Code: "denied", Sentence: "the operator denied it", Next: "if that was a mistake, answer again: sallyport approve " + word(id)}
}

// problemOf says why the sealed record of id does not count. g.mu is held.
func (g *Gate) problemOf(id plugins.ID) *coded.Error {
	if g.docs.fault != nil {
		return g.docs.fault
	}
	_, _, problem := g.docs.get(approvalKind, id.String())
	return problem
}

// mint makes the grant, unless the approval was changed while files were read.
func (g *Gate) mint(id plugins.ID, r *record, resolved Resolved, launch Launch) (Grant, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return Grant{}, coded.New("closing", "Sallyport is closing")
	}
	now, why := g.mayRun(id)
	if why != nil {
		return Grant{}, why
	}
	if now != r {
		return Grant{}, coded.New("superseded", "the approval was changed at this moment; try again")
	}
	l := g.lives[id]
	if l == nil {
		l = newLife()
		g.lives[id] = l
	}
	return Grant{&grantState{id: id, identity: r.Run.Identity, launch: launch, ended: l.ctx, fields: r.Run.Fields, approved: r.Tools}}, nil
}

// endBecause ends the grants of an approval that is no longer met.
func (g *Gate) endBecause(id plugins.ID, r *record, why *coded.Error) {
	g.mu.Lock()
	running := g.records[id] == r && g.lives[id] != nil
	if running {
		g.endLife(id, why)
		g.tell(Event{"connector", id, why.Code})
	}
	g.mu.Unlock()
	if !running {
		return
	}
	// Ending waits for no record: it only takes away.
	record := g.auditOf(audit.Refuse, audit.Refused, id, By{"", ViaSallyport})
	record.Reason, record.Identity, record.Version = why.Code, string(r.Run.Identity), r.Run.Fields.Version
	if _, err := g.cfg.Audit.Append(context.Background(), record); err != nil {
		g.log.Error("an ended approval cannot be recorded", "connector", id.String(), "error", err)
	}
}

// Recheck compares a connector with its approval after a change on disk, and ends
// its grants with the first reason if they differ (spec/approval.md 5.3).
func (g *Gate) Recheck(ctx context.Context, id plugins.ID) Status {
	g.mu.Lock()
	r := g.records[id]
	g.mu.Unlock()
	if r != nil && r.Run != nil {
		resolved, err := g.resolveSettled(ctx, id, r.Run.Path)
		switch {
		case ctx.Err() != nil:
			// Given up by the caller: that says nothing about the connector.
		case err != nil:
			g.endBecause(id, r, refusalOf(err))
		case resolved.Identity != r.Run.Identity:
			g.endBecause(id, r, changedNow(id, r.Run.Fields, resolved.Fields))
		}
	}
	return g.Status(ctx, id)
}

// settleTries is how often a tree that is being written to is looked at again.
const settleTries = 3

// resolveSettled resolves again where a file changed while it was read, so that
// the reason is what changed and not that it did so just then.
func (g *Gate) resolveSettled(ctx context.Context, id plugins.ID, path string) (resolved Resolved, err error) {
	for range settleTries {
		resolved, err = g.resolve(ctx, id, Cached, path)
		if !errors.Is(err, coded.New(artifact.CodeChanged, "")) {
			return resolved, err
		}
	}
	return resolved, err
}
