package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/plugins"
	"sallyport/runtime/process"
)

// watch ends a session with its grant, or when nobody uses it, and accounts for
// its end.
func (p *Pool) watch(s *Session) {
	defer close(s.over)
	var idle <-chan time.Time
	if p.config.IdleAfter != nil {
		ticker := time.NewTicker(idleLook(p.config.IdleAfter()))
		defer ticker.Stop()
		idle = ticker.C
	}
	for over := false; !over; {
		select {
		case <-s.permit.Done():
			s.conn.Close(s.permit.Err())
			over = true
		case <-idle:
			limit, unused := p.config.IdleAfter(), p.config.Now().Sub(time.Unix(0, s.used.Load()))
			if limit > 0 && s.conn.InFlight() == 0 && unused >= limit {
				s.conn.Close(coded.New("idle", "nobody used the server for a while"))
				over = true
			}
		case <-s.conn.Done():
			over = true
		}
	}
	<-s.conn.Gone()
	cause := s.conn.Cause()
	var fault *ProtocolError
	if errors.As(cause, &fault) && fault.Code == Closed {
		p.tell(Event{Kind: Stopped, ID: s.id, PID: s.pid, Err: cause})
		return
	}
	p.crashed(s.id, s.pid, s.since, cause)
}

// idleLook is the time between two looks at whether a server is used: short enough for
// a limit of d, and for another limit that is chosen meanwhile.
func idleLook(d time.Duration) time.Duration {
	if d <= 0 {
		return time.Minute
	}
	return min(max(d/4, time.Millisecond), time.Minute)
}

// crashed holds the next start back, or parks the connector.
func (p *Pool) crashed(id plugins.ID, pid int, since time.Time, cause error) {
	now := p.config.Now()
	uptime := now.Sub(since)
	p.mu.Lock()
	s := p.slots[id]
	if uptime >= process.SteadyUptime {
		s.failures = 0
	}
	s.failures++
	delay, parked := process.Backoff(s.failures, uptime)
	s.retry = now.Add(delay)
	event := Event{Kind: Crashed, ID: id, PID: pid, Err: cause, Retry: s.retry}
	if parked {
		s.parked = &coded.Error{Code: "parked", Sentence: "the server failed too often and is not started any more",
			Next: "look at its log, then start it again", Err: cause}
		event = Event{Kind: ParkedEvent, ID: id, PID: pid, Err: s.parked}
	}
	p.mu.Unlock()
	p.tell(event)
}

// Unpark lets a connector be started again at once, its failures forgotten.
func (p *Pool) Unpark(id plugins.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.slots[id]; s != nil {
		s.failures, s.retry, s.parked = 0, time.Time{}, nil
	}
}

// Stop ends the session of a connector, or the start under way; calls in flight
// fail with reason. It returns when the process tree is gone, or with ctx.
func (p *Pool) Stop(ctx context.Context, id plugins.ID, reason error) error {
	if reason == nil {
		reason = errStopped
	}
	p.mu.Lock()
	var try *attempt
	var session *Session
	if s := p.slots[id]; s != nil {
		try, session = s.attempt, s.session
	}
	p.mu.Unlock()
	if try != nil {
		try.cancel(reason)
		select {
		case <-try.done:
			session = try.session
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if session == nil {
		return nil
	}
	session.conn.Close(reason)
	select {
	case <-session.over:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cannot wait for %s to stop: %w", id, context.Cause(ctx))
	}
}

// Close stops everything. Nothing starts any more.
func (p *Pool) Close(ctx context.Context) error {
	reason := coded.New("host-closing", "Sallyport is closing")
	p.mu.Lock()
	p.closed = true
	var ids []plugins.ID
	for id := range p.slots {
		ids = append(ids, id)
	}
	p.mu.Unlock()
	p.cancel(reason)
	errs := make([]error, len(ids))
	var stops sync.WaitGroup
	for i, id := range ids {
		stops.Go(func() { errs[i] = p.Stop(ctx, id, reason) })
	}
	stops.Wait()
	done := make(chan struct{})
	go func() { p.tasks.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		errs = append(errs, fmt.Errorf("cannot wait for the sessions to end: %w", context.Cause(ctx)))
	}
	return errors.Join(errs...)
}
