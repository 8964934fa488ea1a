package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/internal/pty"
	"sallyport/runtime/approvals"
	"sallyport/runtime/plugins"
)

// Child is a running connector with everything that it starts.
type Child struct {
	manager *Manager
	id      plugins.ID
	pid     int
	tree    *tree
	started time.Time
	stdin   io.WriteCloser
	stdout  *output
	tail    *Tail
	entry   *entry
	limits  plugins.Budget

	done    chan struct{} // the leader has ended
	gone    chan struct{} // nothing is left
	drained chan struct{} // stderr has been read to its end
	stop    stopping

	terminal *pty.PTY // what a shell is on; nil for everything else

	mu   sync.Mutex
	exit Exit
}

// Exit is how a child's leader ended.
type Exit struct {
	Code   int    // -1 when it was ended by a signal
	Signal string // "killed", "segmentation fault", …; "" when it exited by itself
	At     time.Time
	// Reason is the *coded.Error of the budget that was exceeded, or nil.
	Reason error
}

// String says it in words ("exit status 7", "signal: killed").
func (e Exit) String() string {
	switch {
	case e.At.IsZero():
		return ""
	case e.Signal != "":
		return "signal: " + e.Signal
	default:
		return fmt.Sprintf("exit status %d", e.Code)
	}
}

func (m *Manager) newChild(l approvals.Launch, b born, p *pipes, secrets []string, e *entry) *Child {
	c := &Child{
		manager: m, id: l.ID, pid: b.pid, tree: b.tree, started: m.config.Now(), limits: l.Options.Budget, entry: e,
		stdin: &onceCloser{f: p.stdin}, tail: NewTail(secrets), terminal: p.terminal,
		done: make(chan struct{}), gone: make(chan struct{}), drained: make(chan struct{}),
	}
	c.stdout = &output{f: p.stdout}
	m.keep(c)
	m.tasks.Go(func() { c.drain(p.stderr) })
	m.tasks.Go(func() { c.watch(b) })
	m.tasks.Go(c.watchBudget)
	return c
}

// ID returns the connector.
func (c *Child) ID() plugins.ID { return c.id }

// PID returns the process id of the leader.
func (c *Child) PID() int { return c.pid }

// Started returns when the child was started, for Backoff's uptime.
func (c *Child) Started() time.Time { return c.started }

// Stdin returns the child's input. Writing to a child that has ended is an
// error (EPIPE), never a signal. To close it is to hang up on a shell.
func (c *Child) Stdin() io.WriteCloser { return c.stdin }

// Stdout returns the child's output. It ends when the last process of the tree
// has closed it, and at the latest when it has been silent for 250 ms after the
// leader ended; what was written before is delivered first. The caller closes it.
func (c *Child) Stdout() io.ReadCloser { return c.stdout }

// Stderr returns the end of what the child wrote to stderr.
func (c *Child) Stderr() *Tail { return c.tail }

// Done is closed when the leader has ended and Exit says how.
func (c *Child) Done() <-chan struct{} { return c.done }

// Gone is closed when nothing of the tree is left and stderr has been read.
func (c *Child) Gone() <-chan struct{} { return c.gone }

// Exit says how the leader ended; it is zero before Done.
func (c *Child) Exit() Exit {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exit
}

// Status is Exit in words; "" before Done.
func (c *Child) Status() string { return c.Exit().String() }

// watch waits for the leader, ends what it left behind, and only then lets go
// of its process id.
func (c *Child) watch(b born) {
	exit := b.await()
	exit.At = c.manager.config.Now()
	c.mu.Lock()
	reason := c.exit.Reason
	c.exit = exit
	c.exit.Reason = reason
	c.mu.Unlock()
	close(c.done)
	if c.terminal == nil { // whose two directions are one file, and may still hold what was printed last
		c.stdin.Close()
	}
	c.stdout.leaderEnded()
	c.clear()
	if c.terminal != nil {
		c.terminal.Finish()
	}
	b.reap(c.tree)
	<-c.drained
	c.manager.record.forget(c.entry)
	c.manager.forget(c)
	close(c.gone)
}

// drain reads stderr for as long as anybody holds it, and stops waiting soon
// after the leader has ended.
func (c *Child) drain(stderr *os.File) {
	defer close(c.drained)
	defer func() { _ = c.tail.Close() }()
	if stderr == nil {
		return
	}
	defer stderr.Close()
	o := &output{f: stderr}
	stop := make(chan struct{})
	defer close(stop)
	c.manager.tasks.Go(func() {
		select {
		case <-c.done:
			o.leaderEnded()
		case <-stop:
		}
	})
	_, _ = io.Copy(c.tail, o) // its end is the child's
}

// output is a pipe from a child. After the leader has ended a read that finds
// nothing for pipeWait is the end, whoever still holds the other side.
type output struct {
	f      *os.File
	ended  atomic.Bool
	closed atomic.Bool
}

func (o *output) leaderEnded() {
	o.ended.Store(true)
	o.f.SetReadDeadline(time.Now().Add(pipeWait))
}

// Read implements io.Reader.
func (o *output) Read(b []byte) (int, error) {
	if o.ended.Load() {
		o.f.SetReadDeadline(time.Now().Add(pipeWait))
	}
	n, err := o.f.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) || o.closed.Load() && errors.Is(err, os.ErrClosed) {
		return n, io.EOF
	}
	return n, err
}

// Close implements io.Closer; a second one does nothing.
func (o *output) Close() error {
	if o.closed.Swap(true) {
		return nil
	}
	return o.f.Close()
}

// onceCloser lets both the session and Stop close a child's input.
type onceCloser struct {
	f    *os.File
	once sync.Once
	err  error
}

func (o *onceCloser) Write(b []byte) (int, error) { return o.f.Write(b) }

func (o *onceCloser) Close() error {
	o.once.Do(func() { o.err = o.f.Close() })
	return o.err
}
