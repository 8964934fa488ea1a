package audit

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/coded"
)

const (
	queueLength = 4096                   // records that may wait; then Call waits
	groupSize   = 512                    // records of one transaction
	groupWait   = 20 * time.Millisecond  // how long a group collects; spec/audit.md 3 allows 50 with its commit
	retryWait   = 250 * time.Millisecond // between tries of a group that cannot be written
	headWait    = time.Second            // how far the sealed head may be behind a group
)

// queue holds what one goroutine writes for everybody.
type queue struct {
	records chan Record
	flushes chan chan error
	woken   chan struct{}
	closing chan struct{} // closed when Close begins
	once    sync.Once
	senders sync.RWMutex // read-held while sending, so that Close sees every record
	lost    atomic.Int64 // records that Close had to give up
}

func (q *queue) init() {
	q.records = make(chan Record, queueLength)
	q.flushes = make(chan chan error)
	q.woken = make(chan struct{}, 1)
	q.closing = make(chan struct{})
}

func (q *queue) wake() {
	select {
	case q.woken <- struct{}{}:
	default:
	}
}

// Call queues the record of one call; it is synced, in a group, within 50 ms. It
// waits while the queue is full: a record is late rather than lost. So it must
// not be called inside an Update. An action or result that the contract does not name becomes "call" and "failed".
func (l *Log) Call(r Record) {
	if r.Action == "" {
		r.Action = Call
	}
	if r.check() != nil {
		l.log.Error("audit record has an unknown action or result", "action", shown(r.Action), "result", shown(r.Result))
		r.Action, r.Result = Call, Failed
	}
	if r.At.IsZero() {
		r.At = l.now()
	}
	l.send(r)
}

func (l *Log) send(r Record) {
	l.queue.senders.RLock()
	defer l.queue.senders.RUnlock()
	select {
	case <-l.queue.closing:
		l.lose(r)
		return
	default:
	}
	select {
	case l.queue.records <- r:
	case <-l.ended:
		l.lose(r)
	}
}

// lose counts and logs records that cannot be kept.
func (l *Log) lose(records ...Record) {
	l.queue.lost.Add(int64(len(records)))
	for _, r := range records {
		l.log.Error("audit record is lost", "action", r.Action, "plugin", r.Plugin, "target", r.Target, "result", r.Result)
	}
}

// Flush returns after everything that was queued or counted before it is synced
// and the head is sealed.
func (l *Log) Flush(ctx context.Context) error {
	done := make(chan error, 1)
	select {
	case l.queue.flushes <- done:
	case <-l.ended:
		return coded.New(CodeClosed, "the audit is closed")
	case <-ctx.Done():
		return fmt.Errorf("cannot flush the audit: %w", context.Cause(ctx))
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("cannot flush the audit: %w", context.Cause(ctx))
	}
}

// Close writes what is queued and counted, seals the head and ends the log. Its
// error says how many records could not be written before ctx ended.
func (l *Log) Close(ctx context.Context) error {
	l.queue.once.Do(func() { close(l.queue.closing) })
	select {
	case <-l.ended:
	case <-ctx.Done():
		l.cancel()
		<-l.ended
	}
	l.cancel()
	if left := l.queue.lost.Load(); left > 0 {
		return &coded.Error{
			Code: CodeUnwritable, Sentence: fmt.Sprintf("%d audit records could not be written", left), Err: l.Problem(),
		}
	}
	return nil
}

// run is the writing goroutine.
func (l *Log) run(ctx context.Context) {
	defer close(l.ended)
	head, fold := newAlarm(), newAlarm()
	defer head.stop()
	defer fold.stop()
	for {
		select {
		case r := <-l.queue.records:
			l.writeGroup(ctx, l.collect(r))
		case done := <-l.queue.flushes:
			done <- l.drain(ctx)
		case <-l.queue.woken:
		case <-fold.rings():
			fold.rang()
			l.writeGroup(ctx, l.folds.due(time.Now()))
		case <-head.rings():
			head.rang()
			_ = l.SaveHead(ctx) // what fails stays behind, and is a Problem
		case <-l.queue.closing:
			l.finish(ctx)
			return
		}
		if l.head.behind.Load() {
			head.set(headWait)
		}
		if l.folds.any() {
			fold.set(foldTick)
		}
	}
}

// finish writes what came before Close: senders that were waiting find room as
// the queue empties.
func (l *Log) finish(ctx context.Context) {
	quiet := make(chan struct{})
	go func() {
		l.queue.senders.Lock() // after the last sender
		defer l.queue.senders.Unlock()
		close(quiet)
	}()
	for waiting := true; waiting; {
		select {
		case r := <-l.queue.records:
			l.writeGroup(ctx, []Record{r}) // makes room; the rest goes in groups
		case <-quiet:
			waiting = false
		}
	}
	_ = l.drain(ctx) // Close says what was lost
}

// collect waits for the rest of a group, not longer than groupWait.
func (l *Log) collect(first Record) []Record {
	group := []Record{first}
	timer := time.NewTimer(groupWait)
	defer timer.Stop()
	for len(group) < groupSize {
		select {
		case r := <-l.queue.records:
			group = append(group, r)
		case <-timer.C:
			return group
		case <-l.queue.closing:
			return group
		}
	}
	return group
}

// drain writes all that is queued and counted now and seals the head.
func (l *Log) drain(ctx context.Context) error {
	group := l.folds.all()
	for n := len(l.queue.records); n > 0; n-- {
		group = append(group, <-l.queue.records)
	}
	l.writeGroup(ctx, group)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("cannot flush the audit: %w", err)
	}
	return l.SaveHead(ctx)
}

// writeGroup commits records, trying again until it works or Close gives up.
func (l *Log) writeGroup(ctx context.Context, group []Record) {
	for len(group) > 0 {
		part := group[:min(len(group), groupSize)]
		err := l.db.Update(ctx, func(tx *sql.Tx) error {
			_, err := l.write(tx, part)
			return err
		})
		l.setProblem(err)
		if err == nil {
			l.head.behind.Store(true)
			group = group[len(part):]
			continue
		}
		select {
		case <-time.After(retryWait):
		case <-ctx.Done():
			l.lose(group...)
			return
		}
	}
}
