package cli

import (
	"context"
	"time"
)

// follow hands on the terminal's size, of whose change Windows tells nobody.
func (v *viewer) follow(ctx context.Context, _ context.CancelCauseFunc) (stop func()) {
	ticker := time.NewTicker(500 * time.Millisecond)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				v.resized(ctx)
			}
		}
	}()
	return ticker.Stop
}
