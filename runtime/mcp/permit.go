package mcp

import (
	"context"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/plugins"
)

// Gate is what a pool asks before a start and before a call; *approvals.Gate.
type Gate interface {
	Grant(ctx context.Context, id plugins.ID) (approvals.Grant, error)
	Live(g approvals.Grant, offer approvals.Offer) []approvals.ToolState
	CallGrant(ctx context.Context, g approvals.Grant, tool, client string) (approvals.CallGrant, error)
}

// permit is approvals.Grant as this package uses it. Every exported function takes
// the Grant itself; only this package's own tests put something else in its place,
// because nobody but approvals can make one.
type permit interface {
	ID() plugins.ID
	Identity() approvals.Identity
	Err() error
	Done() <-chan struct{}
	Probe() bool
	Launch() (approvals.Launch, error)
}

// guard is Gate and Starter in terms of permits.
type guard interface {
	grant(ctx context.Context, id plugins.ID) (permit, error)
	live(p permit, offer approvals.Offer) []approvals.ToolState
	mayCall(ctx context.Context, p permit, tool, client string) error
	mayRefer(p permit, about referent) error
	start(ctx context.Context, p permit) (Child, error)
}

type gateGuard struct {
	gate      Gate
	processes Starter
}

func (g gateGuard) grant(ctx context.Context, id plugins.ID) (permit, error) {
	granted, err := g.gate.Grant(ctx, id)
	if err != nil {
		return nil, err
	}
	return granted, granted.Err()
}

func (g gateGuard) live(p permit, offer approvals.Offer) []approvals.ToolState {
	return g.gate.Live(p.(approvals.Grant), offer)
}

// mayCall asks again at the moment of the call: the definition may have changed
// since the caller asked.
func (g gateGuard) mayCall(ctx context.Context, p permit, tool, client string) error {
	granted, err := g.gate.CallGrant(ctx, p.(approvals.Grant), tool, client)
	if err != nil {
		return err
	}
	return granted.Err()
}

// mayRefer asks whether a prompt or template is as it was pinned. A URI that is no
// template names a resource: those come and go while a server runs.
func (g gateGuard) mayRefer(p permit, about referent) error {
	granted := p.(approvals.Grant)
	if about.prompt {
		return granted.Prompt(about.name)
	}
	if err := granted.Template(about.name); coded.Of(err) != "tool-missing" {
		return err
	}
	return nil
}

func (g gateGuard) start(ctx context.Context, p permit) (Child, error) {
	return g.processes.Start(ctx, p.(approvals.Grant))
}

func noGrant(sentence string) error { return coded.New("no-grant", sentence) }
