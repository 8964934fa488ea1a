//go:build !windows

package process

import (
	"context"

	"sallyport/runtime/approvals"
)

// compare ends a start whose image is not the approved one
// (spec/approval.md 5.2a).
func (m *Manager) compare(ctx context.Context, l approvals.Launch, b born, h *hold) error {
	images := expected(l)
	for {
		n, path, err := compareOnce(ctx, b.pid, l, h)
		if err != nil {
			return err
		}
		if n < 0 {
			return executableChanged(l)
		}
		h.image = path
		if !passing(images, n) || !h.traced {
			return nil
		}
		next, err := m.step(ctx, b)
		if next.reaped {
			h.reaped, h.traced = true, false
		}
		if err != nil {
			return err
		}
	}
}

func compareOnce(ctx context.Context, pid int, l approvals.Launch, _ *hold) (int, string, error) {
	i, path, err := imageOf(pid)
	if err != nil {
		return -1, "", executableChanged(l)
	}
	defer i.file.Close()
	n, err := i.which(ctx, expected(l))
	return n, path, err
}
