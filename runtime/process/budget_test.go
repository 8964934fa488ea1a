//go:build !windows

package process

import (
	"context"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/plugins"
)

// TestOverBudgetEndsWithAReason: a tree over its budget is ended with the reason, and
// its neighbour goes on.
func TestOverBudgetEndsWithAReason(t *testing.T) {
	can := canEnforce()
	for _, row := range []struct {
		what      string
		enforced  bool
		budget    plugins.Budget
		behaviour string
		code      string
	}{
		{"memory", can.memory, plugins.Budget{MemoryBytes: 128 << 20}, "eat-memory", "budget-memory"},
		{"processes", can.processes, plugins.Budget{Processes: 2}, "family stay grandchild grandchild", "budget-processes"},
		{"a fork bomb", can.processes, plugins.Budget{Processes: 16}, "fork-bomb 8", "budget-processes"},
		{"processor time", can.cpu, plugins.Budget{CPUSeconds: 1}, "eat-cpu", "budget-cpu"},
	} {
		t.Run(row.what, func(t *testing.T) {
			t.Parallel()
			if !row.enforced && runtime.GOOS != "linux" {
				t.Skip("this system cannot enforce it")
			}
			m := newManager(t, nil)
			neighbour := start(t, m, childLaunch(t, "polite"))
			l := childLaunch(t, strings.Fields(row.behaviour)...)
			l.Options.Budget = row.budget
			c := start(t, m, l)
			go io.Copy(io.Discard, c.Stdout())
			select {
			case <-c.Gone():
			case <-time.After(time.Minute):
				t.Fatal("it goes on")
			}
			if got := coded.Of(c.Reason()); got != row.code {
				t.Errorf("exit %+v, stderr %.300q", c.Exit(), c.Stderr().Lines())
			}
			if strings.HasPrefix(row.behaviour, "fork-bomb") {
				eventually(t, "nothing of it is left", func() bool { return count("fork-bomb") == 0 })
			}
			if pid := pidsIn(firstLine(t, neighbour)); len(pid) != 1 || !alive(pid[0]) || neighbour.Reason() != nil {
				t.Errorf("its neighbour: %+v", neighbour.Exit())
			}
		})
	}
}

// count is how many children of this test behave in a way.
func count(behaviour string) int {
	n := 0
	for _, p := range processes() {
		line, _ := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/cmdline")
		if !p.zombie && strings.Contains(string(line), "__child\x00"+behaviour) {
			n++
		}
	}
	return n
}

func TestOpenFilesAreLimited(t *testing.T) {
	l := childLaunch(t, "open-files")
	l.Options.Budget.OpenFiles = 32
	c := start(t, newManager(t, nil), l)
	var n int
	if line := firstLine(t, c); len(pidsIn(line)) > 0 {
		n = pidsIn(line)[0]
	}
	if n < 16 || n > 32 {
		t.Errorf("it opened %d files", n)
	}
	c.Stop(context.Background(), nil)
}

// TestEveryChildHasABudget: what nobody asked for has a default, which is far away
// from what a child uses.
func TestEveryChildHasABudget(t *testing.T) {
	m, l := newManager(t, nil), childLaunch(t, "describe")
	d := describeChild(t, m, l)
	c := start(t, m, l)
	if d.Open.Cur > 8192 || d.Open.Cur < 1024 {
		t.Errorf("it may open %d files", d.Open.Cur)
	}
	if c.limits.Effective() != (plugins.Budget{MemoryBytes: 4 << 30, CPUSeconds: 14400, OpenFiles: 8192, Processes: 256, Calls: 256, ResultBytes: 64 << 20}) {
		t.Errorf("the defaults are %+v", c.limits.Effective())
	}
	<-c.Gone()
}

func TestARequiredBudgetThatCannotBeEnforcedIsRefused(t *testing.T) {
	linux, macOS := enforced{true, true, true, true}, enforced{openFiles: true, processes: true}
	for _, row := range []struct {
		what   string
		budget plugins.Budget
		can    enforced
		wants  string // what the refusal names; "" is none
	}{
		{"nothing is required", plugins.Budget{MemoryBytes: 1}, enforced{}, ""},
		{"everything can be enforced", plugins.Budget{Required: true}, linux, ""},
		{"memory is required where it cannot be", plugins.Budget{Required: true, MemoryBytes: 1}, macOS, "memory"},
		{"what can be is required there", plugins.Budget{Required: true, Processes: 4, OpenFiles: 9}, macOS, ""},
		{"nothing is named", plugins.Budget{Required: true}, macOS, "memory and processor time"},
		{"nothing can be", plugins.Budget{Required: true}, enforced{}, "memory and processor time and open files and processes"},
	} {
		err := unenforceable(plugins.ID{Plugin: "demo", Server: "main"}, row.budget, row.can)
		if row.wants == "" {
			if err != nil {
				t.Errorf("%s: %v", row.what, err)
			}
			continue
		}
		if coded.Of(err) != "budget-unenforceable" || !strings.Contains(err.Error(), "a budget of "+row.wants+" only") {
			t.Errorf("%s: %v", row.what, err)
		}
	}
}

// TestProcessorTimeIsOfTheLastHour: a server may live for ever, as long as no hour of
// it is too busy.
func TestProcessorTimeIsOfTheLastHour(t *testing.T) {
	var s spentTime
	cpu := map[int]time.Duration{}
	for minute := range 60 * 24 { // a day at a tenth of a processor
		cpu = map[int]time.Duration{1: time.Duration(minute) * 6 * time.Second}
		if sum := s.add(time.Duration(minute)*time.Minute, cpu); sum > 6*time.Minute {
			t.Fatalf("after %d minutes an hour has %v", minute, sum)
		}
	}
	begun := 24 * time.Hour
	cpu = map[int]time.Duration{1: cpu[1] + 40*time.Second}
	if sum := s.add(begun, cpu); sum < 6*time.Minute || sum > 7*time.Minute {
		t.Errorf("a busy minute makes it %v", sum)
	}
	if sum := s.add(begun+2*time.Hour, cpu); sum != 0 {
		t.Errorf("after two idle hours it is %v", sum)
	}
	if sum := s.add(begun+2*time.Hour, map[int]time.Duration{1: 3 * time.Second, 2: time.Second}); sum != 4*time.Second {
		t.Errorf("another process of the same number, and a new one: %v", sum)
	}
}
