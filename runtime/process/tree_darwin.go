package process

import "golang.org/x/sys/unix"

// adoptOrphans has nothing to call on macOS: a child that leaves its session
// there is a stated residual risk (spec/child-environment.md 7).
func adoptOrphans() error { return nil }

func (m *Manager) collectOrphans() {}

func collectGroup(int) {}

// others finds the tree's living members by group and by descent.
func (t *tree) others(*Manager) []proc {
	all := processes()
	members := map[int]bool{t.pid: true}
	for _, p := range all {
		if p.group == t.pid {
			members[p.pid] = true
		}
	}
	descend(members, all)
	var others []proc
	for _, p := range all {
		if members[p.pid] && p.pid != t.pid && !p.zombie {
			others = append(others, p)
		}
	}
	return others
}

const stateZombie = 5 // SZOMB of <sys/proc.h>

func processes() []proc {
	list, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	all := make([]proc, len(list))
	for i := range list {
		all[i] = fromKinfo(&list[i])
	}
	return all
}

func look(pid int) (proc, bool) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Proc.P_pid) != pid {
		return proc{}, false
	}
	return fromKinfo(k), true
}

func fromKinfo(k *unix.KinfoProc) proc {
	started := k.Proc.P_starttime
	return proc{
		pid: int(k.Proc.P_pid), parent: int(k.Eproc.Ppid), group: int(k.Eproc.Pgid),
		zombie: k.Proc.P_stat == stateZombie,
		start:  uint64(started.Sec)*1_000_000 + uint64(started.Usec),
	}
}

// hasMarker cannot be told on macOS for what is not a child.
func hasMarker(int, ...string) bool { return false }
