//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// newWindowHome is an empty home whose program is the desktop one, for its commands too.
func newWindowHome(t testing.TB) *home { return newHomeOf(t, desktopProgram(t)) }

// served is the host of a window, as the discovery file tells it.
func (h *home) served() *sidecar {
	h.t.Helper()
	s := &sidecar{home: h}
	waitFor(h.t, "the window's host is served", atLength, func() bool {
		raw, err := os.ReadFile(h.state("desktop.json"))
		return err == nil && json.Unmarshal(raw, &s.ready) == nil && s.URL != ""
	})
	return s
}

// approve takes a person from the first page to an enabled tool.
func (d *desktop) approve() {
	d.t.Helper()
	d.sees("heading", "^Home$")
	d.sees("link", "Look at the first plugin")
	d.shot("home-first")
	d.press("link", "Look at the first plugin")
	d.sees("heading", "^notes/main$")
	d.press("button", "^Review")
	d.sees("text", "wants to run a program on this computer")
	d.shot("review-run")
	d.press("button", "^Allow to run")
	d.sees("text", "Which of its 4 tools may agents call")
	d.shot("review-tools")
	d.press("checkbox", "^list_notes$")
	d.press("button", "^Enable 1 tool$")
	d.sees("button", "^Disable$")
	d.shot("enabled")
}

// TestTheWindowFromAnEmptyHomeToACall: a person who has only the screen approves the
// example plugin and chooses a tool; an agent calls it on the kept port; the record says
// that the window answered; and the child has nothing of the window's.
func TestTheWindowFromAnEmptyHomeToACall(t *testing.T) {
	t.Parallel()
	h := newWindowHome(t)
	d := h.openWindow(newScreen(t))
	d.approve()
	if got := h.connector("notes/main"); got.State != "enabled" {
		t.Errorf("after the person's answers it is %+v", got)
	}

	token := h.addClient("claude")
	s := h.served()
	if s.PID != d.cmd.Process.Pid {
		t.Errorf("process %d is served and not the window, %d", s.PID, d.cmd.Process.Pid)
	}
	agent := s.sdkOverHTTP(t, token, "")
	if got := <-agent.start(t, "notes__main__list_notes", map[string]any{}); got.err != nil {
		t.Fatalf("the call: %v", got.err)
	}
	d.noPipesIn(h.plugins())
	h.ok("health")

	var records []struct{ Action, Via string }
	h.read(&records, "audit", "list")
	by := map[string]bool{}
	for _, record := range records {
		by[record.Action+" "+record.Via] = true
	}
	for _, want := range []string{"allow gui", "enable gui"} {
		if !by[want] {
			t.Errorf("the audit does not say %q: %v", want, by)
		}
	}
	d.quits()
	for _, kept := range []string{"window/frame.json", "window/webview"} {
		if _, err := os.Stat(h.state(kept)); err != nil {
			t.Error(err)
		}
	}
	entries, err := os.ReadDir(filepath.Join(h.dir, ".local", "share"))
	if err != nil || len(entries) != 1 {
		t.Errorf("the webview keeps something outside Sallyport's folders: %v %v", entries, err)
	}
}

// noPipesIn fails for each descriptor of a child above its three that the window has too.
func (d *desktop) noPipesIn(children []process) {
	d.t.Helper()
	links := func(pid int) map[string]string {
		all := map[string]string{}
		entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		for _, entry := range entries {
			if target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, entry.Name())); err == nil {
				all[entry.Name()] = target
			}
		}
		return all
	}
	own := map[string]bool{}
	for _, target := range links(d.cmd.Process.Pid) {
		if strings.HasPrefix(target, "pipe:") || strings.HasPrefix(target, "socket:") {
			own[target] = true
		}
	}
	seen := 0
	for _, child := range children {
		if strings.Contains(child.line, "WebKit") {
			continue // the webview's own
		}
		seen++
		for name, target := range links(child.pid) {
			if fd, _ := strconv.Atoi(name); fd > 2 && own[target] {
				d.t.Errorf("%s has descriptor %d of the window: %s", child, fd, target)
			}
		}
	}
	if seen == 0 {
		d.t.Error("no child of a plugin was found")
	}
}

// TestAWindowAttachesToARunningSidecar: it shows the one that is there; says so when that
// one has ended; shows its successor by itself; and starts one when it is told to.
func TestAWindowAttachesToARunningSidecar(t *testing.T) {
	t.Parallel()
	h := newWindowHome(t)
	first := h.serve()
	d := h.openWindow(newScreen(t))
	d.sees("text", "Shows a Sallyport that was started elsewhere")
	d.approve()
	d.shot("attached")
	var records []struct{ Action, Via string }
	h.read(&records, "audit", "list")
	allowed := false
	for _, record := range records {
		allowed = allowed || record.Action == "allow" && record.Via == "window-attached"
		if record.Via == "gui" {
			t.Errorf("an attached window answered as gui: %+v", record)
		}
	}
	if !allowed {
		t.Errorf("the audit does not say that the attached window allowed it: %+v", records)
	}

	first.stop()
	d.sees("text", "has ended")
	d.shot("ended")
	second := h.serve()
	d.must("gone", "text", "has ended")
	d.sees("text", "Shows a Sallyport that was started elsewhere")
	second.stop()
	d.sees("text", "has ended")
	d.press("button", "^Start it here$")
	d.must("gone", "text", "has ended")
	if s := h.served(); s.PID != d.cmd.Process.Pid {
		t.Errorf("process %d is served and not the window", s.PID)
	}
	d.quits()
}

// TestASecondStartShowsTheWindow: it ends at once and well, also without a bus, and a link
// takes the first window to its question. Any other text takes it nowhere.
func TestASecondStartShowsTheWindow(t *testing.T) {
	t.Parallel()
	h := newWindowHome(t)
	s := newScreen(t)
	d := h.openWindow(s)
	d.sees("heading", "^Home$")
	d.press("link", "Look at the first plugin")
	d.press("button", "^Review")
	d.sees("text", "wants to run a program on this computer")
	d.press("link", "^Home$")
	var open []struct{ ID, State string }
	h.read(&open, "decisions", "list")
	if len(open) != 1 {
		t.Fatalf("these questions are open: %+v", open)
	}
	for _, link := range []string{"sallyport://review/../plugins", "sallyport://review/d-aaaaaaaaaaaaaaaa'-alert(1)", "sallyport://settings", "sallyport://"} {
		if got := h.openWindow(s, link).ends(); got != 0 {
			t.Errorf("a second start with %q exits with %d", link, got)
		}
		d.sees("heading", "^Home$")
	}
	lonely := &screen{t: t, env: []string{"DISPLAY=", "DBUS_SESSION_BUS_ADDRESS="}}
	link := "sallyport://review/" + open[0].ID
	if second := h.openWindow(lonely, link); second.ends() != 0 {
		t.Errorf("it says %s", second.errs.String())
	}
	d.sees("heading", "^Review$")
	d.sees("text", "wants to run a program on this computer")
	d.quits()
}

// TestASignalEndsTheWindowAtAnyMoment: before there is a window, while it is made, and
// once it is there; what it started ends with it.
func TestASignalEndsTheWindowAtAnyMoment(t *testing.T) {
	h := newWindowHome(t)
	s := newScreen(t)
	for _, wait := range []time.Duration{0, 30 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second} {
		d := h.openWindow(s)
		// As soon as signals count: the first thing that the window does is to take its lock.
		waitFor(t, "it has begun", atLength, func() bool { _, err := os.Stat(h.state("window/lock")); return err == nil })
		time.Sleep(wait)
		_ = d.cmd.Process.Signal(syscall.SIGTERM)
		if code := d.ends(); code != 0 {
			t.Errorf("after %s it exits with %d\n%s", wait, code, d.errs.String())
		}
		waitFor(t, "nothing is left", atLength, func() bool { return len(h.processes()) == 0 })
		_ = os.Remove(h.state("window/lock"))
	}
	d := h.openWindow(s)
	d.sees("heading", "^Home$")
	d.quits()
	waitFor(t, "nothing is left", atLength, func() bool { return len(h.processes()) == 0 })
}

// TestAKilledWindowLeavesNothing: its plugins and its page end with it (C19).
func TestAKilledWindowLeavesNothing(t *testing.T) {
	t.Parallel()
	h := newWindowHome(t)
	d := h.openWindow(newScreen(t))
	d.approve()
	token := h.addClient("claude")
	agent := h.served().sdkOverHTTP(t, token, "")
	if got := <-agent.start(t, "notes__main__list_notes", map[string]any{}); got.err != nil {
		t.Fatalf("the call: %v", got.err)
	}
	if len(h.plugins()) == 0 || d.webProcess() == 0 {
		t.Fatal("nothing runs that could be left")
	}
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.ends()
	waitFor(t, "nothing is left", atLength, func() bool { return len(h.processes()) == 0 })
}

// TestAKilledPageIsReplaced: the web process is another program, which can end.
func TestAKilledPageIsReplaced(t *testing.T) {
	t.Parallel()
	h := newWindowHome(t)
	d := h.openWindow(newScreen(t))
	d.sees("link", "Look at the first plugin")
	d.press("link", "Plugins")
	d.sees("heading", "^Plugins$")
	before := d.webProcess()
	if before == 0 {
		t.Fatal("its page has no process of its own: the test looks for the wrong name")
	}
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "there is another", atLength, func() bool { now := d.webProcess(); return now != 0 && now != before })
	d.sees("heading", "^Plugins$")
	d.sees("link", "notes/main")
	d.quits()
}

// TestWithoutAScreenTheWindowRefuses: no screen is named, or the one that is named is not
// there. What was started by then has ended.
func TestWithoutAScreenTheWindowRefuses(t *testing.T) {
	t.Parallel()
	h := newWindowHome(t)
	for _, display := range []string{"", ":4242"} {
		d := h.openWindow(&screen{t: t, env: []string{"DISPLAY=" + display}})
		if code := d.ends(); code != 1 || !strings.Contains(d.errs.String(), "no-screen: ") || !strings.Contains(d.errs.String(), "sallyport open") {
			t.Errorf("DISPLAY=%q: it exits with %d and says %s", display, code, d.errs.String())
		}
		if strings.Contains(d.errs.String(), "goroutine") {
			t.Errorf("it panics: %s", d.errs.String())
		}
	}
}

// BenchmarkWindow prints how long a person waits: from the start to a window on the screen,
// and from there to what the host says on it.
func BenchmarkWindow(b *testing.B) {
	if _, err := exec.LookPath("xdotool"); err != nil {
		b.Fatal("xdotool is missing: scripts/setup test installs it")
	}
	h := newWindowHome(b)
	s := newScreen(b)
	h.openWindow(s).warm()
	var visible, data time.Duration
	for b.Loop() {
		begun := time.Now()
		d := h.openWindow(s)
		find := exec.Command("xdotool", "search", "--sync", "--onlyvisible", "--name", "^Sallyport$")
		find.Env = s.env
		if out, err := find.CombinedOutput(); err != nil {
			b.Fatalf("%v %s", err, out)
		}
		shown := time.Now()
		d.sees("link", "Look at the first plugin")
		visible, data = visible+shown.Sub(begun), data+time.Since(shown)
		d.quits()
	}
	b.ReportMetric(float64(visible.Milliseconds())/float64(b.N), "ms-to-window/op")
	b.ReportMetric(float64(data.Milliseconds())/float64(b.N), "ms-to-data/op")
}

// warm opens and ends it once.
func (d *desktop) warm() {
	d.sees("link", "Look at the first plugin")
	d.quits()
}
