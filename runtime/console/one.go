package console

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"sallyport/internal/coded"
	"sallyport/internal/pty"
	"sallyport/runtime/approvals"
	"sallyport/runtime/process"
)

const (
	// readerHere is how long after a question somebody still counts as reading, so
	// that a program which prints more than can be drawn is kept waiting, as by any
	// terminal, and nothing is dropped.
	readerHere = 10 * time.Second
	// backlog is how much may be unread then.
	backlog = Scroll / 2
	// piece is how much one answer holds.
	piece = 128 << 10
)

// console is one terminal with its shell.
type console struct {
	grant    approvals.Grant
	child    *process.Child
	terminal *pty.PTY

	typing sync.Mutex // what is typed keeps its order

	mu      sync.Mutex
	info    Info
	kept    []byte        // the end of what was printed
	readTo  uint64        // how far somebody has read
	readAt  time.Time     // when somebody last asked
	reason  *coded.Error  // why it is being ended
	changed chan struct{} // closed, and replaced, at every change
	over    chan struct{} // closed when it has ended and that is on record
}

func (o *console) now() Info {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.info
}

// tell wakes everybody who waits. o.mu is held.
func (o *console) tell() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// read keeps what is printed, until there is nobody left who could.
func (o *console) read(now func() time.Time) {
	buffer := make([]byte, 32<<10)
	out := o.child.Stdout()
	for {
		n, err := out.Read(buffer)
		o.keep(buffer[:n])
		if err != nil {
			return // the end, or the terminal was hung up
		}
		o.awaitReader(now)
	}
}

func (o *console) keep(data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(data) == 0 {
		return
	}
	o.info.Printed += uint64(len(data))
	o.kept = append(o.kept, data...)
	if over := len(o.kept) - Scroll; over > 0 {
		o.kept = append(o.kept[:0], o.kept[over:]...)
	}
	o.tell()
}

// awaitReader waits while somebody reads who is far behind.
func (o *console) awaitReader(now func() time.Time) {
	for {
		o.mu.Lock()
		wait, changed := o.info.Printed-o.readTo > backlog && now().Sub(o.readAt) < readerHere, o.changed
		o.mu.Unlock()
		if !wait {
			return
		}
		select {
		case <-changed:
		case <-o.child.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

func (o *console) output(ctx context.Context, after uint64, now func() time.Time) (Output, error) {
	for {
		changed, err := o.ask(after, now())
		if changed == nil || err != nil {
			return o.cut(after), err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			_, err := o.ask(after, now())
			return o.cut(after), err
		}
	}
}

// ask notes that somebody has read up to an offset and waits for more. It returns what
// to wait for, or nil where there is an answer.
func (o *console) ask(after uint64, now time.Time) (changed <-chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if after > o.info.Printed {
		return nil, coded.New("bad-request", "after lies behind everything that was printed")
	}
	o.readAt = now
	if after > o.readTo {
		o.readTo = after
		o.tell()
	}
	if after < o.info.Printed || closedNow(o.over) {
		return nil, nil
	}
	return o.changed, nil
}

// cut is the answer from an offset on.
func (o *console) cut(after uint64) Output {
	o.mu.Lock()
	defer o.mu.Unlock()
	after = min(after, o.info.Printed)
	first := o.info.Printed - uint64(len(o.kept))
	from := max(after, first)
	data := o.kept[from-first:]
	if len(data) > piece {
		data = data[:piece]
	}
	info := o.info
	info.Ended = closedNow(o.over) && from+uint64(len(data)) == o.info.Printed // not before everything was handed out
	return Output{Data: append([]byte{}, data...), From: from, Next: from + uint64(len(data)), Dropped: from - after, Info: info}
}

func (o *console) input(data []byte) error {
	o.typing.Lock()
	defer o.typing.Unlock()
	in := o.terminal.Input()
	_ = in.SetWriteDeadline(time.Now().Add(inputWait)) // where there are no deadlines it waits for the end
	_, err := in.Write(data)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &coded.Error{Code: "console-input-full", Sentence: "the program in the console does not read what is typed", Next: "wait for it, or close the console"}
	}
	return ended()
}

func ended() *coded.Error {
	return &coded.Error{Code: "console-ended", Sentence: "the console has ended", Next: "open another one"}
}

func (o *console) resize(size pty.Size) error {
	if closedNow(o.child.Done()) || o.terminal.Resize(size) != nil {
		return ended()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.info.Size = size
	return nil
}

func (o *console) unreadFor(now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return now.Sub(o.readAt)
}

func (o *console) closeBy(by approvals.By) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.info.Closer == nil && !o.info.Ended {
		o.info.Closer = &by
	}
}

// end stops the console for a reason of Sallyport's own.
func (o *console) end(ctx context.Context, reason *coded.Error) {
	o.mu.Lock()
	if o.reason == nil {
		o.reason = reason
	}
	o.mu.Unlock()
	o.child.Stop(ctx, reason)
}

// finish says how it ended. The first of these reasons counts: the approval's end,
// the budget's, Sallyport's own.
func (o *console) finish(at time.Time) Info {
	o.mu.Lock()
	defer o.mu.Unlock()
	var why *coded.Error
	switch {
	case errors.As(o.child.Reason(), &why):
	case o.reason != nil:
		why = o.reason
	case o.info.Closer == nil:
		errors.As(o.grant.Err(), &why)
	}
	o.info.Ended, o.info.EndedAt, o.info.Exit, o.info.Reason = true, at, o.child.Status(), why
	return o.info
}

// announce lets those who read see the end: after it is on record.
func (o *console) announce() {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.over)
	o.tell()
}

func closedNow(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
