package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// shows waits until something is on the screen.
func (s *screen) shows(text string) {
	s.t.Helper()
	deadline := time.After(60 * time.Second)
	for !strings.Contains(s.text(), text) {
		select {
		case <-s.more:
		case <-deadline:
			s.t.Fatalf("it never shows %q:\n%s", text, s.text())
		}
	}
}

// TestApproveOnATerminalIsCancelled: a first try that never ends is told of as it goes,
// Ctrl-C ends it with all that it started, and nothing is approved.
func TestApproveOnATerminalIsCancelled(t *testing.T) {
	home := t.TempDir()
	folder := filepath.Join(home, ".agents", "plugins", "slow")
	for name, text := range map[string]string{
		"plugin.json": `{"$schema":"https://agent-plugins.org/schemas/1.0.0/plugin.schema.json","name":"slow","version":"1.0.0"}`,
		"mcp.json":    `{"$schema":"https://agent-plugins.org/schemas/1.0.0/mcp.schema.json","mcpServers":{"main":{"type":"stdio","command":"./server"}}}`,
		"server":      "#!/bin/sh\nprintf 'fetching\\033[2J the index\\n' >&2\necho $$ >\"$HOME/pid\"\nsleep 600 &\necho $! >>\"$HOME/pid\"\nwait\n",
	} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := onTerminal(t, home, "approve", "slow")
	s.answer(mayItRun, "y\n")
	s.shows("waiting for its MCP handshake … ")
	s.shows("it says: fetching")
	if _, err := s.keys.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	code := s.end()
	for _, want := range []string{"you cancelled the first try, so nothing was approved", `| fetching`} {
		if !strings.Contains(s.text(), want) {
			t.Errorf("it does not say %q:\n%s", want, s.text())
		}
	}
	if code != 1 || strings.Contains(s.text(), "\x1b") {
		t.Errorf("it exits with %d:\n%q", code, s.text())
	}
	pids, err := os.ReadFile(filepath.Join(home, "pid"))
	if err != nil || len(strings.Fields(string(pids))) != 2 {
		t.Fatalf("the server's processes are %q, %v", pids, err)
	}
	for _, pid := range strings.Fields(string(pids)) {
		if _, err := os.Stat("/proc/" + pid); err == nil {
			t.Errorf("process %s is left", pid)
		}
	}
	t.Setenv("HOME", home)
	_, out, _ := run(t, "plugins", "list", "--json")
	if !strings.Contains(out, `"state": "approval_required"`) || strings.Contains(out, `"state": "pending"`) {
		t.Errorf("afterwards it is %s", out)
	}
}
