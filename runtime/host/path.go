package host

import (
	"context"
	"runtime"
	"sync"

	"sallyport/internal/coded"
	"sallyport/runtime/env"
)

// sharedPath asks the login shell for the user's PATH once, in the background:
// the first question waits for it, starting does not.
type sharedPath struct {
	once   sync.Once
	config Config
	ctx    context.Context
	done   chan struct{}
	path   string
	err    error
}

func (p *sharedPath) start(ctx context.Context, cfg Config) {
	p.ctx, p.config, p.done = ctx, cfg, make(chan struct{})
}

// wait returns the PATH and asks for it if nobody has yet.
func (p *sharedPath) wait(ctx context.Context) (string, error) {
	p.once.Do(func() { go p.ask() })
	select {
	case <-p.done:
		return p.path, p.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (p *sharedPath) ask() {
	defer close(p.done)
	p.path, p.err = env.UserPath(p.ctx, env.PathConfig{
		Parent: env.ParentOf(runtime.GOOS, p.config.Environ), Home: p.config.Home, Logger: p.config.Logger,
	})
}

// stop waits for an asking that is under way; its context has ended. Whoever comes
// later is told that nobody asks any more.
func (p *sharedPath) stop() {
	if p.done == nil {
		return
	}
	p.once.Do(func() {
		p.err = coded.New("closing", "Sallyport is closing")
		close(p.done)
	})
	<-p.done
}
