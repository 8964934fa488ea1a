package host

import (
	"context"
	"time"

	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
)

// retainSoon is how long after its start a host bounds the audit first: one that never
// runs for an hour would not do it at all.
const retainSoon = 2 * time.Minute

// SetAuditKeeping changes how much of the audit is kept. A running host removes what is
// beyond it soon, whole segments at a time.
func (h *Host) SetAuditKeeping(ctx context.Context, k approvals.Keeping, by approvals.By) error {
	if err := h.Gate.SetAuditKeeping(ctx, k, by); err != nil {
		return err
	}
	select {
	case h.retaining <- struct{}{}:
	default: // it is about to
	}
	return nil
}

// retain bounds the audit by the setting. Where the setting does not verify, nothing is
// removed.
func (h *Host) retain(ctx context.Context) {
	k, err := h.Gate.AuditKeeping()
	if err == nil {
		h.Audit.SetPolicy(audit.Retention{MaxAge: time.Duration(k.Days) * 24 * time.Hour, MaxRecords: uint64(k.Records)})
		err = h.Audit.Retain(ctx)
	}
	if err != nil && ctx.Err() == nil {
		h.log.Error("bounding the audit failed", "error", err)
	}
}
