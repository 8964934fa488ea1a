package process

import (
	"fmt"
	"strings"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/plugins"
)

const (
	// closeLook is how often a tree is measured that has a budget of its own or uses a
	// quarter of what everybody has, and farLook every other.
	closeLook = 250 * time.Millisecond
	farLook   = time.Second
	// cpuWindow is what a budget of processor time is for.
	cpuWindow = time.Hour
	cpuSlots  = 60
)

// usage is what a tree uses at a moment, as far as the system tells.
type usage struct {
	memory    int64 // bytes that it shares with nobody
	processes int
	cpu       map[int]time.Duration // by process, since each began
}

// enforced says which budgets a system lets Sallyport enforce; canEnforce knows.
type enforced struct{ memory, cpu, openFiles, processes bool }

// unenforceable refuses a budget that the operator requires of a system that cannot
// enforce it. What nobody named is required too where nothing is named.
func unenforceable(l plugins.ID, b plugins.Budget, can enforced) error {
	if !b.Required {
		return nil
	}
	none := b.MemoryBytes == 0 && b.CPUSeconds == 0 && b.OpenFiles == 0 && b.Processes == 0
	var missing []string
	for _, one := range []struct {
		what  string
		asked int64
		can   bool
	}{
		{"memory", b.MemoryBytes, can.memory}, {"processor time", b.CPUSeconds, can.cpu},
		{"open files", b.OpenFiles, can.openFiles}, {"processes", b.Processes, can.processes},
	} {
		if (none || one.asked > 0) && !one.can {
			missing = append(missing, one.what)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &coded.Error{Code: "budget-unenforceable",
		Sentence: fmt.Sprintf("%s is to run within a budget of %s only, and this system cannot enforce that", l, strings.Join(missing, " and ")),
		Next:     `take "required" out of its budget in config.json, or run it on a system that can`}
}

// watchBudget ends a tree that is over its budget and says why.
func (c *Child) watchBudget() {
	asked := c.limits.MemoryBytes > 0 || c.limits.CPUSeconds > 0 || c.limits.Processes > 0
	limits, begun, pause := c.limits.Effective(), time.Now(), closeLook
	var spent spentTime
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-timer.C:
		}
		used := c.tree.usage(c.manager)
		cpu := spent.add(time.Since(begun), used.cpu)
		if over := overBudget(c.id, used, cpu, limits); over != nil {
			c.end(over)
			return
		}
		pause = farLook
		if asked || used.memory > limits.MemoryBytes/4 || int64(used.processes) > limits.Processes/4 || int64(cpu/time.Second) > limits.CPUSeconds/4 {
			pause = closeLook
		}
		timer.Reset(pause)
	}
}

func overBudget(id plugins.ID, used usage, cpu time.Duration, limits plugins.Budget) *coded.Error {
	var over *coded.Error
	switch {
	case used.memory > limits.MemoryBytes:
		over = coded.New("budget-memory", fmt.Sprintf("%s was ended: it used %d MiB of memory and may use %d MiB", id, used.memory>>20, limits.MemoryBytes>>20))
	case int64(used.processes) > limits.Processes:
		over = coded.New("budget-processes", fmt.Sprintf("%s was ended: it had %d processes and may have %d", id, used.processes, limits.Processes))
	case cpu > time.Duration(limits.CPUSeconds)*time.Second:
		over = coded.New("budget-cpu", fmt.Sprintf("%s was ended: it used more than its %d seconds of processor time in an hour", id, limits.CPUSeconds))
	default:
		return nil
	}
	over.Next = "if it needs that much, raise its budget in config.json and approve it again"
	return over
}

// end kills the tree for a reason, which is there before the tree is gone.
func (c *Child) end(reason error) {
	c.mu.Lock()
	c.exit.Reason = reason
	c.mu.Unlock()
	c.Kill()
}

// Reason is why Sallyport ended the child by itself: the *coded.Error of a budget, or
// nil.
func (c *Child) Reason() error { return c.Exit().Reason }

// spentTime adds up processor time over the last hour, in slots of a minute.
type spentTime struct {
	last  map[int]time.Duration
	slots [cpuSlots]time.Duration
	slot  int // counted from the first
}

// add takes what each process has used since it began, and returns what all used
// within the last hour. A process that ended between two looks takes the time of
// after the first with it.
func (s *spentTime) add(elapsed time.Duration, cpu map[int]time.Duration) time.Duration {
	now := int(elapsed / (cpuWindow / cpuSlots))
	for gone := s.slot + 1; gone <= now && gone <= s.slot+cpuSlots; gone++ {
		s.slots[gone%cpuSlots] = 0
	}
	s.slot = now
	for pid, used := range cpu {
		more := used - s.last[pid]
		if more < 0 {
			more = used // another process has the number
		}
		s.slots[now%cpuSlots] += more
	}
	s.last = cpu
	var sum time.Duration
	for _, one := range s.slots {
		sum += one
	}
	return sum
}
