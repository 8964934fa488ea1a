package host

import (
	"context"
	"strconv"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/health"
	"sallyport/runtime/plugins"
	"sallyport/runtime/process"
)

const (
	// sweepEvery is how often questions expire and unneeded snapshots go.
	sweepEvery = 5 * time.Second
	// retainEvery is how often the audit is bounded.
	retainEvery = time.Hour
)

// RecheckAll compares every connector with its approval, after a scan.
func (h *Host) RecheckAll(ctx context.Context) {
	for _, id := range h.connectorIDs() {
		if ctx.Err() != nil {
			return
		}
		h.Gate.Recheck(ctx, id)
	}
}

// RunningIDs are the connectors whose servers can be used now.
func (h *Host) RunningIDs() map[plugins.ID]bool {
	ids := map[plugins.ID]bool{}
	for _, info := range h.Pool.Running() {
		ids[info.ID] = true
	}
	return ids
}

// recheckRunning compares what runs with its approval now (spec/approval.md 5.3).
func (h *Host) recheckRunning(ctx context.Context, plugin string) {
	for id := range h.watchedGrants() {
		if plugin == "" || id.Plugin == plugin {
			h.Gate.Recheck(ctx, id)
		}
	}
}

// housekeeping does what has to be done now and then.
func (h *Host) housekeeping() {
	sweep, retain, soon := time.NewTicker(sweepEvery), time.NewTicker(retainEvery), time.NewTimer(retainSoon)
	defer sweep.Stop()
	defer retain.Stop()
	defer soon.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-sweep.C:
			if err := h.Gate.Sweep(h.ctx); err != nil && h.ctx.Err() == nil {
				h.log.Error("sweeping failed", "error", err)
			}
			h.sweepInstallations()
			h.reportGate()
			h.unblock(blockedFor)
			h.reportSecrets()
		case <-retain.C:
			h.retain(h.ctx)
		case <-soon.C:
			h.retain(h.ctx)
		case <-h.retaining:
			h.retain(h.ctx)
		}
	}
}

// reportAudit keeps health in step with the audit's own problems.
func (h *Host) reportAudit() {
	problem := health.Code(coded.Of(h.Audit.Problem()))
	for _, code := range []health.Code{health.AuditUnwritable, health.AuditTruncated, health.AuditBroken} {
		if code == problem {
			h.Health.Set(code, "", nil)
		} else {
			h.Health.Clear(code, "")
		}
	}
}

// reportSweep tells what an earlier run had left behind.
func (h *Host) reportSweep(report process.SweepReport) {
	if n := len(report.Swept); n > 0 {
		h.Health.Set(health.LeftoversEnded, "", health.Args{"count": strconv.Itoa(n)})
	}
	if report.Unreadable != "" {
		h.log.Error("the record of an earlier run cannot be read; its processes were left alone", "problem", report.Unreadable, "keptAs", report.KeptAs)
	}
}
