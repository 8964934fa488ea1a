//go:build linux

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// desktopTags are those of make desktop.
const desktopTags = "desktop,production,webkit2_41"

// atLength is for what a busy machine does: a failure costs it, a success does not.
const atLength = 90 * time.Second

// screen is a screen, a session bus with nothing but the accessibility service on it, and
// a person who finds things by role and name.
type screen struct {
	t      testing.TB
	env    []string
	eyes   *exec.Cmd
	orders io.WriteCloser
	said   *bufio.Reader
}

// newScreen starts them; all of it ends with the test.
func newScreen(t testing.TB) *screen {
	t.Helper()
	dir, err := os.MkdirTemp("", "sallyport-screen-") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &screen{t: t}
	display := s.says(exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "1400x900x24", "-nolisten", "tcp", "-noreset"), true)
	s.env = []string{"DISPLAY=:" + display, "XDG_RUNTIME_DIR=" + dir, "PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LANG=C.UTF-8"}
	services := filepath.Join(dir, "services")
	if err := os.Mkdir(services, 0o700); err != nil {
		t.Fatal(err)
	}
	service, err := os.ReadFile("/usr/share/dbus-1/services/org.a11y.Bus.service")
	if err != nil {
		t.Fatal("the accessibility service is missing: scripts/setup test installs it")
	}
	// Without systemd's part, which would ask another login's.
	var lines []string
	for line := range strings.Lines(string(service)) {
		if !strings.HasPrefix(line, "SystemdService") {
			lines = append(lines, line)
		}
	}
	writeAll(t, filepath.Join(services, "org.a11y.Bus.service"), strings.Join(lines, ""))
	config := filepath.Join(dir, "bus.conf")
	writeAll(t, config, fmt.Sprintf(`<busconfig><type>session</type><listen>unix:path=%s</listen><auth>EXTERNAL</auth><servicedir>%s</servicedir>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`,
		filepath.Join(dir, "bus"), services))
	bus := exec.Command("dbus-daemon", "--nofork", "--print-address=3", "--config-file="+config)
	bus.Env = s.env
	s.env = append(s.env, "DBUS_SESSION_BUS_ADDRESS="+s.says(bus, true))
	s.look()
	return s
}

func writeAll(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// says starts a program that goes on for the test, and returns the line that it writes to
// descriptor 3.
func (s *screen) says(cmd *exec.Cmd, group bool) string {
	s.t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	defer read.Close()
	var errs said
	cmd.ExtraFiles, cmd.Stderr, cmd.WaitDelay = []*os.File{write}, &errs, 5*time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: group, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	write.Close()
	s.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	_ = read.SetReadDeadline(time.Now().Add(atLength))
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		s.t.Fatalf("%v: %v\n%s", cmd.Args, err, errs.String())
	}
	return strings.TrimSpace(line)
}

// look starts the person.
func (s *screen) look() {
	s.t.Helper()
	s.eyes = exec.Command("/usr/bin/python3", "testdata/window/person.py")
	s.eyes.Env, s.eyes.Stderr = s.env, os.Stderr
	var err error
	if s.orders, err = s.eyes.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	out, err := s.eyes.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.eyes.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.said = bufio.NewReader(out)
	s.t.Cleanup(func() {
		_ = s.orders.Close()
		_ = s.eyes.Process.Kill()
		_ = s.eyes.Wait()
	})
}

// desktop is a window that was started in a home.
type desktop struct {
	t      testing.TB
	h      *home
	s      *screen
	cmd    *exec.Cmd
	errs   said
	ended  chan struct{}
	status error
}

// desktopProgram is sallyport with the window.
func desktopProgram(t testing.TB) string { return need(t, built.desktop) }

// openWindow starts the desktop program as a menu does.
func (h *home) openWindow(s *screen, args ...string) *desktop {
	h.t.Helper()
	d := &desktop{t: h.t, h: h, s: s, ended: make(chan struct{})}
	d.cmd = exec.Command(desktopProgram(h.t), args...)
	d.cmd.Dir, d.cmd.Stderr = h.dir, &d.errs
	d.cmd.Env = append([]string{}, h.env...)
	for _, pair := range s.env {
		if name, _, _ := strings.Cut(pair, "="); name != "HOME" && name != "PATH" {
			d.cmd.Env = append(d.cmd.Env, pair)
		}
	}
	if err := d.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	go func() {
		d.status = d.cmd.Wait()
		close(d.ended)
	}()
	h.t.Cleanup(func() {
		if d.runs() {
			_ = d.cmd.Process.Kill()
			<-d.ended
		}
	})
	return d
}

func (d *desktop) runs() bool {
	select {
	case <-d.ended:
		return false
	default:
		return true
	}
}

// order tells the person what to do at this window.
func (d *desktop) order(do, role, name string) (bool, []string) {
	d.t.Helper()
	raw, _ := json.Marshal(map[string]any{"do": do, "pid": d.cmd.Process.Pid, "role": role, "name": name, "within": atLength.Seconds()})
	if _, err := d.s.orders.Write(append(raw, '\n')); err != nil {
		d.t.Fatal(err)
	}
	line, err := d.s.said.ReadBytes('\n')
	if err != nil {
		d.t.Fatalf("the person at the window has gone: %v", err)
	}
	var answer struct {
		OK   bool
		Text []string
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		d.t.Fatalf("%v: %s", err, line)
	}
	return answer.OK, answer.Text
}

func (d *desktop) must(do, role, name string) {
	d.t.Helper()
	if ok, text := d.order(do, role, name); !ok {
		d.shot("failed")
		d.t.Fatalf("%s %s %q: it shows\n%s\nstderr: %s\nlog: %s", do, role, name, strings.Join(text, "\n"), d.errs.String(), d.log())
	}
}

func (d *desktop) sees(role, name string)  { d.t.Helper(); d.must("wait", role, name) }
func (d *desktop) press(role, name string) { d.t.Helper(); d.must("press", role, name) }

func (d *desktop) log() string {
	raw, _ := os.ReadFile(d.h.state("sallyport.log"))
	return string(raw)
}

// shot keeps a picture of the screen where pictures are kept.
func (d *desktop) shot(name string) {
	d.t.Helper()
	folder := shots(d.t)
	if folder == "" {
		return
	}
	cmd := exec.Command("scrot", "-o", filepath.Join(folder, "window-"+name+".png"))
	cmd.Env = d.s.env
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Logf("no picture: %v %s", err, out)
	}
}

// ends waits for the program's end and returns its exit code.
func (d *desktop) ends() int {
	d.t.Helper()
	select {
	case <-d.ended:
	case <-time.After(atLength):
		d.t.Fatalf("the window does not end\n%s\n%s", d.errs.String(), d.log())
	}
	return d.cmd.ProcessState.ExitCode()
}

// quits ends it as a login's end does.
func (d *desktop) quits() {
	d.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	if code := d.ends(); code != 0 {
		d.t.Errorf("it exits with %d\n%s\n%s", code, d.errs.String(), d.log())
	}
}

// webProcess is the process of its page; 0 where there is none.
func (d *desktop) webProcess() int {
	children, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range children {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue
		}
		name, rest, ok := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if ok && len(fields) > 1 && fields[1] == strconv.Itoa(d.cmd.Process.Pid) && fields[0] != "Z" && strings.Contains(name, "(WebKitWebProces") {
			pid, _ := strconv.Atoi(name[:strings.IndexByte(name, ' ')])
			return pid
		}
	}
	return 0
}
