package process

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes whoever loses its parent below Sallyport a child of it,
// so that leaving the session is not leaving the tree.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// others finds the tree's living members: by session, by group, by descent, and
// by their environment among whatever else descends from Sallyport, because
// adopted orphans do.
func (t *tree) others(m *Manager) []proc { return t.among(m, processes()) }

func (t *tree) among(m *Manager, all []proc) []proc {
	members, below, others := map[int]bool{t.pid: true}, map[int]bool{os.Getpid(): true}, m.otherTrees(t)
	descend(below, all)
	descend(others.members, all)
	for _, p := range all {
		switch {
		case p.session == t.pid || p.group == t.pid:
			members[p.pid] = true
		case below[p.pid] && !others.members[p.pid] && !m.leads(p.session) && hasMarker(p.pid, t.marker...) && !others.marked(p.pid):
			members[p.pid] = true
		}
	}
	delete(members, os.Getpid())
	descend(members, all)
	var found []proc
	for _, p := range all {
		if members[p.pid] && p.pid != t.pid && !p.zombie {
			found = append(found, p)
		}
	}
	return found
}

// otherTrees are a connector's program for its shells, and the other way round: they
// have PLUGIN_DATA in common, and none of them is to end or to pay for another's.
type otherTrees struct {
	members map[int]bool
	markers [][]string // of those that say more than the tree's own
}

func (m *Manager) otherTrees(t *tree) otherTrees {
	o := otherTrees{members: map[int]bool{}}
	for _, child := range m.Children() {
		if child.tree == t {
			continue
		}
		o.members[child.pid] = true
		if len(child.tree.marker) > len(t.marker) {
			o.markers = append(o.markers, child.tree.marker)
		}
	}
	return o
}

func (o otherTrees) marked(pid int) bool {
	return slices.ContainsFunc(o.markers, func(marker []string) bool { return hasMarker(pid, marker...) })
}

// processes lists /proc. What vanishes meanwhile is left out.
func processes() []proc {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var all []proc
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := look(pid); ok {
				all = append(all, p)
			}
		}
	}
	return all
}

// look reads /proc/PID/stat (proc_pid_stat(5)). The name in it may hold
// anything, so that fields count from the last parenthesis.
func look(pid int) (proc, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, false
	}
	at := bytes.LastIndexByte(text, ')')
	if at < 0 {
		return proc{}, false
	}
	fields := strings.Fields(string(text[at+1:]))
	if len(fields) < 20 {
		return proc{}, false
	}
	number := func(i int) int { n, _ := strconv.Atoi(fields[i]); return n }
	start, _ := strconv.ParseUint(fields[19], 10, 64)
	return proc{pid: pid, parent: number(1), group: number(2), session: number(3), zombie: fields[0] == "Z" || fields[0] == "X", start: start,
		cpu: time.Duration(number(11)+number(12)) * clockTick}, true
}

// hasMarker reports whether the process was started with all of the entries in its
// environment. A process whose environment cannot be read was not ours.
func hasMarker(pid int, marker ...string) bool {
	if len(marker) == 0 {
		return false
	}
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	has := 0
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if slices.Contains(marker, string(entry)) {
			has++
		}
	}
	return has >= len(marker)
}

// orphanTick is how often adopted processes that ended are collected; one is
// taken only when it was a zombie at two ticks, so that nobody who waits for
// its own child finds it gone.
const orphanTick = 30 * time.Second

// collectOrphans keeps adopted processes from piling up as zombies.
func (m *Manager) collectOrphans() {
	ticker := time.NewTicker(orphanTick)
	defer ticker.Stop()
	seen := map[int]uint64{}
	for {
		select {
		case <-m.stop:
			return
		case <-ticker.C:
			seen = m.collect(seen)
		}
	}
}

func (m *Manager) collect(before map[int]uint64) map[int]uint64 {
	now := map[int]uint64{}
	self := os.Getpid()
	for _, p := range processes() {
		if !p.zombie || p.parent != self || m.leads(p.pid) {
			continue
		}
		if before[p.pid] == p.start {
			_, _ = syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil)
		} else {
			now[p.pid] = p.start
		}
	}
	return now
}

// collectGroup reaps the group's adopted zombies once its leader is reaped.
func collectGroup(group int) {
	for {
		pid, err := syscall.Wait4(-group, nil, syscall.WNOHANG, nil)
		if err != nil && err != syscall.EINTR || err == nil && pid <= 0 {
			return
		}
	}
}
