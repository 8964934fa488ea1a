//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// An agent that only starts commands needs nobody to have started anything.
func TestMCPCommandStartsASidecarAndNoPlugin(t *testing.T) {
	h := newHome(t)
	t.Cleanup(h.endSidecars)
	h.addFake("fake", "polite")
	h.ok("approve", "fake", "--yes", "--tools", "echo,pid")
	a := h.sdkOverStdio(t, "claude", "2025-11-25")
	if tools := a.tools(t); len(tools) != 2 {
		t.Errorf("it may call %v", tools)
	}
	if got := h.plugins(); len(got) != 0 {
		t.Errorf("a list was read, and it runs %v", got)
	}
	a.call(t, "fake__main__echo", nil)

	serving, servers := h.sidecars(), h.plugins()
	if len(serving) != 1 || len(servers) != 1 {
		t.Fatalf("sidecars %v, servers %v; want one of each", serving, servers)
	}
	if parent := parentOf(t, servers[0].pid); parent != serving[0].pid {
		t.Errorf("the server's parent is %d, want the sidecar %d", parent, serving[0].pid)
	}
	// The agent goes; what it started stays for the next.
	a.Close()
	waitFor(t, "the command ends with its agent", 5*time.Second, func() bool { return len(h.processes()) == 2 })
	if now := h.sidecars(); len(now) != 1 || now[0].pid != serving[0].pid {
		t.Errorf("sidecars after the agent left: %v", now)
	}
}

// Agents start their commands at the same moment, when a person logs in.
func TestManyMCPCommandsEndUpWithOneSidecar(t *testing.T) {
	const agents = 8
	h := newHome(t)
	t.Cleanup(h.endSidecars)
	h.addFake("fake", "polite")
	h.ok("approve", "fake", "--yes", "--tools", "pid")
	pids := make([]string, agents)
	var all sync.WaitGroup
	for n := range agents {
		all.Go(func() {
			a := h.sdkOverStdio(t, "agent", "")
			result := a.call(t, "fake__main__pid", nil)
			pids[n] = string(encode(t, result.StructuredContent))
		})
	}
	all.Wait()
	for _, pid := range pids {
		if pid != pids[0] {
			t.Errorf("they speak to different servers: %v", pids)
			break
		}
	}
	waitFor(t, "one sidecar is left", 15*time.Second, func() bool { return len(h.sidecars()) == 1 })
	if got := h.plugins(); len(got) != 1 {
		t.Errorf("servers: %v", got)
	}
}

// Agents start commands with a small environment, so a home of its own is an
// argument there; the sidecar that is started gets it too.
func TestMCPCommandKeepsToTheHomeItIsGiven(t *testing.T) {
	h := newHome(t)
	t.Cleanup(h.endSidecars)
	own := filepath.Join(h.dir, "another home")
	h.addFake("fake", "polite")
	h.ok("approve", "fake", "--yes", "--tools", "echo", "--home", own)
	a := connectSDK(t, &sdk.CommandTransport{Command: h.command("mcp", "--client", "claude", "--home", own)}, "")
	a.call(t, "fake__main__echo", nil)
	if _, err := os.Stat(filepath.Join(own, "state", "desktop.json")); err != nil {
		t.Error(err)
	}
	for _, elsewhere := range []string{h.data(), h.state(), filepath.Join(h.dir, ".config", "sallyport")} {
		if _, err := os.Stat(elsewhere); err == nil {
			t.Errorf("it used %s too", elsewhere)
		}
	}
}

// endSidecars ends what `sallyport mcp` has started and left, and waits for it.
func (h *home) endSidecars() {
	for _, p := range h.sidecars() {
		syscall.Kill(p.pid, syscall.SIGTERM)
	}
	holds(30*time.Second, func() bool { return len(h.sidecars()) == 0 })
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	for line := range strings.Lines(procFile(pid, "status")) {
		if value, ok := strings.CutPrefix(line, "PPid:"); ok {
			return number(t, value)
		}
	}
	t.Fatalf("process %d has no parent", pid)
	return 0
}
