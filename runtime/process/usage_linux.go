package process

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of processor time in /proc (USER_HZ).
const clockTick = 10 * time.Millisecond

// canEnforce: all of it where /proc can be read.
func canEnforce() enforced {
	_, ok := look(os.Getpid())
	return enforced{memory: ok, cpu: ok, openFiles: true, processes: ok}
}

// usage adds up what the processes of the tree use.
func (t *tree) usage(m *Manager) usage {
	all := m.lately()
	members := t.among(m, all)
	for _, p := range all {
		if p.pid == t.pid {
			members = append(members, p)
		}
	}
	u := usage{processes: len(members), cpu: make(map[int]time.Duration, len(members))}
	page := int64(os.Getpagesize())
	for _, p := range members {
		u.cpu[p.pid] = p.cpu
		text, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/statm")
		fields := strings.Fields(string(text))
		if err != nil || len(fields) < 3 {
			continue
		}
		resident, _ := strconv.ParseInt(fields[1], 10, 64)
		shared, _ := strconv.ParseInt(fields[2], 10, 64)
		u.memory += (resident - shared) * page
	}
	return u
}

// listAge is how old a list of processes may be that trees are measured by: many
// children share one.
const listAge = closeLook / 2

// lately is a list of all processes that is almost the present one.
func (m *Manager) lately() []proc {
	m.listing.Lock()
	defer m.listing.Unlock()
	if now := time.Now(); now.Sub(m.listedAt) > listAge {
		m.listed, m.listedAt = processes(), now
	}
	return m.listed
}
