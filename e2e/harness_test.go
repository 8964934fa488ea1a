//go:build linux

package e2e

import (
	"strings"
	"testing"
	"time"
)

// The harness itself: what it says of processes is what the other tests rely on.
func TestSidecarStartsStopsAndLeavesNothing(t *testing.T) {
	h := newHome(t)
	h.addFake("fake", "polite")
	s := h.serve()
	if s.Event != "ready" || s.Port == 0 || s.PID != s.cmd.Process.Pid {
		t.Fatalf("ready: %+v", s.ready)
	}
	if got := h.connector("fake/main"); got.State != "approval_required" {
		t.Errorf("a plugin that nobody has looked at is %+v", got)
	}
	h.ok("approve", "fake", "--yes", "--tools", "echo,pid")
	h.ok("call", "fake", "pid")
	if got := h.plugins(); len(got) != 1 {
		t.Errorf("one server was called, these run: %v", got)
	}
	if got := h.run("call", "fake", "env"); got.code != 1 || !strings.Contains(got.stderr, "permission-denied") {
		t.Errorf("a tool that was not chosen: %+v", got)
	}
	s.stop()
	waitFor(t, "nothing runs after a stop", 3*time.Second, func() bool { return len(h.processes()) == 0 })

	again := h.serve()
	h.ok("call", "fake", "pid")
	again.kill()
	waitFor(t, "its server ends with a killed sidecar, or is swept", 5*time.Second, func() bool { return len(h.sidecars()) == 0 })
	third := h.serve()
	waitFor(t, "no orphan survives the next start", 5*time.Second, func() bool { return len(h.plugins()) == 0 })
	third.stop()
}
