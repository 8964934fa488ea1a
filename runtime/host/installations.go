package host

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/artifact"
	"sallyport/runtime/install"
	"sallyport/runtime/signature"
)

// keptInstallations is how many that are over can still be looked up.
const keptInstallations = 50

// progressEvery bounds how often progress is told.
const progressEvery = 100 * time.Millisecond

// InstallationState is where an installation is on its way to a question.
type InstallationState string

// The states of an installation. After Asked, the decision says what comes of it.
const (
	Staging   InstallationState = "staging"
	Asked     InstallationState = "asked"
	Failed    InstallationState = "failed"
	Cancelled InstallationState = "cancelled"
)

// Installation is one bundle on its way from a source to the question whether it
// may be installed. It lives in memory: what was not asked about when Sallyport
// ends is gone, and nothing of it is left.
type Installation struct {
	ID       string
	State    InstallationState
	Revision int // grows with every change
	Step     install.Step
	Decision string // once State is Asked
	Err      error  // where State is Failed
	Warnings []install.Warning
}

// installations are those of this run, oldest first.
type installations struct {
	// sweeping is held for reading while a bundle is staged and not yet asked
	// about: a sweep would take it for one that nobody needs.
	sweeping sync.RWMutex

	mu   sync.Mutex
	jobs []*installation
}

type installation struct {
	mu     sync.Mutex
	now    Installation
	told   time.Time
	more   chan struct{} // closed at every change
	cancel context.CancelFunc
}

// openInstaller finishes or undoes what a killed run had begun, and says so to the
// decisions that it was allowed by.
func (h *Host) openInstaller(ctx context.Context) (err error) {
	h.Installer, err = install.New(install.Config{
		Staging: h.Places.Staging(), Plugins: h.Places.Plugins(), Previous: h.Places.Previous(), Info: h.Places.InstallInfo(),
		Home: h.home, Path: h.path.wait, Environ: h.config.Environ, Now: h.config.Now, Logger: h.log,
	})
	if err != nil {
		return err
	}
	h.tidyInstallations(ctx)
	return nil
}

// tidyInstallations removes what no question needs any more, and says what came of the
// decisions that an earlier run carried out. While the seal key is waited for no
// decision counts: then every question would look forgotten, so nothing is removed.
func (h *Host) tidyInstallations(ctx context.Context) {
	needed, unknown := h.Gate.StagedBundles()
	var err error
	if unknown != nil {
		_, err = h.Installer.Mend(ctx)
	} else {
		_, err = h.Installer.Sweep(ctx, needed)
	}
	if err != nil && ctx.Err() == nil {
		h.log.Error("what is staged cannot be cleared", "error", err)
	}
	if unknown != nil {
		return
	}
	if !h.answering.TryLock() {
		return // one may be carried out now: next time
	}
	defer h.answering.Unlock()
	for _, d := range h.Gate.Unfinished() {
		if _, err := h.Gate.BundleDone(ctx, d.ID, h.cameTrue(d)); err != nil {
			h.log.Error("the end of a decision cannot be recorded", "decision", d.ID, "error", err)
		}
	}
}

// cameTrue says whether what a decision allowed is what lies on disk.
func (h *Host) cameTrue(d approvals.Decision) error {
	installed, err := h.Installer.Info(d.Plugin)
	switch {
	case d.Action == approvals.ActUninstall && coded.Of(err) == "not-installed":
		return nil
	case d.Action != approvals.ActUninstall && err == nil && string(installed.Digest) == d.Bundle.Digest:
		return nil
	}
	return &coded.Error{Code: "interrupted", Sentence: "Sallyport ended before it was done", Next: "ask for it again"}
}

// sweepInstallations removes what no question needs any more.
func (h *Host) sweepInstallations() {
	if !h.installations.sweeping.TryLock() {
		return // one is being staged: next time
	}
	defer h.installations.sweeping.Unlock()
	h.tidyInstallations(h.ctx)
}

// Install begins to stage a bundle and returns at once. When it is staged, a
// decision asks whether it may be installed or take the place of what is there.
func (h *Host) Install(source install.Source, by approvals.By) Installation {
	return h.stage(by, carried{}, func(ctx context.Context, progress func(install.Step)) (*install.Staged, error) {
		return h.Installer.Stage(ctx, source, progress)
	})
}

type stager func(ctx context.Context, progress func(install.Step)) (*install.Staged, error)

func (h *Host) stage(by approvals.By, with carried, stage stager) Installation {
	ctx, cancel := context.WithCancel(h.ctx)
	job := &installation{more: make(chan struct{}), cancel: cancel}
	job.now = Installation{ID: "i-" + strings.ToLower(rand.Text()[:12]), State: Staging}
	h.installations.add(job)
	first := job.now
	h.work.Go(func() {
		defer cancel()
		h.installations.sweeping.RLock()
		defer h.installations.sweeping.RUnlock()
		staged, err := stage(ctx, func(step install.Step) { job.step(step) })
		var decision approvals.Decision
		if err == nil {
			decision, err = h.askInstall(ctx, staged, with, by)
		}
		job.end(ctx, decision, staged, err)
		h.Events.add("installation", first.ID, coded.Of(err))
	})
	return first
}

func (all *installations) add(job *installation) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.jobs) >= keptInstallations {
		at := slices.IndexFunc(all.jobs, func(j *installation) bool { return j.look().State != Staging })
		if at >= 0 {
			all.jobs = slices.Delete(all.jobs, at, at+1)
		}
	}
	all.jobs = append(all.jobs, job)
}

func (all *installations) find(id string) (*installation, error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, job := range all.jobs {
		if job.now.ID == id {
			return job, nil
		}
	}
	return nil, &coded.Error{Code: "installation-unknown", Sentence: "there is no such installation", Next: "begin it again: sallyport install SOURCE"}
}

func (j *installation) look() Installation {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.now
}

func (j *installation) step(step install.Step) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if step.Doing == j.now.Step.Doing && time.Since(j.told) < progressEvery {
		return
	}
	j.told = time.Now()
	j.now.Step = step
	j.changed()
}

// changed wakes whoever waits. j.mu is held.
func (j *installation) changed() {
	j.now.Revision++
	close(j.more)
	j.more = make(chan struct{})
}

func (j *installation) end(ctx context.Context, decision approvals.Decision, staged *install.Staged, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case err == nil:
		j.now.State, j.now.Decision, j.now.Warnings = Asked, decision.ID, staged.Warnings
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		j.now.State = Cancelled
	default:
		j.now.State, j.now.Err = Failed, err
	}
	j.changed()
}

// Installation returns one as it is now, once its revision is above after, or when
// ctx ends.
func (h *Host) Installation(ctx context.Context, id string, after int) (Installation, error) {
	job, err := h.installations.find(id)
	if err != nil {
		return Installation{}, err
	}
	for {
		job.mu.Lock()
		now, more := job.now, job.more
		job.mu.Unlock()
		if now.Revision > after || now.State != Staging {
			return now, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return now, nil
		}
	}
}

// CancelInstallation ends one that is being staged; nothing of it stays on disk. One
// that was asked about is answered instead.
func (h *Host) CancelInstallation(id string) (Installation, error) {
	job, err := h.installations.find(id)
	if err != nil {
		return Installation{}, err
	}
	job.cancel()
	return job.look(), nil
}

// askInstall opens the question about a staged bundle. What cannot be asked about is
// thrown away.
func (h *Host) askInstall(ctx context.Context, staged *install.Staged, with carried, by approvals.By) (approvals.Decision, error) {
	action, q, err := h.installQuestion(ctx, staged)
	q.Env, q.Inherit = with.env, with.inherit
	var d approvals.Decision
	if err == nil {
		d, err = h.Gate.AskBundle(ctx, action, q, by)
	}
	if err != nil {
		return d, errors.Join(err, staged.Discard())
	}
	return d, nil
}

func (h *Host) installQuestion(ctx context.Context, staged *install.Staged) (action string, q approvals.BundleQuestion, err error) {
	q = approvals.BundleQuestion{
		Plugin: staged.Plugin.Name, Version: staged.Plugin.Version, Format: staged.Plugin.Format, Digest: string(staged.Digest),
		Source: staged.Origin.Text, Staged: staged.ID, Publisher: staged.Publisher(), Signature: string(staged.Signature.State),
		Files: staged.Files, Bytes: staged.Bytes,
	}
	if staged.Signature.State == signature.Valid {
		q.SignatureSays, q.Vouched = staged.Signature.Sentence, staged.Signature.Publisher.Vouched
	}
	for _, c := range staged.Plugin.Connectors {
		q.Servers = append(q.Servers, c.ID.Server)
	}
	current, err := h.Installer.Info(q.Plugin)
	switch {
	case coded.Of(err) == "not-installed":
		return approvals.ActInstall, q, nil
	case err != nil:
		return "", q, err
	}
	q.Replaces = versionOf(current.Info)
	q.Changes, err = h.countChanges(ctx, current.Dir, staged.Dir)
	return approvals.ActUpdate, q, err
}

func versionOf(info install.Info) *approvals.BundleVersion {
	return &approvals.BundleVersion{Version: info.Version, Digest: string(info.Digest), Publisher: info.Publisher}
}

// countChanges compares two trees; nil where the old one cannot be read, because it
// is gone or damaged.
func (h *Host) countChanges(ctx context.Context, old, now string) (*approvals.FileCounts, error) {
	before, err := artifact.Of(ctx, old, artifact.Options{})
	if err != nil {
		return nil, ctx.Err()
	}
	after, err := artifact.Of(ctx, now, artifact.Options{})
	if err != nil {
		return nil, err
	}
	counts := &approvals.FileCounts{}
	for _, change := range artifact.Compare(before.Leaves, after.Leaves) {
		switch change.Kind {
		case artifact.Added:
			counts.Added++
		case artifact.Removed:
			counts.Removed++
		default:
			counts.Modified++
		}
	}
	return counts, nil
}
