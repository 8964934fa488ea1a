package host

import (
	"context"
	"errors"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/plugins"
	"sallyport/runtime/secrets"
	"sallyport/runtime/store"
)

// probeLimit is how long a first try may take, start and lists together.
const probeLimit = 60 * time.Second

// Ask asks the operator whether a connector may run, about what is on disk now.
func (h *Host) Ask(ctx context.Context, id plugins.ID, by approvals.By) (approvals.Decision, error) {
	if err := h.Rescan(ctx); err != nil {
		return approvals.Decision{}, err
	}
	return h.Gate.Ask(ctx, id, by)
}

// AskTools asks the operator anew which tools of an enabled connector may be used,
// with what its server provides now. What is allowed stays so until the answer.
func (h *Host) AskTools(ctx context.Context, id plugins.ID, by approvals.By) (approvals.Decision, error) {
	session, err := h.Pool.Session(ctx, id)
	if err != nil {
		return approvals.Decision{}, err
	}
	return h.Gate.AskTools(ctx, session.Grant(), session.Offer(), by)
}

// Answer answers a decision. Where that allows a connector to run, it is tried
// from its snapshot, and the decision returned is the next one: which of its
// tools may be used. Where it allows an act on a bundle, that is done. Either goes on
// when ctx ends, so that a closed window does not decide; ending the decision ends it,
// and CancelProbe ends a try.
func (h *Host) Answer(ctx context.Context, decision string, answer approvals.Answer, by approvals.By) (approvals.Decision, error) {
	h.answering.RLock()
	answered, err := h.answerChecked(ctx, decision, answer, by)
	carriedOut := h.answering.RUnlock
	defer func() { carriedOut() }()
	if err == nil && answered.Bundle != nil && !answer.Allow {
		h.sweepInstallations() // what was staged for it is needed no more
	}
	if err != nil || !answer.Allow {
		return answered, err
	}
	carryOut := map[approvals.Stage]func(approvals.Decision) (approvals.Decision, error){
		approvals.StageRun: h.probe, approvals.StageBundle: h.apply,
	}[answered.Stage]
	if carryOut == nil {
		return answered, nil
	}
	type outcome struct {
		decision approvals.Decision
		err      error
	}
	tried := make(chan outcome, 1)
	carriedOut = func() {}
	h.work.Go(func() {
		defer h.answering.RUnlock()
		next, err := carryOut(answered)
		tried <- outcome{next, err}
	})
	select {
	case got := <-tried:
		return got.decision, got.err
	case <-ctx.Done():
		return answered, ctx.Err()
	}
}

// answerChecked hands an answer to the gate. Of an allow to run, the comparison with
// what is on disk is the first step of the try, and can be cancelled like the others:
// the question is then still open.
func (h *Host) answerChecked(ctx context.Context, decision string, answer approvals.Answer, by approvals.By) (approvals.Decision, error) {
	asked, err := h.Gate.Decision(ctx, decision)
	if err != nil || !answer.Allow || asked.Stage != approvals.StageRun || asked.State != approvals.DecisionOpen {
		return h.Gate.Answer(ctx, decision, answer, by)
	}
	t, mine := h.tries.begin(h.ctx, decision, h.now)
	if !mine {
		return h.Gate.Answer(ctx, decision, answer, by) // which says that it is answered
	}
	checking, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(t.ctx, stop)()
	answered, err := h.Gate.Answer(checking, decision, answer, by)
	if err != nil {
		if t.cancelled() && ctx.Err() == nil {
			err = &coded.Error{Code: "probe-cancelled", Sentence: "you cancelled it before it was allowed, so the question is still open",
				Next: "answer it when you like"}
		}
		t.end(err)
	}
	return answered, err
}

// probe starts a connector that was just allowed to run, asks what it provides
// and stops it. A failed probe records no approval (spec/approval.md 4.6).
func (h *Host) probe(allowed approvals.Decision) (approvals.Decision, error) {
	t, _ := h.tries.begin(h.ctx, allowed.ID, h.now)
	next, err := h.try(allowed, t)
	t.end(err)
	return next, err
}

func (h *Host) try(allowed approvals.Decision, t *try) (approvals.Decision, error) {
	ctx, cancel := context.WithTimeoutCause(t.ctx, probeLimit, coded.New("start-timeout", "the server was not ready in time"))
	defer cancel()
	grant, err := h.Gate.ProbeGrant(ctx, allowed.ID)
	if err != nil {
		return allowed, err
	}
	launch, err := grant.Launch()
	if err == nil && launch.Transport == plugins.Skills {
		return h.offerSkills(ctx, allowed, launch)
	}
	var offer approvals.Offer
	// The running one was approved as something else.
	if err = h.Pool.Stop(ctx, allowed.Subject(), errReplaced); err == nil {
		offer, err = h.Pool.Probe(ctx, grant, t.step)
	}
	var why *coded.Error
	if errors.As(err, &why) && why.Code == "oauth-login-needed" {
		// It is tried again when somebody has signed in (BeginLogin).
		return allowed, errors.Join(err, h.Gate.ProbeWaits(context.WithoutCancel(ctx), allowed.ID, why))
	}
	if err == nil && t.ctx.Err() == nil {
		return h.Gate.Probed(ctx, allowed.ID, offer)
	}
	return allowed, h.tryFailed(ctx, allowed, t, err)
}

// tryFailed records that a try came to nothing and says why.
func (h *Host) tryFailed(ctx context.Context, allowed approvals.Decision, t *try, err error) error {
	why := error(approvals.ProbeFailure(err))
	record := func(ctx context.Context) error { return h.Gate.ProbeFailed(ctx, allowed.ID, err) }
	if by, cancelled := t.cancelledBy(); cancelled {
		why = context.Cause(t.ctx)
		record = func(ctx context.Context) error { return h.Gate.ProbeCancelled(ctx, allowed.ID, by) }
	} else if ctx.Err() != nil && err == nil {
		err = context.Cause(ctx)
		why = approvals.ProbeFailure(err)
	}
	if failed := record(context.WithoutCancel(ctx)); failed != nil {
		h.log.Error("a failed probe could not be recorded", "connector", allowed.Subject().String(), "error", failed)
	}
	return why
}

// offerSkills ends the question about a plugin that has skills alone: there is no
// tool to choose, and the one answer was about all there is.
func (h *Host) offerSkills(ctx context.Context, allowed approvals.Decision, launch approvals.Launch) (approvals.Decision, error) {
	tools, err := h.Gate.Probed(ctx, allowed.ID, h.skillOffer(ctx, launch))
	if err != nil {
		return tools, err
	}
	return h.Gate.Answer(ctx, tools.ID, approvals.Answer{Allow: true, Tools: []string{}}, *allowed.AnsweredBy)
}

// RecordExport puts on record that the audit was exported, before it is.
func (h *Host) RecordExport(ctx context.Context, via string) error {
	_, err := h.Audit.Append(ctx, audit.Record{Action: audit.Export, Result: audit.OK, Actor: h.User, Via: via, Target: "audit"})
	return err
}

// VerifyAudit checks the whole chain and the sealed head of a data folder,
// whether a sidecar runs there or not.
func VerifyAudit(ctx context.Context, places Places) (audit.Report, error) {
	db, err := store.OpenReadOnly(ctx, places.Database())
	if err != nil {
		return audit.Report{}, err
	}
	defer func() { _ = db.Close() }()
	backend := secrets.SystemKeyring(secrets.KeyringConfig{Service: keyringService(places)})
	keys := secrets.Open(secrets.Config{Backend: backend, Names: secretNames{db}})
	defer func() { _ = keys.Close() }()
	keeper, err := approvals.ReadKeeper(ctx, places.Keys(), db, sealKeyring{keys})
	if err != nil {
		return audit.Report{}, err
	}
	return audit.VerifyDatabase(ctx, db, keeper)
}
