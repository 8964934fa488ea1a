//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"sallyport/internal/keyringtest"
)

// patience is how long a desktop may take on a busy machine.
const patience = 60 * time.Second

// desk is a screen of its own with a bus, a real notification service, and a bar that
// takes icons.
type desk struct {
	*home
	board
	conn   *dbus.Conn
	opened string // what a browser was given, a line each

	mu    sync.Mutex
	items []dbus.Sender // who registered an icon
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{home: newHome(t)}
	login := keyringtest.NoProvider(t)
	d.in(login)
	d.opened = filepath.Join(d.dir, "opened")
	d.hasBrowser()
	known, err := filepath.Abs("testdata/tray/races")
	if err != nil {
		t.Fatal(err)
	}
	d.with("DISPLAY="+screenOf(t), "GORACE=halt_on_error=0 exitcode=66 suppressions='"+known+"'")
	conn, err := login.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	d.conn = conn
	return d
}

// hasBrowser makes a program that writes down what it is given the person's browser.
func (d *desk) hasBrowser() {
	d.home.t.Helper()
	script := filepath.Join(d.dir, "browser")
	for path, file := range map[string]string{
		script: "#!/bin/sh\nprintf '%s\\n' \"$1\" >>'" + d.opened + "'\n",
		filepath.Join(d.dir, ".local/share/applications/browser.desktop"): "[Desktop Entry]\nType=Application\nName=Browser\nExec=" + script + " %u\nMimeType=x-scheme-handler/http;\n",
		filepath.Join(d.dir, ".config/mimeapps.list"):                     "[Default Applications]\nx-scheme-handler/http=browser.desktop\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			d.home.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(file), 0o700); err != nil {
			d.home.t.Fatal(err)
		}
	}
}

// screenOf starts a virtual screen and returns its DISPLAY.
func screenOf(t *testing.T) string {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(installed(t, "Xvfb", "xvfb"), "-displayfd", "3", "-screen", "0", "800x600x24", "-nolisten", "tcp")
	cmd.ExtraFiles = []*os.File{write}
	background(t, cmd)
	write.Close()
	defer read.Close()
	number, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatalf("the virtual screen did not start: %v", err)
	}
	return ":" + strings.TrimSpace(number)
}

func installed(t *testing.T, program, name string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is missing: install it with scripts/setup test, or sudo apt-get install %s", program, name)
	}
	return path
}

// background starts a program that ends with the test.
func background(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
	})
}

// showsNotices starts dunst, a notification service that is in use.
func (d *desk) showsNotices() {
	d.home.t.Helper()
	d.board = dunstOn(d.home.t.(*testing.T), d.home.env)
}

// board is dunst on a screen.
type board struct {
	t   testing.TB
	env []string
}

func dunstOn(t *testing.T, env []string) board {
	t.Helper()
	cmd := exec.Command(installed(t, "dunst", "dunst"), "-config", "/dev/null")
	cmd.Env = env
	background(t, cmd)
	b := board{t, env}
	waitFor(t, "dunst answers", patience, func() bool {
		_, err := b.ask("count", "displayed")
		return err == nil
	})
	return b
}

func (b board) ask(words ...string) (string, error) {
	cmd := exec.Command("dunstctl", words...)
	cmd.Env = b.env
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// notices is how many are shown.
func (b board) notices() string {
	n, err := b.ask("count", "displayed")
	if err != nil {
		b.t.Fatalf("dunstctl: %v", err)
	}
	return n
}

// clickNotice presses the newest.
func (b board) clickNotice() {
	if _, err := b.ask("action", "0"); err != nil {
		b.t.Fatalf("dunstctl: %v", err)
	}
}

// RegisterStatusNotifierItem makes the desk a bar: org.kde.StatusNotifierWatcher.
func (d *desk) RegisterStatusNotifierItem(_ string, from dbus.Sender) *dbus.Error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.items = append(d.items, from)
	return nil
}

func (d *desk) showsIcons() {
	d.home.t.Helper()
	const name = "org.kde.StatusNotifierWatcher"
	if err := d.conn.Export(d, "/StatusNotifierWatcher", name); err != nil {
		d.home.t.Fatal(err)
	}
	if _, err := d.conn.RequestName(name, dbus.NameFlagDoNotQueue); err != nil {
		d.home.t.Fatal(err)
	}
}

// icon waits for somebody's icon.
func (d *desk) icon() string {
	d.home.t.Helper()
	var from string
	waitFor(d.home.t, "an icon is there", patience, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(d.items) > 0 {
			from = string(d.items[0])
		}
		return from != ""
	})
	return from
}

// line is one of a menu.
type line struct {
	id    int32
	label string
}

// menu reads the icon's menu (com.canonical.dbusmenu).
func (d *desk) menu(of string) (lines []line) {
	var revision uint32
	var root struct {
		ID    int32
		Props map[string]dbus.Variant
		Kids  []dbus.Variant
	}
	err := d.conn.Object(of, "/StatusNotifierItem/menu").Call("com.canonical.dbusmenu.GetLayout", 0, int32(0), int32(-1), []string{}).Store(&revision, &root)
	if err != nil {
		return nil
	}
	for _, kid := range root.Kids {
		var one struct {
			ID    int32
			Props map[string]dbus.Variant
			Kids  []dbus.Variant
		}
		if dbus.Store([]any{kid.Value()}, &one) == nil {
			label, _ := one.Props["label"].Value().(string)
			lines = append(lines, line{one.ID, label})
		}
	}
	return lines
}

func (d *desk) menuHas(of, label string) (found line) {
	d.home.t.Helper()
	var seen []line
	defer func() {
		if d.home.t.Failed() {
			d.home.t.Logf("the menu is %v", seen)
		}
	}()
	waitFor(d.home.t, fmt.Sprintf("the menu has %q", label), patience, func() bool {
		seen = d.menu(of)
		for _, one := range seen {
			if strings.Contains(one.label, label) {
				found = one
				return true
			}
		}
		return false
	})
	return found
}

func (d *desk) clickLine(of string, l line) {
	d.home.t.Helper()
	call := d.conn.Object(of, "/StatusNotifierItem/menu").Call("com.canonical.dbusmenu.Event", 0, l.id, "clicked", dbus.MakeVariant(""), uint32(0))
	if call.Err != nil {
		d.home.t.Fatal(call.Err)
	}
}

// browserGot waits until the browser was given an address with all of the parts.
func (d *desk) browserGot(parts ...string) {
	d.home.t.Helper()
	var got []byte
	waitFor(d.home.t, fmt.Sprintf("the browser gets an address with %v", parts), patience, func() bool {
		got, _ = os.ReadFile(d.opened)
		lines := strings.Split(strings.TrimSpace(string(got)), "\n")
		for _, part := range parts {
			if !strings.Contains(lines[len(lines)-1], part) {
				return false
			}
		}
		return true
	})
	if err := os.Remove(d.opened); err != nil {
		d.home.t.Fatal(err)
	}
}

// picture keeps the screen, to be looked at, where pictures are kept.
func (d *desk) picture(name string) {
	folder := os.Getenv("SALLYPORT_SHOTS")
	if folder == "" {
		return
	}
	cmd := exec.Command("scrot", "-o", filepath.Join(folder, name+".png"))
	cmd.Env = d.home.env
	if out, err := cmd.CombinedOutput(); err != nil {
		d.home.t.Errorf("scrot: %v %s", err, out)
	}
}

// tray starts `sallyport tray`.
func (d *desk) tray() (cmd *exec.Cmd, said *bytes.Buffer) {
	d.home.t.Helper()
	cmd = d.command("tray")
	said = &bytes.Buffer{}
	cmd.Stderr = said
	background(d.home.t.(*testing.T), cmd)
	return cmd, said
}

// TestSomebodyIsToldThatADecisionWaits: a notice of a real notification service, whose
// click opens just that review, and which goes when the question is answered elsewhere.
func TestSomebodyIsToldThatADecisionWaits(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.showsNotices()
	d.showsIcons()
	d.addFake("one", "polite")
	d.addFake("two", "polite")
	s := d.serve()
	tray, said := d.tray()
	icon := d.icon()
	d.menuHas(icon, "nothing waits for you")
	if d.notices() != "0" {
		t.Errorf("nothing waits, and %s notices are shown", d.notices())
	}

	first := s.question("one/main")
	waitFor(t, "a notice is shown", patience, func() bool { return d.notices() == "1" })
	d.picture("notice")
	d.clickNotice()
	d.browserGot("/#/open?code=", "&review="+first)

	second := s.question("two/main")
	waitFor(t, "a notice about the second is shown", patience, func() bool { return d.notices() != "0" })
	d.clickLine(icon, d.menuHas(icon, "two 1.0.0 wants to run a program on this computer."))
	d.browserGot("&review=" + second)
	d.menuHas(icon, "2 decisions wait for you")

	d.ok("decisions", "answer", first, "deny")
	d.ok("decisions", "answer", second, "deny")
	waitFor(t, "notices about what was answered go", patience, func() bool { return d.notices() == "0" })
	d.menuHas(icon, "nothing waits for you")

	if got := d.run("tray"); got.code != 1 || !strings.Contains(got.stderr, "tray-running:") {
		t.Errorf("a second tray: %+v", got)
	}
	d.clickLine(icon, d.menuHas(icon, "Quit this icon"))
	if err := tray.Wait(); err != nil {
		t.Errorf("the tray ended with %v\n%s", err, said)
	}
	if got := d.run("health"); got.code != 0 {
		t.Errorf("the sidecar ended with the icon: %+v", got)
	}
	s.stop()
}

// question opens the decision about a connector and returns its ID.
func (s *sidecar) question(id string) string {
	t := s.home.t
	t.Helper()
	status, body := s.send("POST", "/v1/plugins/"+id+"/ask", "")
	if status != 200 {
		t.Fatalf("asking about %s: %d %s", id, status, body)
	}
	var decision struct{ ID string }
	decode(t, string(body), &decision)
	return decision.ID
}

// TestTheWindowTellsWhoLooksElsewhere: a notice while nobody looks at the window, whose
// click brings the question into it.
func TestTheWindowTellsWhoLooksElsewhere(t *testing.T) {
	t.Parallel()
	h := newWindowHome(t)
	screen := newScreen(t)
	dunst := dunstOn(t, screen.env)
	d := h.openWindow(screen)
	d.sees("heading", "^Home$")
	// Without a window manager, whom the pointer is over has the focus.
	elsewhere := exec.Command(installed(t, "xdotool", "xdotool"), "mousemove", "1399", "899")
	elsewhere.Env = screen.env
	if out, err := elsewhere.CombinedOutput(); err != nil {
		t.Fatalf("xdotool: %v %s", err, out)
	}
	h.served().question("notes/main")
	waitFor(t, "a notice is shown", patience, func() bool { return dunst.notices() == "1" })
	d.shot("notice")
	dunst.clickNotice()
	d.sees("heading", "^Review$")
	d.sees("text", "wants to run a program on this computer")
	d.quits()
	if got := dunst.notices(); got != "0" {
		t.Errorf("%s notices stay after the window", got)
	}
}

// TestATrayWithoutADesktop: it says what is missing, starts nothing, and leaves no bus.
func TestATrayWithoutADesktop(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	if got := h.run("tray"); got.code != 1 || !strings.Contains(got.stderr, "tray-unavailable:") || !strings.Contains(got.stderr, "sallyport decisions watch") {
		t.Errorf("without a session: %+v", got)
	}
	if got := h.processes(); len(got) != 0 {
		t.Errorf("something was started: %v", got)
	}
}

// TestATrayWaitsForABar: notices alone at first, and an icon once the desktop has a
// place for it; a sidecar that ends is said to be away.
func TestATrayWaitsForABar(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.showsNotices()
	s := d.serve()
	tray, said := d.tray()
	d.showsIcons()
	icon := d.icon()
	d.menuHas(icon, "nothing waits for you")
	s.stop()
	d.menuHas(icon, "Sallyport is not running")
	d.menuHas(icon, "Start and open Sallyport")
	if err := tray.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := tray.Wait(); err != nil {
		t.Errorf("after Ctrl-C it ends with %v\n%s", err, said)
	}
}
