package host

import (
	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/health"
)

// gateItem is one health item about sealed records.
type gateItem struct {
	code    health.Code
	subject string // KIND/ID of the record; empty where it is about all of them
}

// gateItems says which sealed records that do not count are a matter of health.
// One from before digests, or of another version, is none: nothing is wrong with
// the installation, and the connector's own state asks for what is to be done.
func gateItems(problems []*coded.Error) map[gateItem]bool {
	items := map[gateItem]bool{}
	for _, problem := range problems {
		switch problem.Code {
		case "legacy-approval", "approval-version":
		case "seal-key-missing", "seal-key-damaged":
			items[gateItem{health.SealKeyUnreadable, ""}] = true
		case string(health.ApprovalTampered):
			items[gateItem{health.ApprovalTampered, problem.Path}] = true
		default:
			items[gateItem{health.Code(problem.Code), ""}] = true
		}
	}
	return items
}

// reportGate keeps health in step with sealed records that do not count: what was
// mended or accepted is cleared, and what still stands keeps its time.
func (h *Host) reportGate() {
	now := gateItems(h.Gate.Problems())
	h.gateItems.Lock()
	defer h.gateItems.Unlock()
	for item := range h.gateItems.reported {
		if !now[item] {
			h.Health.Clear(item.code, item.subject)
		}
	}
	for item := range now {
		h.Health.Set(item.code, item.subject, health.Args{"plugin": item.subject})
	}
	h.gateItems.reported = now
	if h.Gate.KeyPlace() == approvals.KeyInFile {
		h.Health.Set(health.SealKeyFile, "", nil)
	} else {
		h.Health.Clear(health.SealKeyFile, "")
	}
	h.reportAudit()
}
