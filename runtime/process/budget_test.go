//go:build !windows

package process

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/plugins"
)

func TestOverBudgetEndsWithAReason(t *testing.T) {
	for _, row := range []struct {
		what      string
		budget    plugins.Budget
		behaviour string
		code      string
	}{
		{"memory", plugins.Budget{MemoryBytes: 128 << 20}, "eat-memory", "budget-memory"},
		{"processes", plugins.Budget{Processes: 2}, "family stay grandchild grandchild", "budget-processes"},
		{"processor time", plugins.Budget{CPUSeconds: 1}, "eat-cpu", "budget-cpu"},
	} {
		t.Run(row.what, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS != "linux" && row.what == "memory" {
				t.Skip("only Linux tells the memory of others")
			}
			l := childLaunch(t, strings.Fields(row.behaviour)...)
			l.Options.Budget = row.budget
			c := start(t, newManager(t, nil), l)
			<-c.Gone()
			if got := coded.Of(c.Exit().Reason); got != row.code {
				t.Errorf("exit %+v, stderr %.300q", c.Exit(), c.Stderr().Lines())
			}
		})
	}
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
