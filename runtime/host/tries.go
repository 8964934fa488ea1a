package host

import (
	"context"
	"slices"
	"sync"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/mcp"
)

const (
	// keptTries is how many that are over can still be looked up.
	keptTries = 20
	// tailEvery is how often a try that is watched is asked what it has written.
	tailEvery = 200 * time.Millisecond
	// shownLines and shownBytes bound what is shown of it.
	shownLines = 200
	shownBytes = 16 << 10
)

// Checking is the first step of a try: the files are compared with what was allowed.
// Those of mcp.ProbeStep follow.
const Checking = "checking"

// Try is the first try of a connector that was allowed to run: what it is doing, since
// when, and the end of its error output, which is the plugin's text. It lives in memory;
// what comes of it is in the decision.
type Try struct {
	Decision string
	Revision int // grows with every change
	Steps    []TryStep
	Ms       int64 // so far
	Over     bool
	Err      error // why it came to nothing
	Stderr   []string
	LeftOut  bool // there was more than Stderr has
}

// TryStep is one step of a try and how long it took, or has taken so far.
type TryStep struct {
	Doing string
	Ms    int64
}

// tries are those of this run, oldest first.
type tries struct {
	mu  sync.Mutex
	all []*try
}

type try struct {
	decision string
	ctx      context.Context // ends with the try, with the host, or by cancel
	cancel   context.CancelCauseFunc
	now      func() time.Time
	done     chan struct{} // closed when it is over

	mu       sync.Mutex
	steps    []begun
	child    mcp.Child
	over     time.Time
	err      error
	by       *approvals.By // who cancelled it
	stderr   []string
	leftOut  bool
	revision int
	more     chan struct{} // closed at every change
}

type begun struct {
	doing string
	at    time.Time
}

// begin returns the try of a decision that is under way; mine where it was begun by
// this call.
func (all *tries) begin(ctx context.Context, decision string, now func() time.Time) (t *try, mine bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	at := slices.IndexFunc(all.all, func(t *try) bool { return t.decision == decision })
	if at >= 0 {
		if !all.all[at].isOver() {
			return all.all[at], false
		}
		all.all = slices.Delete(all.all, at, at+1) // another try of the same, after a sign-in
	}
	if len(all.all) >= keptTries {
		if at := slices.IndexFunc(all.all, (*try).isOver); at >= 0 {
			all.all = slices.Delete(all.all, at, at+1)
		}
	}
	t = &try{decision: decision, now: now, done: make(chan struct{}), more: make(chan struct{}), steps: []begun{{Checking, now()}}}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	all.all = append(all.all, t)
	return t, true
}

func (all *tries) find(decision string) *try {
	all.mu.Lock()
	defer all.mu.Unlock()
	if at := slices.IndexFunc(all.all, func(t *try) bool { return t.decision == decision }); at >= 0 {
		return all.all[at]
	}
	return nil
}

func (t *try) isOver() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// step is told by the pool how far it has come.
func (t *try) step(step mcp.ProbeStep, child mcp.Child) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.child = child
	t.steps = append(t.steps, begun{string(step), t.now()})
	t.changed()
}

// changed wakes whoever waits. t.mu is held.
func (t *try) changed() {
	t.revision++
	close(t.more)
	t.more = make(chan struct{})
}

// end says that nothing is left of it. What it wrote last is kept, and the process let go.
func (t *try) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isOver() {
		return
	}
	t.readTail()
	t.child, t.err, t.over = nil, err, t.now()
	t.changed()
	close(t.done)
	t.cancel(nil)
}

// stop cancels it, in somebody's name.
func (t *try) stop(by approvals.By) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isOver() || t.by != nil {
		return
	}
	t.by = &by
	t.cancel(approvals.CancelledProbe())
	t.changed()
}

func (t *try) cancelled() bool {
	_, cancelled := t.cancelledBy()
	return cancelled
}

func (t *try) cancelledBy() (approvals.By, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		return approvals.By{}, false
	}
	return *t.by, true
}

// readTail takes what was written since; it reports whether that is anything. t.mu is
// held.
func (t *try) readTail() bool {
	if t.child == nil {
		return false
	}
	lines := t.child.Tail()
	shown := lines[max(0, len(lines)-shownLines):]
	size := 0
	for i, line := range slices.Backward(shown) {
		if size += len(line) + 1; size > shownBytes {
			shown = shown[i+1:]
			break
		}
	}
	if slices.Equal(shown, t.stderr) {
		return false
	}
	t.stderr, t.leftOut = slices.Clone(shown), len(shown) < len(lines)
	return true
}

func (t *try) look() (Try, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.readTail() {
		t.changed()
	}
	now := t.over
	if now.IsZero() {
		now = t.now()
	}
	shown := Try{Decision: t.decision, Revision: t.revision, Over: t.isOver(), Err: t.err, Stderr: t.stderr, LeftOut: t.leftOut,
		Ms: now.Sub(t.steps[0].at).Milliseconds()}
	for i, step := range t.steps {
		end := now
		if i+1 < len(t.steps) {
			end = t.steps[i+1].at
		}
		shown.Steps = append(shown.Steps, TryStep{step.doing, end.Sub(step.at).Milliseconds()})
	}
	return shown, t.more
}

func errNoTry() error {
	return &coded.Error{Code: "no-probe", Sentence: "the decision is not being tried", Next: "look at what became of it: sallyport decisions list"}
}

// Probe returns the first try of a decision as it is now, once its revision is above
// after, or when ctx ends.
func (h *Host) Probe(ctx context.Context, decision string, after int) (Try, error) {
	t := h.tries.find(decision)
	if t == nil {
		if _, err := h.Gate.Decision(ctx, decision); err != nil {
			return Try{}, err
		}
		return Try{}, errNoTry()
	}
	tick := time.NewTicker(tailEvery)
	defer tick.Stop()
	for {
		now, more := t.look()
		if now.Revision > after || now.Over {
			return now, nil
		}
		select {
		case <-more:
		case <-tick.C:
		case <-ctx.Done():
			return now, nil
		}
	}
}

// CancelProbe ends the first try of a decision and returns what became of it, once
// nothing of the try is left. Nothing is approved by it and nothing denied: cancelled
// while the files are compared, the question is still open; later it is closed, and may
// be asked again.
func (h *Host) CancelProbe(ctx context.Context, decision string, by approvals.By) (approvals.Decision, error) {
	if err := by.MayOperate(); err != nil {
		return approvals.Decision{}, err
	}
	d, err := h.Gate.Decision(ctx, decision)
	if err != nil {
		return d, err
	}
	t := h.tries.find(decision)
	switch {
	case t != nil && !t.isOver():
		t.stop(by)
		select {
		case <-t.done:
		case <-ctx.Done():
			return d, ctx.Err()
		}
	case d.State == approvals.DecisionProbing: // it waits for a sign-in
		if err := h.Gate.ProbeCancelled(ctx, decision, by); err != nil {
			return d, err
		}
	default:
		return d, errNoTry()
	}
	return h.Gate.Decision(ctx, decision)
}
