//go:build !windows

package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/plugins"
)

// spawn starts the shim, waits until it has become the child, compares the
// image and records the child. The child has run nothing of its own by then
// where the system can stop it (Linux), and has been sent nothing anywhere.
func (m *Manager) spawn(ctx context.Context, l approvals.Launch, environ []string, p *pipes, e *entry) (born, error) {
	b, words, err := m.fork(l, environ, p)
	if err != nil {
		return born{}, err
	}
	defer words.f.Close()
	stop := context.AfterFunc(ctx, b.tree.kill)
	defer stop()
	hold, err := m.becomeChild(ctx, l, b, words)
	if err != nil {
		return born{}, err
	}
	b.image = hold.image
	m.record.born(e, b)
	if err := m.release(b, hold); err != nil {
		b.abandon()
		return born{}, startSlow(ctx, l, err)
	}
	return b, nil
}

// fork runs the spawner on the thread that children belong to.
func (m *Manager) fork(l approvals.Launch, environ []string, p *pipes) (born, *shimWords, error) {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return born{}, nil, &coded.Error{Code: "start-failed", Sentence: "cannot make the pipes for a child", Err: err}
	}
	defer theirs.Close()
	attr := &os.ProcAttr{Dir: l.Dir, Env: environ, Sys: p.onTerminal(processAttributes()), Files: []*os.File{p.theirIn, p.theirOut, p.theirErr}}
	command := []string{l.Path}
	if len(m.config.Shim) > 0 {
		command = append(append([]string(nil), m.config.Shim...), shimOrder{Budget: kernelBudget(l.Options.Budget), Signals: p.terminal != nil}.String(), l.Path)
		attr.Files = append(attr.Files, theirs) // shimStatus
	}
	var process *os.Process
	m.thread.do(func() { process, err = m.config.Spawn(command[0], append(command, l.Args...), attr) })
	if err != nil {
		ours.Close()
		return born{}, nil, explain(l, err)
	}
	b := born{pid: process.Pid, process: process, tree: &tree{pid: process.Pid, marker: markerOf(l, p, environ)}}
	return b, listen(ours), nil
}

// kernelBudget is what the kernel holds a process to. The memory that everybody may
// have is left to the watcher: some runtimes reserve writable memory by the ten
// gigabytes, and use none of it.
func kernelBudget(asked plugins.Budget) plugins.Budget {
	b := asked.Effective()
	b.MemoryBytes = asked.MemoryBytes
	return b
}

// becomeChild waits for the exec and compares the image; when it fails, nothing
// of the child is left.
func (m *Manager) becomeChild(ctx context.Context, l approvals.Launch, b born, words *shimWords) (hold, error) {
	h, err := m.awaitExec(ctx, b, words)
	if err == nil {
		err = m.compare(ctx, l, b, &h)
	}
	if err == nil {
		return h, nil
	}
	if h.reaped {
		b.tree.letGo(func() { _ = b.process.Release() })
	} else {
		b.abandon()
	}
	var refusal *coded.Error
	if errors.As(err, &refusal) {
		return h, refusal
	}
	if ctx.Err() != nil {
		return h, startSlow(ctx, l, err)
	}
	return h, explain(l, err)
}

func startSlow(ctx context.Context, l approvals.Launch, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return &coded.Error{Code: "start-slow", Sentence: fmt.Sprintf("%s did not start in time", l.ID), Err: err}
}

// hold is a child between exec and its first instruction.
type hold struct {
	traced bool   // it is stopped
	reaped bool   // it ended and was collected while it was traced
	image  string // what it runs
}

// shimWords is what the shim has said on descriptor 3.
type shimWords struct {
	f     *os.File
	first chan struct{} // closed at the first line or the end
	end   chan struct{} // closed at the end

	mu       sync.Mutex
	untraced bool
	err      error
}

func listen(f *os.File) *shimWords {
	w := &shimWords{f: f, first: make(chan struct{}), end: make(chan struct{})}
	go w.read()
	return w
}

func (w *shimWords) read() {
	defer close(w.end)
	first := sync.OnceFunc(func() { close(w.first) })
	defer first()
	lines := bufio.NewScanner(io.LimitReader(w.f, 4<<10))
	w.untraced = true
	for lines.Scan() {
		w.mu.Lock()
		w.hear(lines.Text())
		w.mu.Unlock()
		first()
	}
}

func (w *shimWords) hear(line string) {
	switch {
	case line == shimTraced:
		w.untraced = false
	case line == shimUntraced:
		w.untraced = true
	case strings.HasPrefix(line, shimFailed):
		var number int
		var what string
		_, _ = fmt.Sscanf(line, shimFailed+" %d %s", &number, &what) // what is not there stays empty
		if what == "exec" {
			w.err = syscall.Errno(number)
		} else {
			w.err = coded.New("limit-refused", fmt.Sprintf("the system refuses the limit on %s that this connector is to have", what))
		}
	}
}

// heard returns what was said so far.
func (w *shimWords) heard() (untraced bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.untraced, w.err
}
