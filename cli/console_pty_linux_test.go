package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/loopback"
	"sallyport/runtime/host"
)

// sidecarIn runs a sidecar for a home until the test ends.
func sidecarIn(t *testing.T, home string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sallyport", "serve")
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "SALLYPORT_HOME=" + home, "SHELL=/bin/sh"}
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	cmd.WaitDelay = time.Minute
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(unix.SIGTERM)
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := loopback.ReadDiscovery(host.PlacesIn(home).State); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no sidecar starts")
		}
	}
}

func (s *screen) presses(keys string) {
	s.t.Helper()
	if _, err := s.keys.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) size(cols, rows uint16) {
	s.t.Helper()
	if err := unix.IoctlSetWinsize(int(s.keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: cols, Row: rows}); err != nil {
		s.t.Fatal(err)
	}
}

// A console on a person's own terminal: what is typed reaches it, Ctrl-C too, its size
// follows, and its exit code is the command's.
func TestAConsoleOnATerminal(t *testing.T) {
	if _, err := fakeServer(); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("SALLYPORT_HOME", home)
	if err := addPlugin(filepath.Join(home, "data", "plugins"), "fake", []string{"main"}); err != nil {
		t.Fatal(err)
	}
	none := onTerminal(t, home, "--home", home, "console", "fake")
	if code := none.end(); code != 1 || !strings.Contains(none.text(), "not-running") {
		t.Errorf("without a sidecar it exits with %d: %s", code, none.text())
	}
	sidecarIn(t, home)
	if code, _, errs := run(t, "console", "fake"); code != 1 || !strings.Contains(errs, "console-needs-terminal") {
		t.Errorf("without a terminal it exits with %d: %s", code, errs)
	}
	before := onTerminal(t, home, "--home", home, "console", "fake")
	if code := before.end(); code != 1 || !strings.Contains(before.text(), "never-approved") {
		t.Errorf("before it is approved it exits with %d: %s", code, before.text())
	}
	run(t, "approve", "fake", "--yes", "--tools", "echo")
	s := onTerminal(t, home, "--home", home, "console", "fake")
	s.shows("exit or Ctrl-D leaves it")
	s.size(100, 40)
	s.presses("sh -c 'echo rea\"\"dy; exec sleep 600'\n") // it is in front when it says so
	s.shows("ready\r\n")
	s.presses("\x03")
	s.presses("stty size; echo $TERM' in '$PLUGIN_DATA\n")
	s.shows("40 100\r\nxterm in ")
	s.presses("exit 5\n")
	if code := s.end(); code != 5 {
		t.Errorf("it exits with %d:\n%s", code, s.text())
	}
	_, out, _ := run(t, "audit", "list", "--action", "console")
	for _, want := range []string{"open", "close exit=5", "never-approved", "(cli)"} {
		if !strings.Contains(out, want) {
			t.Errorf("on record is no %q:\n%s", want, out)
		}
	}
	revoked := onTerminal(t, home, "--home", home, "console", "fake")
	revoked.presses("echo rea''dy\n")
	revoked.shows("ready\r\n")
	run(t, "revoke", "fake")
	if code := revoked.end(); code != 1 || !strings.Contains(revoked.text(), "revoked: its approval was revoked") {
		t.Errorf("when its approval is revoked it exits with %d:\n%s", code, revoked.text())
	}
}
