package mcp

import (
	"context"
	"fmt"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/plugins"
)

// Session returns the running session of a connector and starts it if there is
// none. Everybody who asks meanwhile gets the same one. The error is the gate's
// refusal, or why it cannot start; parked and restarting are those of the pool.
func (p *Pool) Session(ctx context.Context, id plugins.ID) (*Session, error) {
	for {
		session, try, hold, err := p.claim(id)
		switch {
		case err != nil:
			return nil, err
		case session != nil:
			session.touch()
			return session, nil
		case try == nil:
			if err := hold.wait(ctx); err != nil {
				return nil, err
			}
			continue
		}
		select {
		case <-try.done:
			return try.session, try.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// hold is what a start has to wait for: a session before it that is not over yet,
// or the time.
type hold struct {
	over  <-chan struct{}
	delay time.Duration
}

func (h hold) wait(ctx context.Context) error {
	var late <-chan time.Time
	if h.over == nil {
		timer := time.NewTimer(h.delay)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-h.over:
		return nil
	case <-late:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// claim finds the session, joins the start under way, begins one, or says what to
// wait for. A session must be gone and accounted for before the next one starts:
// two processes of a connector would share its data folder, and a crash that is
// not counted yet would not be held back.
func (p *Pool) claim(id plugins.ID) (*Session, *attempt, hold, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, hold{}, context.Cause(p.ctx)
	}
	s := p.slots[id]
	if s == nil {
		s = &slot{}
		p.slots[id] = s
	}
	wait := s.retry.Sub(p.config.Now())
	switch {
	case s.attempt != nil:
		return nil, s.attempt, hold{}, nil
	case s.session != nil && s.session.Err() == nil:
		return s.session, nil, hold{}, nil
	case s.session != nil && !s.session.isOver():
		return nil, nil, hold{over: s.session.over}, nil
	case s.parked != nil:
		return nil, nil, hold{}, s.parked
	case wait > patience:
		return nil, nil, hold{}, &coded.Error{Code: "restarting",
			Sentence: fmt.Sprintf("the server failed and is tried again in %d seconds", int(wait.Seconds())+1), Next: "try again later"}
	case wait > 0:
		return nil, nil, hold{delay: wait}, nil
	}
	ctx, cancel := context.WithCancelCause(p.ctx)
	try := &attempt{cancel: cancel, done: make(chan struct{})}
	s.attempt = try
	p.tasks.Go(func() { p.attempt(ctx, id, try) })
	return nil, try, hold{}, nil
}

// attempt is a start that everybody who needs it waits for.
type attempt struct {
	cancel  context.CancelCauseFunc
	done    chan struct{}
	session *Session
	err     error
}
