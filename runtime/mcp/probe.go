package mcp

import (
	"context"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
)

// Probe starts a connector under a grant, lists what it offers and stops it.
// Nothing is recorded and nothing is called.
func (p *Pool) Probe(ctx context.Context, g approvals.Grant) (approvals.Offer, error) {
	return p.probe(ctx, g)
}

func (p *Pool) probe(ctx context.Context, g permit) (approvals.Offer, error) {
	if err := g.Err(); err != nil {
		return approvals.Offer{}, err
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return approvals.Offer{}, context.Cause(p.ctx)
	}
	p.tasks.Add(1)
	p.mu.Unlock()
	defer p.tasks.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.ctx, func() { cancel(context.Cause(p.ctx)) })()
	s, err := p.open(ctx, g)
	if err != nil {
		return approvals.Offer{}, err
	}
	s.conn.Close(coded.New("probed", "the first try is over"))
	<-s.conn.Gone()
	return s.Offer(), nil
}
