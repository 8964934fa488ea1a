package process

import (
	"fmt"
	"time"

	"sallyport/internal/coded"
)

// budgetTick is how often memory and processes of a whole tree are added up,
// only for connectors that have such a budget.
const budgetTick = 250 * time.Millisecond

// watchBudget ends a tree that is over its budget and says why.
func (c *Child) watchBudget() {
	ticker := time.NewTicker(budgetTick)
	defer ticker.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-ticker.C:
		}
		memory, processes, known := c.tree.usage(c.manager)
		switch {
		case !known:
		case c.limits.MemoryBytes > 0 && memory > c.limits.MemoryBytes:
			c.overBudget("budget-memory", fmt.Sprintf("%s used %d MiB of memory and may use %d MiB", c.id, memory>>20, c.limits.MemoryBytes>>20))
			return
		case c.limits.Processes > 0 && int64(processes) > c.limits.Processes:
			c.overBudget("budget-processes", fmt.Sprintf("%s had %d processes and may have %d", c.id, processes, c.limits.Processes))
			return
		}
	}
}

func (c *Child) overBudget(code, sentence string) {
	c.mu.Lock()
	c.exit.Reason = coded.New(code, sentence)
	c.mu.Unlock()
	c.Kill()
}

// blameCPU says that a leader which the kernel ended had used up its seconds.
func (c *Child) blameCPU(used time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if limit := c.limits.CPUSeconds; limit > 0 && c.exit.Signal != "" && c.exit.Reason == nil && used >= time.Duration(limit)*time.Second {
		c.exit.Reason = coded.New("budget-cpu", fmt.Sprintf("%s used its %d seconds of processor time", c.id, limit))
	}
}
