package approvals

import (
	"context"

	"sallyport/internal/coded"
	"sallyport/runtime/audit"
	"sallyport/runtime/plugins"
)

// Park records that a connector crashed too often, until Unpark.
func (g *Gate) Park(ctx context.Context, id plugins.ID, why *coded.Error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := newTransaction()
	record := g.auditOf(audit.Park, audit.OK, id, By{"", ViaSallyport})
	record.Reason = why.Code
	t.audit = append(t.audit, record)
	if err := g.commit(ctx, t); err != nil {
		return err
	}
	g.setTrouble(id, &trouble{Parked, why})
	return nil
}

// Block records that a secret, the keyring or a sign-in is missing, until Unpark.
func (g *Gate) Block(id plugins.ID, why *coded.Error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t := g.trouble[id]; t != nil && t.state == Blocked && t.why.Code == why.Code {
		return // each of many calls may find the same
	}
	g.setTrouble(id, &trouble{Blocked, why})
}

// Unpark ends Park and Block.
func (g *Gate) Unpark(id plugins.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.trouble[id] != nil {
		g.setTrouble(id, nil)
	}
}

func (g *Gate) setTrouble(id plugins.ID, t *trouble) {
	code := ""
	if t == nil {
		delete(g.trouble, id)
	} else {
		g.trouble[id] = t
		code = t.why.Code
	}
	g.tell(Event{"connector", id, code})
}
