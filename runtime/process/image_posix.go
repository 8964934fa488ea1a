//go:build !windows

package process

import (
	"context"
	"os"

	"sallyport/runtime/approvals"
	"sallyport/runtime/env"
)

// compare refuses a start whose image is not the approved one
// (spec/approval.md 5.2a).
//
// Where the child could not be held at its exec, a script or a version
// manager's shim may have become another program already, as it is meant to.
// The system then cannot tell what ran first; that the approved files are still
// on disk as they were approved is what remains to be checked.
func (m *Manager) compare(ctx context.Context, l approvals.Launch, b born, h *hold) error {
	images := expected(l)
	for {
		n, err := h.look(ctx, b.pid, images)
		if err != nil {
			return err
		}
		if n < 0 && !h.traced && becomesAnother(l) {
			return onDisk(ctx, l, images)
		}
		if n < 0 {
			return executableChanged(l)
		}
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

// look finds out which of the images pid executes now; -1 is none of them, or
// one that cannot be read.
func (h *hold) look(ctx context.Context, pid int, images []env.Executable) (int, error) {
	i, path, err := imageOf(pid)
	if err != nil {
		return -1, nil
	}
	defer i.file.Close()
	h.image = path
	return i.which(ctx, images)
}

func becomesAnother(l approvals.Launch) bool {
	return len(l.Executable.Interpreters) > 0 || l.Executable.Shim != ""
}

func onDisk(ctx context.Context, l approvals.Launch, images []env.Executable) error {
	for _, x := range images {
		f, err := os.Open(x.Real)
		if err != nil {
			return executableChanged(l)
		}
		i := &image{file: f}
		same, err := i.is(ctx, x)
		f.Close()
		if err != nil {
			return err
		}
		if !same {
			return executableChanged(l)
		}
	}
	return nil
}
