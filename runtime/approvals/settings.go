package approvals

import (
	"context"
	"encoding/json"
	"fmt"

	"sallyport/internal/coded"
	"sallyport/runtime/audit"
)

const answerOnlyInGUI = "answer-only-in-gui"

type setting struct {
	Schema int  `json:"schema"`
	On     bool `json:"on"`
}

// AnswerOnlyInGUI reports whether only the window may answer (spec/approval.md
// 4.5). A setting that does not verify counts as on: the strict reading.
func (g *Gate) AnswerOnlyInGUI() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.docs.guiOnly()
}

// guiOnly is also kept in the sealed head, so that an older store, or none, does
// not loosen it.
func (d *documents) guiOnly() bool {
	body, ok, problem := d.get(settingKind, answerOnlyInGUI)
	if problem != nil {
		head, _ := d.keeper.state()
		return head.GUIOnly || d.fault == nil
	}
	var s setting
	if ok {
		return json.Unmarshal(body, &s) != nil || s.On
	}
	if d.fault != nil {
		head, _ := d.keeper.state()
		return head.GUIOnly
	}
	return false
}

// SetAnswerOnlyInGUI changes the setting. Only the window may, in either
// direction.
func (g *Gate) SetAnswerOnlyInGUI(ctx context.Context, on bool, by By) error {
	if by.Via != ViaGUI {
		return &coded.Error{Code: "answer-only-in-gui", Sentence: "only the window changes this setting", Next: "open Sallyport's window"}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	t := newTransaction()
	if err := t.batch.put(settingKind, answerOnlyInGUI, setting{schemaVersion, on}); err != nil {
		return err
	}
	t.audit = append(t.audit, audit.Record{Action: audit.Setting, Result: audit.OK, Target: answerOnlyInGUI, Actor: by.User, Via: by.Via})
	if err := g.commit(ctx, t); err != nil {
		return err
	}
	g.tell(Event{Kind: "settings", Code: answerOnlyInGUI})
	return nil
}

const auditRetention = "audit-retention"

// Keeping is how much of the audit is kept: what is older than Days, or beyond Records, may
// be removed (spec/audit.md 5).
type Keeping struct {
	Schema  int `json:"schema"`
	Days    int `json:"days"`
	Records int `json:"records"`
}

// The bounds of Keeping, and what holds where nobody chose.
const (
	LeastDays, UsualDays, MostDays          = 7, 90, 3650
	LeastRecords, UsualRecords, MostRecords = 10_000, 1_000_000, 10_000_000
)

// AuditKeeping returns how much of the audit is kept. While that cannot be verified it is
// an error, and nothing may be removed.
func (g *Gate) AuditKeeping() (Keeping, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.docs.fault != nil {
		return Keeping{}, g.docs.fault
	}
	body, ok, problem := g.docs.get(settingKind, auditRetention)
	if problem != nil {
		return Keeping{}, problem
	}
	k := Keeping{schemaVersion, UsualDays, UsualRecords}
	if !ok {
		return k, nil
	}
	if err := json.Unmarshal(body, &k); err != nil {
		return Keeping{}, err
	}
	return k, k.check()
}

// SetAuditKeeping changes it. Where only the window may answer, only the window may have
// less kept than now.
func (g *Gate) SetAuditKeeping(ctx context.Context, k Keeping, by By) error {
	k.Schema = schemaVersion
	if err := k.check(); err != nil {
		return err
	}
	now, err := g.AuditKeeping()
	if err != nil {
		return err
	}
	less := k.Days < now.Days || k.Records < now.Records
	if err := by.mayAnswer(less && g.AnswerOnlyInGUI()); err != nil {
		return err
	}
	if k == now {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	t := newTransaction()
	if err := t.batch.put(settingKind, auditRetention, k); err != nil {
		return err
	}
	t.audit = append(t.audit, audit.Record{Action: audit.Setting, Result: audit.OK, Actor: by.User, Via: by.Via,
		Target: fmt.Sprintf("%s %d days, %d records", auditRetention, k.Days, k.Records)})
	if err := g.commit(ctx, t); err != nil {
		return err
	}
	g.tell(Event{Kind: "settings", Code: auditRetention})
	return nil
}

func (k Keeping) check() error {
	if k.Days < LeastDays || k.Days > MostDays || k.Records < LeastRecords || k.Records > MostRecords {
		return &coded.Error{Code: "retention-invalid", Sentence: fmt.Sprintf("the audit is kept for %d to %d days and for %d to %d records", LeastDays, MostDays, LeastRecords, MostRecords),
			Next: "choose numbers between these"}
	}
	return nil
}
