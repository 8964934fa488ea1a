// Package process starts, watches and ends the processes of connectors.
//
// The one idea: a child is the whole tree that it grows, and the tree ends with
// it. There is one way to start (Manager.Start, and StartShell for a person's own
// shell in its place; both take an approvals.Grant), one way to end (Child.Stop, in bounded time, each step reported), and what a
// killed host leaves behind is ended by the next Sweep
// (spec/child-environment.md 7, spec/approval.md 5.2a).
//
// It does not read MCP, decide about restarts (Backoff only says how long to
// wait) or judge approvals. mcp and host import it.
package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/env"
	"sallyport/runtime/plugins"
)

// The times of spec/child-environment.md 7.
const (
	// eofWait is how long a child may take to end by itself after its input ended.
	eofWait = 2 * time.Second
	// termWait is how long it may take after the terminate signal.
	termWait = 2 * time.Second
	// killWait is how long the kernel may take to end what was killed.
	killWait = time.Second
	// breedWait is how long a tree is followed that goes on growing while it is killed.
	breedWait = 30 * time.Second
	// quietLooks are how often nobody may be seen of a tree that was killed before it
	// is believed.
	quietLooks = 20
	// orphanWait is what the rest of a tree gets after its leader has ended.
	orphanWait = 300 * time.Millisecond
	// startLimit bounds everything between the fork and the first instruction.
	startLimit = 10 * time.Second
	// pipeWait is how long a pipe may stay silent once its child has ended and
	// something that escaped still holds it.
	pipeWait = 250 * time.Millisecond
)

// Spawner creates a process; os.StartProcess is the real one. Tests replace it
// to see that nothing was started.
type Spawner func(path string, argv []string, attr *os.ProcAttr) (*os.Process, error)

// Config is what New needs.
type Config struct {
	// StateDir holds children.json; it must exist and be the user's alone.
	StateDir string
	// Shim is the command that re-executes Sallyport as ShimMain, which sets
	// limits and then becomes the child; see Shim. Required but on Windows.
	Shim    []string
	Secrets env.Secrets // may be nil: secret: references are then refused
	Spawn   Spawner     // default os.StartProcess
	Logger  *slog.Logger
	Now     func() time.Time
}

// Manager starts children and ends them.
type Manager struct {
	config Config
	log    *slog.Logger
	thread *thread
	record *record
	stop   chan struct{}
	tasks  sync.WaitGroup // what runs for children
	starts sync.WaitGroup // starts that were let through
	// closing ends when Close begins, and with it every start that is under way.
	closing context.Context
	close   context.CancelFunc

	mu       sync.Mutex
	closed   bool
	starting map[plugins.ID]bool
	children map[*Child]bool

	// The last list of processes, for measuring.
	listing  sync.Mutex
	listed   []proc
	listedAt time.Time
}

// New prepares for starting children. On Linux it makes this process the
// subreaper of its descendants, so that none of them can leave its tree.
func New(c Config) (*Manager, error) {
	if !filepath.IsAbs(c.StateDir) {
		return nil, errors.New("cannot manage processes: StateDir is not an absolute path")
	}
	if len(c.Shim) == 0 && c.Spawn == nil && runtime.GOOS != "windows" {
		return nil, errors.New("cannot manage processes: Config.Shim is not set, so no limit could be")
	}
	if c.Spawn == nil {
		c.Spawn = os.StartProcess
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if err := adoptOrphans(); err != nil {
		c.Logger.Warn("cannot become subreaper", "error", err)
	}
	m := &Manager{
		config: c, log: c.Logger, thread: newThread(), record: openRecord(c.StateDir, c.Now(), c.Logger), stop: make(chan struct{}),
		starting: map[plugins.ID]bool{}, children: map[*Child]bool{},
	}
	m.closing, m.close = context.WithCancel(context.Background())
	m.tasks.Go(m.collectOrphans)
	return m, nil
}

// Close ends every child as Stop does, all at once, and then the manager.
// No child can be started any more.
func (m *Manager) Close(ctx context.Context) error {
	m.mu.Lock()
	already := m.closed
	m.closed = true
	m.mu.Unlock()
	if already {
		return nil
	}
	m.close()
	m.starts.Wait()
	children := m.Children()
	var stops sync.WaitGroup
	reports := make([]Report, len(children))
	for i, child := range children {
		stops.Go(func() { reports[i] = child.Stop(ctx, coded.New("host-closing", "Sallyport is closing")) })
	}
	stops.Wait()
	close(m.stop)
	m.tasks.Wait()
	m.thread.end()
	var errs []error
	for _, report := range reports {
		errs = append(errs, report.Err())
	}
	return errors.Join(errs...)
}

// Children returns the children that are not gone yet.
func (m *Manager) Children() []*Child {
	m.mu.Lock()
	defer m.mu.Unlock()
	children := make([]*Child, 0, len(m.children))
	for child := range m.children {
		children = append(children, child)
	}
	return children
}

// leads reports whether pid is a child of this manager that is not reaped.
func (m *Manager) leads(pid int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for child := range m.children {
		if child.pid == pid {
			return true
		}
	}
	return false
}

// begin lets one start per connector through at a time.
func (m *Manager) begin(id plugins.ID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return coded.New("host-closing", "Sallyport is closing")
	case m.starting[id]:
		return coded.New("start-in-progress", fmt.Sprintf("%s is being started already", id))
	}
	m.starting[id] = true
	m.starts.Add(1)
	return nil
}

// beginShell lets a shell through, of which a connector may have several.
func (m *Manager) beginShell() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return coded.New("host-closing", "Sallyport is closing")
	}
	m.starts.Add(1)
	return nil
}

func (m *Manager) started(id plugins.ID) {
	m.mu.Lock()
	delete(m.starting, id)
	m.mu.Unlock()
	m.starts.Done()
}

func (m *Manager) keep(child *Child) {
	m.mu.Lock()
	m.children[child] = true
	m.mu.Unlock()
}

func (m *Manager) forget(child *Child) {
	m.mu.Lock()
	delete(m.children, child)
	m.mu.Unlock()
}
