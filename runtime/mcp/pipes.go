package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxNoiseLines and maxNoiseBytes bound what SkipNoise passes over.
	maxNoiseLines = 64
	maxNoiseBytes = 64 << 10

	// idleSteps of idleStep with the reader waiting for bytes mean that a dead
	// server's pipe is empty; drainLimit ends the wait for one that is not.
	idleStep   = 4 * time.Millisecond
	idleSteps  = 4
	drainLimit = time.Second

	// exitWait is how long a closed stdout waits for the exit status.
	exitWait = 25 * time.Millisecond
	// stuckWrite is how long a write must have waited for a server when a call
	// reaches its deadline, to be called stalled.
	stuckWrite = 100 * time.Millisecond
	// cancelledWrite is the same where the agent gave up by itself.
	cancelledWrite = 5 * time.Second

	maxReplies = 256
	// endLimit bounds the wait for a child's end before its pipes are closed.
	endLimit = 15 * time.Second
)

// Child is a server's process, as package process starts them.
type Child interface {
	PID() int
	Stdin() io.WriteCloser
	Stdout() io.Reader
	// Tail is the end of stderr, bounded and masked.
	Tail() []string
	// Done is closed once the leader has exited and Status tells how
	// ("exit status 7"; "" before). A child may also have Gone() <-chan struct{},
	// closed when the whole tree is gone.
	Done() <-chan struct{}
	Status() string
	// Stop ends the whole tree, politely first; Kill at once. Both may be called
	// at any time and more than once.
	Stop(ctx context.Context, reason error) error
	Kill()
}

// pipes is the wire to a child (spec/stdio-framing.md).
type pipes struct {
	conn    *Conn
	child   Child
	framer  *Framer
	source  *meter
	skip    bool
	out     chan []byte // handed over by whoever calls
	replies chan []byte

	writes  atomic.Int64 // odd while one is under way
	began   atomic.Int64 // when, in nanoseconds of the monotonic clock
	watched atomic.Int64 // the write that somebody already watches
	epoch   time.Time
}

// Connect takes over the pipes of a child that has just been started. Nothing is
// sent; Handshake comes next.
func Connect(child Child, o Options) *Conn {
	c := newConn(o)
	source := &meter{src: child.Stdout()}
	w := &pipes{
		conn:    c,
		child:   child,
		source:  source,
		framer:  NewFramer(source, o.limit()),
		skip:    o.SkipNoise,
		out:     make(chan []byte),
		replies: make(chan []byte, maxReplies),
		epoch:   time.Now(),
	}
	c.wire = w
	c.child = child
	go c.run()
	return c
}

// receive is the reader, and the parent of the goroutines beside it.
func (w *pipes) receive(deliver func(Envelope)) *ProtocolError {
	var beside sync.WaitGroup
	beside.Go(w.write)
	beside.Go(w.awaitExit)
	cause := w.read(deliver)
	w.framer.Free()
	w.conn.fail(cause)
	// A child that is being stopped politely must not find its pipe full.
	_, _ = io.Copy(io.Discard, w.source.src)
	beside.Wait()
	return cause
}

func (w *pipes) read(deliver func(Envelope)) *ProtocolError {
	var parser Parser
	for {
		frame, err := w.framer.Next()
		w.conn.stats.marks.Store(w.framer.Marks())
		if err != nil {
			return w.ended(err)
		}
		select {
		case <-w.conn.dead:
			return w.closed("the connection was closed", nil)
		default:
		}
		envelope, err := parser.Parse(frame)
		if err == nil {
			deliver(envelope)
		} else if cause := w.faulty(frame, err); cause != nil {
			return cause
		}
	}
}

// faulty decides about a frame that is not a message (spec/stdio-framing.md 5, 8).
// Only what never names "jsonrpc" counts as noise: passing over a damaged answer
// would leave its call waiting for the deadline.
func (w *pipes) faulty(frame []byte, err error) *ProtocolError {
	if w.framer.Cut() {
		w.awaitStatus()
		return w.closed("the server ended in the middle of a message", nil)
	}
	if w.skip && !bytes.Contains(frame, []byte(`"jsonrpc"`)) {
		lines := w.conn.stats.noiseLines.Add(1)
		size := w.conn.stats.noiseBytes.Add(int64(len(frame)))
		if lines <= maxNoiseLines && size <= maxNoiseBytes {
			return nil
		}
	}
	var fault *ProtocolError
	errors.As(err, &fault) // Parse returns nothing else
	return fault
}

// ended turns the end of stdout into a cause, with the exit status if it comes
// within a moment.
func (w *pipes) ended(err error) *ProtocolError {
	var fault *ProtocolError
	if errors.As(err, &fault) {
		return fault
	}
	if w.awaitStatus() {
		return w.closed("the server's process ended", err)
	}
	return w.closed("the server closed its output", err)
}

// awaitStatus gives the exit status a moment to come.
func (w *pipes) awaitStatus() bool {
	timer := time.NewTimer(exitWait)
	defer timer.Stop()
	select {
	case <-w.child.Done():
		return true
	case <-timer.C:
	case <-w.conn.dead:
	}
	return false
}

func (w *pipes) closed(sentence string, err error) *ProtocolError {
	return newProtocolError(TransportClosed, sentence, err)
}

// awaitExit acts on the exit of the leader even where a grandchild keeps stdout
// open. Everything written before the exit is read first.
func (w *pipes) awaitExit() {
	select {
	case <-w.conn.dead:
		return
	case <-w.child.Done():
	}
	w.drained(drainLimit)
	w.conn.fail(w.closed("the server's process ended", nil))
}

// drained waits until the reader has nothing left to read.
func (w *pipes) drained(limit time.Duration) {
	tick := time.NewTicker(idleStep)
	defer tick.Stop()
	idle, seen, until := 0, w.source.reads.Load(), time.Now().Add(limit)
	for idle < idleSteps && time.Now().Before(until) {
		select {
		case <-w.conn.dead:
			return
		case <-tick.C:
		}
		if now := w.source.reads.Load(); now != seen || !w.source.waiting.Load() {
			idle, seen = 0, now
			continue
		}
		idle++
	}
}

// write is the only writer: one message, one write, one line feed
// (spec/stdio-framing.md 10).
func (w *pipes) write() {
	stdin := w.child.Stdin()
	for {
		var line []byte
		select {
		case <-w.conn.dead:
			return
		case line = <-w.out:
		case line = <-w.replies:
		}
		w.began.Store(int64(time.Since(w.epoch)))
		w.writes.Add(1)
		_, err := stdin.Write(line)
		w.writes.Add(1)
		if err != nil {
			// A server that answers and exits breaks this pipe first; its last
			// answers, and its exit status, are worth a moment.
			w.drained(exitWait)
			w.conn.fail(newProtocolError(WriteFailed, "the server no longer takes messages", err))
			return
		}
	}
}

func (w *pipes) send(ctx context.Context, _ int64, line []byte) error {
	select {
	case w.out <- line:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.conn.dead:
		return w.conn.Cause()
	}
}

func (w *pipes) reply(line []byte, must bool) {
	select {
	case w.replies <- line:
	default:
		if must {
			w.conn.fail(newProtocolError(WriteStalled, "the server asks without reading the answers", nil))
		}
	}
}

// expired looks whether the call ended because the server does not read.
func (w *pipes) expired(ctx context.Context) {
	write := w.writes.Load()
	if write%2 == 0 {
		return
	}
	wait := cancelledWrite
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		wait = stuckWrite
	} else if w.watched.Swap(write) == write {
		return
	}
	wait -= time.Since(w.epoch) - time.Duration(w.began.Load())
	if wait <= 0 {
		w.stalled(write)
		return
	}
	go func() {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
			w.stalled(write)
		case <-w.conn.dead:
		}
	}()
}

func (w *pipes) stalled(write int64) {
	if w.writes.Load() == write {
		w.conn.fail(newProtocolError(WriteStalled, "the server does not read its input", nil))
	}
}

// end stops the child's tree once. A connection that was closed on purpose is
// polite; a fault is not.
func (w *pipes) end(cause *ProtocolError) {
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	if cause.Code == Closed {
		_ = w.child.Stdin().Close()
		if err := w.child.Stop(ctx, cause); err != nil {
			w.conn.logger.Warn("cannot stop a server", "error", err)
		}
	} else {
		w.child.Kill()
		_ = w.child.Stdin().Close()
	}
	ended := w.child.Done()
	if tree, ok := w.child.(interface{ Gone() <-chan struct{} }); ok {
		ended = tree.Gone()
	}
	select {
	case <-ended:
	case <-ctx.Done():
	}
	// Whoever escaped with the other end of stdout must not keep the reader.
	if closer, ok := w.source.src.(io.Closer); ok {
		_ = closer.Close()
	}
}

// meter tells whether the reader waits for bytes.
type meter struct {
	src     io.Reader
	waiting atomic.Bool
	reads   atomic.Int64
}

func (m *meter) Read(p []byte) (int, error) {
	m.waiting.Store(true)
	n, err := m.src.Read(p)
	m.waiting.Store(false)
	m.reads.Add(1)
	return n, err
}
