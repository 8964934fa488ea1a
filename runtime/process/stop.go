package process

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sallyport/internal/coded"
)

// Step is one thing that was done to end a child.
type Step struct {
	What string    `json:"what"` // "close stdin", "hang up", "terminate", "kill", "kill escaped", "terminate rest", "kill rest"
	At   time.Time `json:"at"`
	PIDs []int     `json:"pids,omitempty"` // whom it concerned besides the group
}

// Report is how a child was ended.
type Report struct {
	Reason error
	Steps  []Step
	Exit   Exit
	// Gone is true when nothing of the tree is left.
	Gone bool
	// Left are processes that outlived even the kill (in the kernel, on a dead disk).
	Left []int
}

// Err is nil when nothing is left, else stop-incomplete.
func (r Report) Err() error {
	if r.Gone {
		return nil
	}
	return coded.New("stop-incomplete", fmt.Sprintf("%d processes could not be ended", len(r.Left)))
}

// stopping is the part of a Child that is about ending it.
type stopping struct {
	once   sync.Once
	kill   sync.Once
	mu     sync.Mutex
	reason error
	steps  []Step
}

func (s *stopping) note(at time.Time, what string, pids []int) {
	s.mu.Lock()
	s.steps = append(s.steps, Step{What: what, At: at, PIDs: pids})
	s.mu.Unlock()
}

func (s *stopping) report(c *Child) Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Report{Reason: s.reason, Steps: append([]Step(nil), s.steps...), Exit: c.Exit()}
	if r.Gone = closed(c.gone); !r.Gone {
		r.Left = append([]int{c.pid}, c.tree.rest(c.manager)...)
	}
	return r
}

// Stop ends the whole tree: it closes stdin or hangs up the terminal, waits 2 s, terminates the group,
// waits 2 s, kills everything that is left, and is back within 5 s
// (spec/child-environment.md 7). The first call does it, with its reason; others
// wait for the same end. When ctx ends, the waits in between are skipped.
func (c *Child) Stop(ctx context.Context, reason error) Report {
	c.stop.once.Do(func() {
		if closed(c.gone) {
			return
		}
		c.stop.mu.Lock()
		c.stop.reason = reason
		c.stop.mu.Unlock()
		c.manager.tasks.Go(func() { c.escalate(ctx) })
	})
	select {
	case <-c.gone:
	case <-time.After(eofWait + termWait + killWait):
	}
	return c.stop.report(c)
}

func (c *Child) escalate(ctx context.Context) {
	if c.terminal != nil {
		c.note("hang up", nil)
		_ = c.terminal.Close() // a second time, where whoever reads it has closed it
	} else {
		c.note("close stdin", nil)
		c.stdin.Close()
	}
	if c.goneWithin(ctx, eofWait) {
		return
	}
	c.note("terminate", nil)
	c.tree.terminate()
	if c.goneWithin(ctx, termWait) {
		return
	}
	c.Kill()
}

// Kill ends the whole tree at once, for faults of the protocol. It may be
// called at any time and more than once; it does not wait for the end.
func (c *Child) Kill() { c.stop.kill.Do(c.killAll) }

func (c *Child) killAll() {
	if closed(c.gone) {
		return
	}
	escaped := c.tree.escaped(c.manager)
	c.note("kill", nil)
	c.tree.kill()
	if len(escaped) > 0 {
		c.note("kill escaped", escaped)
		killEach(escaped)
	}
}

// clear ends what is left of the tree once its leader has ended. The leader is
// a zombie meanwhile, so that its number, and the group's, cannot be given away.
func (c *Child) clear() {
	left := c.left()
	if len(left) == 0 {
		return
	}
	if c.Reason() == nil { // one that is over its budget has no time to breed
		c.note("terminate rest", left)
		c.tree.terminate()
		for deadline := time.Now().Add(orphanWait); len(left) > 0 && time.Now().Before(deadline); left = c.left() {
			time.Sleep(10 * time.Millisecond)
		}
	}
	if left = c.killRest(left); len(left) > 0 {
		c.manager.log.Error("processes of a connector could not be ended", "connector", c.id.String(), "pids", left)
	}
}

// killRest kills until nobody is left. Whoever starts others faster than they can be
// listed is followed for longer: each kill takes one away that would have.
func (c *Child) killRest(left []int) []int {
	known, last := map[int]bool{}, time.Now().Add(breedWait)
	for deadline := time.Now().Add(killWait); len(left) > 0 && time.Now().Before(deadline); left = c.quiet() {
		c.tree.kill()
		killEach(left)
		fresh := false
		for _, pid := range left {
			fresh = fresh || !known[pid]
			known[pid] = true
		}
		if !fresh {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		c.note("kill rest", left)
		if deadline = time.Now().Add(killWait); deadline.After(last) {
			deadline = last
		}
	}
	return left
}

// quiet returns who is left as soon as anybody is, and nobody only after looking for
// a while: a process that is just becoming another program has no environment to be
// known by.
func (c *Child) quiet() []int {
	for range quietLooks {
		if left := c.left(); len(left) > 0 {
			return left
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// left looks again before it says that nobody is left: a list of processes is
// not taken at one instant, and one that is just losing its parent may be missed.
func (c *Child) left() []int {
	left := c.tree.rest(c.manager)
	if len(left) == 0 {
		left = c.tree.rest(c.manager)
	}
	return left
}

func (c *Child) note(what string, pids []int) { c.stop.note(c.manager.config.Now(), what, pids) }

func (c *Child) goneWithin(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.gone:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
