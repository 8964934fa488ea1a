//go:build !windows

package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// follow hands on the terminal's size, and leaves when the terminal is closed.
func (v *viewer) follow(ctx context.Context, leave context.CancelCauseFunc) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGHUP)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case s := <-signals:
				if s == syscall.SIGHUP {
					leave(errors.New("the terminal has ended"))
					return
				}
				v.resized(ctx)
			}
		}
	}()
	return func() { signal.Stop(signals) }
}
