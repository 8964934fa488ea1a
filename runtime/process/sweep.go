package process

import (
	"context"
	"os"
	"strings"
	"time"
)

// Swept is one leftover of the host before.
type Swept struct {
	Connector string `json:"connector"`
	PID       int    `json:"pid"`
	// Outcome is "ended" (it was found and is gone), "absent" (it had ended, or
	// its number now belongs to somebody else), "unknown" (it was about to be
	// started when the host ended, and nobody knows its number) or "left" (it was
	// found and could not be ended).
	Outcome string `json:"outcome"`
	// PIDs are the processes that were ended.
	PIDs []int `json:"pids,omitempty"`
}

// SweepReport is what Sweep found.
type SweepReport struct {
	Swept []Swept `json:"swept"`
	// Unreadable says why the record could not be used; nothing was ended then.
	Unreadable string `json:"unreadable,omitempty"`
	// KeptAs is the name in StateDir that the unreadable record has now; "" if it
	// could not even be renamed.
	KeptAs string `json:"keptAs,omitempty"`
}

// Sweep ends what a killed host left behind. A leader is known by its number,
// its start time and its executable (or, where it became another program, its
// PLUGIN_DATA) together, never by its number alone; its group, session and
// descendants end with it. Call it once, before the first Start.
func (m *Manager) Sweep(ctx context.Context) (SweepReport, error) {
	left, aside, broken := m.record.swept()
	var report SweepReport
	if broken != nil {
		report.Unreadable, report.KeptAs = broken.Error(), aside
	}
	for _, e := range left {
		if err := ctx.Err(); err != nil {
			return report, err
		}
		report.Swept = append(report.Swept, m.sweepOne(e))
	}
	if broken != nil && aside == "" {
		return report, broken
	}
	return report, m.record.clearLeft()
}

func (m *Manager) sweepOne(e entry) Swept {
	s := Swept{Connector: e.Connector, PID: e.PID, Outcome: "absent"}
	if e.Boot != bootID() {
		return s
	}
	for deadline := time.Now().Add(killWait + termWait); ; time.Sleep(10 * time.Millisecond) {
		pids := m.leftovers(e)
		if len(pids) == 0 {
			break
		}
		if time.Now().After(deadline) {
			s.Outcome = "left"
			return s
		}
		s.Outcome, s.PIDs = "ended", union(s.PIDs, pids)
		killEach(pids)
	}
	if e.PID == 0 && s.Outcome == "absent" {
		s.Outcome = "unknown"
	}
	return s
}

// leftovers finds the living processes of an entry, never our own children.
func (m *Manager) leftovers(e entry) []int {
	all := processes()
	members := map[int]bool{}
	var marker []string
	if e.Data != "" {
		marker = []string{"PLUGIN_DATA=" + e.Data}
	}
	ours := map[int]bool{}
	for _, p := range all {
		if m.leads(p.pid) || m.leads(p.session) {
			ours[p.pid] = true
		}
	}
	descend(ours, all)
	ours[os.Getpid()] = true
	for _, p := range all {
		if p.zombie || ours[p.pid] || p.start < e.Start {
			continue
		}
		leader := e.PID != 0 && p.pid == e.PID && p.start == e.Start
		if leader && (sameProgram(imagePath(p.pid), e.Executable) || hasMarker(p.pid, marker...)) {
			members[p.pid] = true
		} else if !leader && hasMarker(p.pid, marker...) {
			members[p.pid] = true
		}
	}
	if members[e.PID] {
		for _, p := range all {
			if p.session == e.PID || p.group == e.PID {
				members[p.pid] = true
			}
		}
	}
	descend(members, all)
	var pids []int
	for _, p := range all {
		if members[p.pid] && !p.zombie && !ours[p.pid] {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// sameProgram also knows a program whose file was replaced meanwhile.
func sameProgram(image, recorded string) bool {
	return image != "" && strings.TrimSuffix(image, " (deleted)") == strings.TrimSuffix(recorded, " (deleted)")
}

func union(a, b []int) []int {
	for _, n := range b {
		found := false
		for _, have := range a {
			found = found || have == n
		}
		if !found {
			a = append(a, n)
		}
	}
	return a
}
