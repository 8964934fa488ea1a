package mcp

import (
	"context"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
)

// ProbeStep is how far a first try has come.
type ProbeStep string

// The steps of a first try, in order.
const (
	ProbeStarting  ProbeStep = "starting" // or dialling
	ProbeHandshake ProbeStep = "handshake"
	ProbeListing   ProbeStep = "listing"
	ProbeStopping  ProbeStep = "stopping"
)

// ProbeWatch is told of each step; child is the process once there is one, for what it
// writes to stderr. It must not wait.
type ProbeWatch func(step ProbeStep, child Child)

func (w ProbeWatch) tell(step ProbeStep, child Child) {
	if w != nil {
		w(step, child)
	}
}

// Probe starts a connector under a grant, lists what it offers and stops it: when it
// returns nothing of it is left. Nothing is recorded and nothing is called. watch may
// be nil.
func (p *Pool) Probe(ctx context.Context, g approvals.Grant, watch ProbeWatch) (approvals.Offer, error) {
	return p.probe(ctx, g, watch)
}

func (p *Pool) probe(ctx context.Context, g permit, watch ProbeWatch) (approvals.Offer, error) {
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
	s, err := p.open(ctx, g, watch)
	if err != nil {
		return approvals.Offer{}, err
	}
	watch.tell(ProbeStopping, s.conn.child)
	s.conn.Close(coded.New("probed", "the first try is over"))
	<-s.conn.Gone()
	return s.Offer(), nil
}
