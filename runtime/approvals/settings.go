package approvals

import (
	"context"
	"encoding/json"

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
