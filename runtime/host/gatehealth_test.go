package host

import (
	"maps"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/health"
)

func TestWhichSealedRecordsAreAMatterOfHealth(t *testing.T) {
	tampered := gateItem{health.ApprovalTampered, "approval/demo/main"}
	for code, want := range map[string]map[gateItem]bool{
		"approval-tampered":    {tampered: true},
		"approval-rolled-back": {{health.ApprovalRolledBack, ""}: true},
		"seal-key-missing":     {{health.SealKeyUnreadable, ""}: true},
		"seal-key-damaged":     {{health.SealKeyUnreadable, ""}: true},
		"legacy-approval":      {},
		"approval-version":     {},
	} {
		problem := &coded.Error{Code: code, Path: tampered.subject}
		if got := gateItems([]*coded.Error{problem, problem}); !maps.Equal(got, want) {
			t.Errorf("%s: %v", code, got)
		}
	}
}
