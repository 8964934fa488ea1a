//go:build !windows

package cli

import (
	"context"
	"os"
	"time"
)

// watchParent calls ended when the process that started this one is gone: its
// children then belong to another parent.
func watchParent(ctx context.Context, ended func()) {
	parent := os.Getppid()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if os.Getppid() != parent {
				ended()
				return
			}
		}
	}
}
