package cli

import (
	"context"
	"io"
)

// withParent returns a context that ends when in closes or the parent process
// dies, whichever is noticed first (spec/local-api.md 9).
func withParent(ctx context.Context, in io.Reader) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in) // its end is what matters
		cancel()
	}()
	go watchParent(ctx, cancel)
	return ctx, cancel
}
