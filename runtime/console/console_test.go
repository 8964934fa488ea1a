//go:build !windows

package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sallyport/internal/coded"
	"sallyport/internal/pty"
	"sallyport/runtime/approvals"
	"sallyport/runtime/approvals/approvalstest"
	"sallyport/runtime/console"
	"sallyport/runtime/env"
	"sallyport/runtime/plugins"
	"sallyport/runtime/process"
)

// The test binary is the shim.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == process.ShimArg {
		process.ShimMain(os.Args[2:])
	}
	goleak.VerifyTestMain(m)
}

var size = pty.Size{Cols: 80, Rows: 24}

// desk is an approved plugin, and consoles.
type desk struct {
	*approvalstest.Rig
	consoles *console.Consoles
	t        *testing.T
	state    string
	mu       sync.Mutex
	closed   []console.Info
}

func newDesk(t *testing.T, change func(*console.Config)) *desk {
	t.Helper()
	d := &desk{Rig: approvalstest.New(t), t: t, state: t.TempDir()}
	d.Bundle("./server.sh")
	d.Write("server.sh", "#!/bin/sh\nexec /bin/cat\n", 0o755)
	d.Edit(func(c *plugins.Connector) {
		c.Launch.Env = append(c.Launch.Env, plugins.Value{Name: "GREETING", Value: "good morning"})
	})
	d.Rig.Approve(approvalstest.OfferOf("echo"), "echo")
	shim, err := process.Shim()
	if err != nil {
		t.Fatal(err)
	}
	processes, err := process.New(process.Config{StateDir: d.state, Shim: shim})
	if err != nil {
		t.Fatal(err)
	}
	config := console.Config{Processes: processes, Parent: env.Parent{Vars: map[string]string{"SHELL": "/bin/sh"}}, Closed: func(i console.Info) {
		d.mu.Lock()
		d.closed = append(d.closed, i)
		d.mu.Unlock()
	}}
	if change != nil {
		change(&config)
	}
	d.consoles = console.New(config)
	t.Cleanup(func() {
		d.consoles.Close(context.Background())
		if err := processes.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d *desk) open() *screen {
	d.t.Helper()
	info, err := d.consoles.Open(d.t.Context(), d.Grant(), console.Options{Size: size, By: approvalstest.Operator})
	if err != nil {
		d.t.Fatal(err)
	}
	s := &screen{d: d, id: info.ID}
	s.types("PATH=/usr/sbin:/usr/bin:/bin\n") // the plan's has nothing in it
	return s
}

// screen is who reads and types.
type screen struct {
	d       *desk
	id      string
	after   uint64
	dropped uint64
	text    string
	end     console.Info
}

func (s *screen) types(text string) {
	s.d.t.Helper()
	if err := s.d.consoles.Input(s.id, []byte(text)); err != nil {
		s.d.t.Fatal(err)
	}
}

// until reads until a text was printed, and returns everything up to then.
func (s *screen) until(want string) string {
	s.d.t.Helper()
	ctx, cancel := context.WithTimeout(s.d.t.Context(), time.Minute)
	defer cancel()
	for !strings.Contains(s.text, want) {
		if !s.read(ctx) {
			s.d.t.Fatalf("%q never comes; it printed %q and is %+v", want, s.text, s.end)
		}
	}
	return s.text
}

func (s *screen) read(ctx context.Context) bool {
	s.d.t.Helper()
	out, err := s.d.consoles.Output(ctx, s.id, s.after)
	if err != nil {
		s.d.t.Fatal(err)
	}
	s.text += string(out.Data)
	s.after, s.end = out.Next, out.Info
	s.dropped += out.Dropped
	return ctx.Err() == nil && !out.Info.Ended
}

// ends waits for the end.
func (s *screen) ends() console.Info {
	s.d.t.Helper()
	ctx, cancel := context.WithTimeout(s.d.t.Context(), time.Minute)
	defer cancel()
	for s.read(ctx) {
	}
	if !s.end.Ended {
		s.d.t.Fatalf("it does not end; it printed %q", s.text)
	}
	return s.end
}

func TestAConsoleIsAShellOnATerminal(t *testing.T) {
	d := newDesk(t, nil)
	s := d.open()
	s.types("tty -s && echo on a' 'terminal; stty size\n")
	text := s.until("24 80")
	if !strings.Contains(text, "on a terminal") {
		t.Errorf("it prints %q", text)
	}
	if err := d.consoles.Resize(s.id, pty.Size{Cols: 132, Rows: 43}); err != nil {
		t.Fatal(err)
	}
	s.types("stty size\n")
	s.until("43 132")
	s.types("exit 7\n")
	if end := s.ends(); end.Exit != "exit status 7" || end.Reason != nil || end.Closer != nil || end.Printed != s.after {
		t.Errorf("it ended so: %+v", end)
	}
	if err := d.consoles.Input(s.id, []byte("x")); coded.Of(err) != "console-ended" {
		t.Errorf("typing into one that has ended: %v", err)
	}
	if err := d.consoles.Resize(s.id, size); coded.Of(err) != "console-ended" {
		t.Errorf("resizing one that has ended: %v", err)
	}
}

// Ctrl-C reaches the program and not the shell, also where Sallyport itself was started
// to ignore it (by nohup, or by a script in the background).
func TestCtrlCEndsTheProgramAndNotTheShell(t *testing.T) {
	signal.Ignore(syscall.SIGINT, syscall.SIGQUIT)
	defer signal.Reset(syscall.SIGINT, syscall.SIGQUIT)
	d := newDesk(t, nil)
	s := d.open()
	s.types("sh -c 'echo rea\"\"dy; exec sleep 600'\n") // it is in front when it says so
	s.until("ready")
	s.types("\x03")
	s.types("echo still' 'here\n")
	s.until("still here")
}

// What the shell gets is what the plan says and TERM, and nothing of start-up files.
func TestItsEnvironmentIsThePluginsAndTERM(t *testing.T) {
	for _, shell := range []string{"/bin/sh", "/bin/bash"} {
		t.Run(shell, func(t *testing.T) {
			t.Setenv("SENTINEL", "SENTINEL-7f3a")
			d := newDesk(t, func(c *console.Config) {
				c.Parent.Vars = map[string]string{"SHELL": shell, "SENTINEL": "SENTINEL-7f3a", "ENV": "/etc/profile"}
			})
			for _, name := range []string{".bashrc", ".profile", ".bash_profile"} {
				d.WriteOutside(name, "export FROM_A_FILE=yes\n", 0o644)
			}
			grant := d.Grant()
			launch, err := grant.Launch()
			if err != nil {
				t.Fatal(err)
			}
			want, err := launch.Env.Environ(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, "TERM=xterm-256color")
			slices.Sort(want)
			s := d.open()
			// The shell's own process and not a child of it: a shell adds to what it hands on.
			s.types("tr '\\0' '\\n' < /proc/$$/environ > \"$PLUGIN_DATA/environ\"; pwd > \"$PLUGIN_DATA/pwd\"; env | grep -c FROM_A_FILE; echo do''ne\n")
			if text := s.until("\ndone"); !regexp.MustCompile(`(^|[^\w])0\r\n`).MatchString(text) {
				t.Errorf("a start-up file was read: %q", text)
			}
			got := strings.Split(strings.TrimSpace(read(t, filepath.Join(launch.Data, "environ"))), "\n")
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("the shell has %q, the plan says %q", got, want)
			}
			if dir := strings.TrimSpace(read(t, filepath.Join(launch.Data, "pwd"))); dir != launch.Dir {
				t.Errorf("it is in %s and not in %s", dir, launch.Dir)
			}
		})
	}
}

// alive is not so of what has ended and was not collected yet.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runtime.GOOS != "linux" && syscall.Kill(pid, 0) == nil
	}
	return !strings.HasPrefix(string(stat[bytes.LastIndexByte(stat, ')'):]), ") Z")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTERMOfTheConnectorIsKept(t *testing.T) {
	d := newDesk(t, nil)
	d.Edit(func(c *plugins.Connector) {
		c.Launch.Env = append(c.Launch.Env, plugins.Value{Name: "TERM", Value: "dumb"})
	})
	d.Rig.Approve(approvalstest.OfferOf("echo"), "echo")
	s := d.open()
	s.types("echo TERM is $TERM.\n")
	s.until("TERM is dumb.")
}

// Closing ends everything that was started in it: what ignores being hung up on, what
// runs in the background, and what left the session.
func TestClosingEndsTheWholeTree(t *testing.T) {
	d := newDesk(t, nil)
	s := d.open()
	s.types("nohup sleep 601 >/dev/null 2>&1 & a=$!\n")
	s.types("(setsid sh -c 'trap \"\" TERM HUP; echo $$ > $PLUGIN_DATA/pid; sleep 602 & wait') & \n")
	s.types("echo pids $$ $a ' '.\n")
	s.until("  .\r\n")
	data := d.PluginData("demo")
	var left int
	eventually(t, "the program that leaves the session has begun", func() bool {
		text, err := os.ReadFile(filepath.Join(data, "pid"))
		left, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil && left > 0
	})
	var shell, background int
	at := strings.LastIndex(s.text, "pids ")
	if _, err := fmt.Sscanf(s.text[at:], "pids %d %d", &shell, &background); err != nil {
		t.Fatalf("%v: %q", err, s.text)
	}
	by := approvals.By{User: "x", Via: approvals.ViaGUI}
	end, err := d.consoles.Stop(t.Context(), s.id, by)
	if err != nil || !end.Ended || end.Closer == nil || *end.Closer != by || end.Reason != nil {
		t.Fatal(end, err)
	}
	for what, pid := range map[string]int{"the shell": shell, "what ran in the background": background, "what left the session": left} {
		if alive(pid) {
			t.Errorf("%s is still there", what)
		}
	}
	if again, err := d.consoles.Stop(t.Context(), s.id, by); err != nil || !again.Ended {
		t.Error("a second time: ", again, err)
	}
}

// A console and the server beside it have a folder in common and nothing else.
func TestAConsoleLeavesTheServerAlone(t *testing.T) {
	d := newDesk(t, nil)
	shim, _ := process.Shim()
	m, err := process.New(process.Config{StateDir: t.TempDir(), Shim: shim})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(context.Background())
	d.consoles = console.New(console.Config{Processes: m, Parent: env.Parent{Vars: map[string]string{"SHELL": "/bin/sh"}}})
	server, err := m.Start(t.Context(), d.Grant())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stdout().Close()
	s := d.open()
	s.types("setsid -f sh -c 'echo $$ > \"$PLUGIN_DATA/left\"; exec sleep 603'\n")
	var left int
	eventually(t, "something leaves the session", func() bool {
		text, err := os.ReadFile(filepath.Join(d.PluginData("demo"), "left"))
		left, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil && left > 0
	})
	if err := server.Stop(t.Context(), nil).Err(); err != nil {
		t.Fatal(err)
	}
	if !alive(left) {
		t.Error("stopping the server ended what was started in the console")
	}
	if server, err = m.Start(t.Context(), d.Grant()); err != nil {
		t.Fatal(err)
	}
	defer server.Stdout().Close()
	d.consoles.Close(context.Background())
	if alive(left) {
		t.Error("closing the console left what was started in it")
	}
	select {
	case <-server.Done():
		t.Error("closing the console ended the server")
	default:
	}
}

func TestAConsoleEndsWithItsGrant(t *testing.T) {
	for _, row := range []struct {
		name, code string
		do         func(*desk)
	}{
		{"revoked", "revoked", func(d *desk) { _ = d.Gate.Revoke(d.t.Context(), d.ID, approvalstest.Operator) }},
		{"disabled", "disabled", func(d *desk) { _ = d.Gate.Disable(d.t.Context(), d.ID, approvalstest.Operator) }},
		{"a file of the plugin changed", "artifact-changed", func(d *desk) {
			d.Write("server.sh", "#!/bin/sh\nexec /bin/cat # other\n", 0o755)
			d.Gate.Recheck(d.t.Context(), d.ID)
		}},
		{"a secret that it uses was changed", "secret-changed", func(d *desk) {
			d.consoles.StopWhere(d.t.Context(), func(g approvals.Grant) bool { return g.ID() == d.ID }, coded.New("secret-changed", "x"))
		}},
		{"Sallyport is closing", "host-closing", func(d *desk) { d.consoles.Close(context.Background()) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDesk(t, nil)
			s := d.open()
			s.types("echo rea''dy\n")
			s.until("ready")
			row.do(d)
			end := s.ends()
			if end.Reason == nil || end.Reason.Code != row.code {
				t.Errorf("it ended because of %+v", end.Reason)
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			if len(d.closed) != 1 || d.closed[0].Reason != end.Reason || d.closed[0].ID != s.id {
				t.Errorf("told was %+v", d.closed)
			}
			if _, open := d.consoles.Grants()[d.ID]; open {
				t.Error("its grant is still watched")
			}
		})
	}
}

func TestAConsoleTakesAGrant(t *testing.T) {
	d := newDesk(t, nil)
	grant := d.Grant()
	if err := d.Gate.Revoke(t.Context(), d.ID, approvalstest.Operator); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, code string
		grant      approvals.Grant
	}{
		{"the zero grant", "no-grant", approvals.Grant{}},
		{"one that has ended", "revoked", grant},
	} {
		if info, err := d.consoles.Open(t.Context(), row.grant, console.Options{Size: size}); coded.Of(err) != row.code || info.ID != "" {
			t.Errorf("%s: %+v %v", row.name, info, err)
		}
	}
	if len(d.consoles.List()) != 0 {
		t.Error("something was opened")
	}
}

func TestWhatIsNoConsole(t *testing.T) {
	d := newDesk(t, nil)
	for _, row := range []struct {
		name, code string
		options    console.Options
	}{
		{"no columns", "console-size", console.Options{Size: pty.Size{Rows: 24}}},
		{"too many rows", "console-size", console.Options{Size: pty.Size{Cols: 80, Rows: 1001}}},
		{"a terminal with an equals sign", "console-term", console.Options{Size: size, Term: "xterm\nLD_PRELOAD=x"}},
		{"a terminal with a long name", "console-term", console.Options{Size: size, Term: strings.Repeat("x", 65)}},
	} {
		if _, err := d.consoles.Open(t.Context(), d.Grant(), row.options); coded.Of(err) != row.code {
			t.Errorf("%s: %v", row.name, err)
		}
	}
	_, err := d.consoles.Output(t.Context(), "nothing", 0)
	if _, stop := d.consoles.Stop(t.Context(), "nothing", approvalstest.Operator); coded.Of(err) != "console-unknown" || coded.Of(stop) != "console-unknown" {
		t.Error(err, stop)
	}
	s := d.open()
	if err := d.consoles.Input(s.id, make([]byte, console.MaxInput+1)); coded.Of(err) != "console-input-large" {
		t.Error(err)
	}
	if _, err := d.consoles.Output(t.Context(), s.id, 1<<40); coded.Of(err) != "bad-request" {
		t.Error(err)
	}
}

func TestThereAreOnlySoMany(t *testing.T) {
	d := newDesk(t, nil)
	var last *screen
	for range console.MaxOpen {
		last = d.open()
	}
	if _, err := d.consoles.Open(t.Context(), d.Grant(), console.Options{Size: size}); coded.Of(err) != "too-many-consoles" {
		t.Fatal(err)
	}
	if _, err := d.consoles.Stop(t.Context(), last.id, approvalstest.Operator); err != nil {
		t.Fatal(err)
	}
	d.open()
}

// A flood is kept waiting by a reader, and bounded without one; either way it ends.
func TestAFloodIsBounded(t *testing.T) {
	d := newDesk(t, nil)
	s := d.open()
	s.types("head -c 6000000 /dev/zero | tr '\\0' x; echo; echo all' 'printed\n")
	s.until("all printed")
	if n := strings.Count(s.text, "x"); n < 6_000_000 || s.dropped > 0 {
		t.Errorf("a reader gets %d of 6000000 and misses %d", n, s.dropped)
	}
	late := time.Now().Add(time.Hour) // nobody has read for a while
	unread := newDesk(t, func(c *console.Config) {
		c.Unread = 1000 * time.Hour
		first := true
		c.Now = func() time.Time {
			if first {
				first = false
				return time.Now()
			}
			return late
		}
	})
	info, err := unread.consoles.Open(t.Context(), unread.Grant(), console.Options{Size: size})
	if err != nil {
		t.Fatal(err)
	}
	alone := &screen{d: unread, id: info.ID}
	alone.types("PATH=/usr/bin:/bin; head -c 6000000 /dev/zero | tr '\\0' x; echo; echo all' 'printed > \"$PLUGIN_DATA/printed\"; exit\n")
	eventually(t, "it ends without a reader", func() bool { return unread.consoles.List()[0].Ended })
	alone.ends()
	if len(alone.text) != console.Scroll || alone.dropped+console.Scroll != alone.after {
		t.Errorf("%d bytes are kept, %d dropped of %d", len(alone.text), alone.dropped, alone.after)
	}
}

func TestWhatIsNotReadIsRefusedAndNothingHangs(t *testing.T) {
	d := newDesk(t, nil)
	s := d.open()
	s.types("stty raw -echo; echo rea''dy; exec sleep 600\n")
	s.until("ready")
	eventually(t, "what nobody reads is refused", func() bool {
		return coded.Of(d.consoles.Input(s.id, make([]byte, console.MaxInput))) == "console-input-full"
	})
	if end, err := d.consoles.Stop(t.Context(), s.id, approvalstest.Operator); err != nil || !end.Ended {
		t.Error(end, err)
	}
}

func TestNobodyReadsIt(t *testing.T) {
	d := newDesk(t, func(c *console.Config) { c.Unread = 50 * time.Millisecond })
	d.open()
	eventually(t, "it is closed", func() bool {
		list := d.consoles.List()
		return len(list) == 1 && list[0].Ended
	})
	if why := d.consoles.List()[0].Reason; why == nil || why.Code != "console-unread" {
		t.Errorf("because of %v", why)
	}
}

func TestWhichShellIsStarted(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "bash")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec /bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ name, shell, want string }{
		{"the person's own", "/bin/bash", "bash"},
		{"none that is named", "", "sh"},
		{"no absolute path", "bash", "sh"},
		{"one that is not there", "/nowhere/bash", "sh"},
		{"no shell", "/bin/cat", "sh"},
		{"a script by a shell's name", script, "sh"},
		{"a folder", "/bin", "sh"},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := newDesk(t, func(c *console.Config) { c.Parent.Vars = map[string]string{"SHELL": row.shell} })
			info, err := d.consoles.Open(t.Context(), d.Grant(), console.Options{Size: size})
			if err != nil || info.Shell != row.want {
				t.Errorf("%q is started: %v", info.Shell, err)
			}
		})
	}
	t.Run("one that others may write", func(t *testing.T) {
		text, err := os.ReadFile("/bin/dash")
		if err != nil {
			t.Fatal(err)
		}
		open := filepath.Join(t.TempDir(), "dash")
		if err := os.WriteFile(open, text, 0o700); err != nil {
			t.Fatal(err)
		}
		for mode, want := range map[os.FileMode]string{0o755: "dash", 0o777: "sh"} {
			if err := os.Chmod(open, mode); err != nil {
				t.Fatal(err)
			}
			d := newDesk(t, func(c *console.Config) { c.Parent.Vars = map[string]string{"SHELL": open} })
			if info, err := d.consoles.Open(t.Context(), d.Grant(), console.Options{Size: size}); err != nil || info.Shell != want {
				t.Errorf("with mode %o %q is started: %v", mode, info.Shell, err)
			}
		}
	})
}

// What a killed Sallyport leaves is found by the next one, as servers are.
func TestAConsoleIsOnRecordForTheNextStart(t *testing.T) {
	d := newDesk(t, nil)
	s := d.open()
	s.types("echo pid $$ ' '.\n")
	s.until("  .\r\n")
	var record struct {
		Children []struct {
			Connector string `json:"connector"`
			PID       int    `json:"pid"`
			Data      string `json:"data"`
		} `json:"children"`
	}
	if err := json.Unmarshal([]byte(read(t, filepath.Join(d.state, "children.json"))), &record); err != nil {
		t.Fatal(err)
	}
	if len(record.Children) != 1 || record.Children[0].Connector != d.ID.String() || !strings.Contains(s.text, fmt.Sprintf("pid %d  .", record.Children[0].PID)) {
		t.Errorf("on record is %+v; it printed %q", record, s.text)
	}
}

// And is ended by it: the shell, what runs in it, and nobody else's.
func TestAConsoleOfAKilledHostIsSwept(t *testing.T) {
	d := newDesk(t, nil)
	s := d.open()
	s.types("sleep 600 & echo pids $$ $! ' '.\n")
	s.until("  .\r\n")
	pids := regexp.MustCompile(`pids (\d+) (\d+)  \.`).FindStringSubmatch(s.text)
	if pids == nil {
		t.Fatalf("it printed %q", s.text)
	}
	state := t.TempDir() // of the host that comes after
	if err := os.WriteFile(filepath.Join(state, "children.json"), []byte(read(t, filepath.Join(d.state, "children.json"))), 0o600); err != nil {
		t.Fatal(err)
	}
	next, err := process.New(process.Config{StateDir: state, Shim: []string{"/bin/false"}})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close(context.Background())
	report, err := next.Sweep(t.Context())
	if err != nil || len(report.Swept) != 1 || report.Swept[0].Outcome != "ended" {
		t.Fatalf("%+v %v", report, err)
	}
	for _, pid := range pids[1:] {
		if number, _ := strconv.Atoi(pid); !slices.Contains(report.Swept[0].PIDs, number) {
			t.Errorf("%s is not among the ended: %+v", pid, report.Swept)
		}
	}
	s.ends()
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never happened that %s", what)
		}
	}
}
