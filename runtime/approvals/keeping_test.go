package approvals_test

import (
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/approvals/approvalstest"
	"sallyport/runtime/audit"
)

// TestHowMuchOfTheAuditIsKept: 90 days and a million records until somebody chooses; the
// operator chooses, within bounds, and it is on record. Where only the window answers,
// only the window has less kept.
func TestHowMuchOfTheAuditIsKept(t *testing.T) {
	r := approvalstest.New(t)
	want := func(days, records int) {
		t.Helper()
		if k, err := r.Gate.AuditKeeping(); err != nil || k.Days != days || k.Records != records {
			t.Errorf("kept is %+v (%v), not %d days and %d records", k, err, days, records)
		}
	}
	want(90, 1_000_000)
	window := approvals.By{User: operator.User, Via: approvals.ViaGUI}
	for _, row := range []struct {
		name          string
		days, records int
		by            approvals.By
		code          string
	}{
		{"less", 30, 50_000, operator, ""},
		{"too few days", 6, 50_000, operator, "retention-invalid"},
		{"too many days", 3651, 50_000, operator, "retention-invalid"},
		{"too few records", 30, 9_999, operator, "retention-invalid"},
		{"nothing at all", 0, 0, operator, "retention-invalid"},
		{"by a companion", 365, 50_000, approvals.By{User: "x", Via: "companion"}, "answer-not-allowed"},
		{"by an agent", 365, 50_000, approvals.By{User: "x", Via: "agent"}, "answer-not-allowed"},
	} {
		if err := r.Gate.SetAuditKeeping(t.Context(), approvals.Keeping{Days: row.days, Records: row.records}, row.by); coded.Of(err) != row.code {
			t.Errorf("%s: %v", row.name, err)
		}
	}
	want(30, 50_000)
	if err := r.Gate.SetAnswerOnlyInGUI(t.Context(), true, window); err != nil {
		t.Fatal(err)
	}
	if err := r.Gate.SetAuditKeeping(t.Context(), approvals.Keeping{Days: 29, Records: 50_000}, operator); coded.Of(err) != "answer-only-in-gui" {
		t.Errorf("less by the command line, where only the window answers: %v", err)
	}
	if err := r.Gate.SetAuditKeeping(t.Context(), approvals.Keeping{Days: 31, Records: 50_000}, operator); err != nil {
		t.Errorf("more by the command line: %v", err)
	}
	if err := r.Gate.SetAuditKeeping(t.Context(), approvals.Keeping{Days: 10, Records: 50_000}, window); err != nil {
		t.Errorf("less by the window: %v", err)
	}
	want(10, 50_000)
	page, err := r.Audit.Query(t.Context(), audit.Filter{Action: audit.Setting})
	if err != nil || len(page.Records) != 4 || page.Records[0].Target != "audit-retention 10 days, 50000 records" {
		t.Errorf("on record: %+v (%v)", page.Records, err)
	}
}
