package mcp

import (
	"context"
	"io"

	"sallyport/runtime/approvals"
	"sallyport/runtime/process"
)

// Starter starts the process that a grant permits.
type Starter interface {
	Start(ctx context.Context, g approvals.Grant) (Child, error)
}

// Processes is the Starter over package process.
func Processes(m *process.Manager) Starter { return processes{m} }

type processes struct{ manager *process.Manager }

func (p processes) Start(ctx context.Context, g approvals.Grant) (Child, error) {
	child, err := p.manager.Start(ctx, g)
	if err != nil {
		return nil, err
	}
	return processChild{child}, nil
}

type processChild struct{ *process.Child }

func (c processChild) Stdout() io.Reader { return c.Child.Stdout() }

func (c processChild) Tail() []string { return c.Stderr().Lines() }

func (c processChild) Stop(ctx context.Context, reason error) error {
	return c.Child.Stop(ctx, reason).Err()
}
