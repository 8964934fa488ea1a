package approvals

import (
	"context"
	"fmt"

	"sallyport/internal/coded"
	"sallyport/runtime/audit"
)

// AcceptRollback makes the store as it is count again after it was found put
// back, or its key or head lost: an operator's explicit word (spec/approval.md
// 5.4). A store that counts is left alone ("nothing-to-accept"). Records whose own seals
// do not verify are kept aside and count no more than before. While the keyring is
// waited for, the loss of the key in it is accepted with keyLost only.
func (g *Gate) AcceptRollback(ctx context.Context, keyLost bool, by By) error {
	head, _ := g.keeper.state()
	if err := by.mayAnswer(head.GUIOnly); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	fault := g.docs.fault
	if fault == nil {
		return &coded.Error{Code: "nothing-to-accept", Sentence: "the store counts already"}
	}
	if fault.Code == codeUnavailable && !keyLost {
		return fault
	}
	for id := range g.lives {
		g.endLife(id, rolledBack("the approvals are being reviewed", nil))
	}
	if err := g.accept(ctx, by); err != nil {
		// Not on record, so not accepted.
		g.docs.fault = fault
		g.keeper.doubt(fault)
		return fmt.Errorf("cannot accept the store: %w", err)
	}
	g.takeOver()
	if err := g.settleProbes(ctx); err != nil {
		return err
	}
	if err := g.interruptCalls(ctx); err != nil {
		return err
	}
	g.tell(Event{Kind: "settings", Code: "accept-store"})
	if err := g.cfg.Audit.Reseal(ctx); err != nil {
		return fmt.Errorf("the store is accepted, but the audit's head is not sealed: %w", err)
	}
	return nil
}

// accept makes key and head believed, judges every row anew, sets aside what does
// not verify and writes the list above every epoch that there was. g.mu is held.
func (g *Gate) accept(ctx context.Context, by By) error {
	if err := g.keeper.accept(g.docs.epoch); err != nil {
		return err
	}
	head, _ := g.keeper.state()
	g.docs.fault, g.docs.epoch = nil, max(g.docs.epoch, head.Epoch)
	list, _ := g.docs.storedList()
	g.docs.judgeRows(list)
	t := newTransaction()
	for key, row := range g.docs.rows {
		if row.problem != nil && row.problem.Code == "approval-tampered" {
			t.batch.remove(key.kind, key.id)
		}
	}
	t.batch.remove(settingKind, consoleInBrowser) // also so that the list is written in any case
	if head.GUIOnly {
		if err := t.batch.put(settingKind, answerOnlyInGUI, setting{schemaVersion, true}); err != nil {
			return err
		}
	}
	t.audit = append(t.audit, audit.Record{Action: audit.Setting, Result: audit.OK, Target: "accept-store", Actor: by.User, Via: by.Via})
	return g.commit(ctx, t)
}
