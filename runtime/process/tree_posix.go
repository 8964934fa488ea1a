//go:build !windows

package process

import (
	"sync"
	"syscall"
	"time"
)

// tree is a leader, its process group and session (their number is the
// leader's), and whatever descends from them. It is signalled only while the
// leader is not reaped, because only until then its number is its own.
type tree struct {
	pid int
	// marker is the child's PLUGIN_DATA entry (and a shell's TERM), by which processes
	// are known that left the session and lost their parent (nil if there is none).
	marker []string

	mu     sync.Mutex
	reaped bool
}

func (t *tree) terminate() { t.signal(syscall.SIGTERM) }

func (t *tree) kill() { t.signal(syscall.SIGKILL) }

func (t *tree) signal(sig syscall.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.reaped {
		_ = syscall.Kill(-t.pid, sig)
	}
}

// letGo runs reap while nobody can signal, and then nobody does any more.
func (t *tree) letGo(reap func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reaped = true
	reap()
}

// escaped returns those that a signal to the group does not reach.
func (t *tree) escaped(m *Manager) []int {
	var pids []int
	for _, p := range t.others(m) {
		if p.group != t.pid {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// rest returns everybody who is alive but the leader.
func (t *tree) rest(m *Manager) []int {
	var pids []int
	for _, p := range t.others(m) {
		pids = append(pids, p.pid)
	}
	return pids
}

// proc is a process as the system lists it.
type proc struct {
	pid, parent, group, session int
	zombie                      bool
	start                       uint64        // when it began, in the system's own unit; 0 if unknown
	cpu                         time.Duration // what it has used; 0 if unknown
}

func killEach(pids []int) {
	for _, pid := range pids {
		if pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// descend adds to members everything that descends from them.
func descend(members map[int]bool, all []proc) {
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !members[p.pid] && members[p.parent] {
				members[p.pid], grown = true, true
			}
		}
	}
}
