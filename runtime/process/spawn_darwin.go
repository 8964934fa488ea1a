package process

import (
	"context"
	"syscall"
)

// processAttributes: a session of its own. macOS has no parent-death signal;
// the end of stdin and the next Sweep take its place.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func (m *Manager) awaitExec(ctx context.Context, _ born, words *shimWords) (hold, error) {
	select {
	case <-words.end:
	case <-ctx.Done():
		return hold{}, ctx.Err()
	}
	_, err := words.heard()
	return hold{}, err
}

func (m *Manager) step(context.Context, born) (hold, error) { return hold{}, nil }

func (m *Manager) release(born, hold) error { return nil }
