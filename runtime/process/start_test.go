//go:build !windows

package process

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"sallyport/runtime/approvals"
	"sallyport/runtime/env"
	"sallyport/runtime/plugins"
)

func describeChild(t *testing.T, m *Manager, l approvals.Launch) description {
	t.Helper()
	c := start(t, m, l)
	text := readAll(t, c)
	<-c.Gone()
	var d description
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatalf("the child said %q: %v; stderr %q", text, err, c.Stderr().Lines())
	}
	return d
}

func TestChildGetsExactlyWhatItWasLaunchedWith(t *testing.T) {
	args := []string{"describe", "with space", "trailing ", "'\"", "$HOME", "*", "", "a\tb\nc", "é😀"}
	l := childLaunch(t, args...)
	l.Dir = filepath.Join(l.Dir, "sub dir")
	if err := os.Mkdir(l.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	d := describeChild(t, newManager(t, nil), l)
	if !slices.Equal(d.Args, args) {
		t.Errorf("arguments %q, want %q", d.Args, args)
	}
	want, _ := l.Env.Environ(context.Background(), nil)
	slices.Sort(d.Env)
	slices.Sort(want)
	if !slices.Equal(d.Env, want) || strings.Contains(strings.Join(d.Env, " "), "SENTINEL") {
		t.Errorf("environment %q, want %q", d.Env, want)
	}
	if dir, _ := filepath.EvalSymlinks(l.Dir); d.Cwd != dir {
		t.Errorf("working directory %q, want %q", d.Cwd, dir)
	}
	if d.Umask != 0o077 || d.Core.Cur != coreLimit || d.Core.Max != coreLimit || !d.Group {
		t.Errorf("umask %o, core limit %v, leads its session %v", d.Umask, d.Core, d.Group)
	}
	info, err := os.Stat(l.Data)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("PLUGIN_DATA: %v %v", info, err)
	}
}

func TestChildHasThreeDescriptorsAlsoWhenSallyportInheritedMore(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux lists the descriptors of a shell")
	}
	leak, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	if _, _, e := syscall.Syscall(syscall.SYS_FCNTL, leak.Fd(), syscall.F_SETFD, 0); e != 0 {
		t.Fatal(e)
	}
	l := childLaunch(t)
	// Not a Go program: those open files of their own.
	l.Path, l.Executable, l.Args = "/bin/sh", program("/bin/sh"), []string{"-c", "ls /proc/$$/fd; true"}
	got := strings.Fields(readAll(t, start(t, newManager(t, nil), l)))
	if !slices.Equal(got, []string{"0", "1", "2"}) {
		t.Errorf("open descriptors %q", got)
	}
}

// linkIn makes a link to target in a folder, and returns its path.
func linkIn(t *testing.T, folder, target string) string {
	t.Helper()
	link := filepath.Join(folder, "link")
	if err := errors.Join(os.MkdirAll(folder, 0o700), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	return link
}

func TestAChildStartsWhereALinkStaysInside(t *testing.T) {
	l := childLaunch(t, "exit", "0")
	if err := os.MkdirAll(filepath.Join(l.Data, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	l.Dir = linkIn(t, l.Data, "real")
	<-start(t, newManager(t, nil), l).Gone()
}

func TestNothingStartsThatMustNot(t *testing.T) {
	script := func(t *testing.T, name, text string, mode os.FileMode) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		os.Chmod(path, mode)
		return path
	}
	for _, row := range []struct {
		what   string
		change func(t *testing.T, l *approvals.Launch)
		code   string
	}{
		{"an endpoint", func(_ *testing.T, l *approvals.Launch) { l.Transport = plugins.StreamableHTTP }, "not-stdio"},
		{"a launch of nothing", func(_ *testing.T, l *approvals.Launch) { *l = approvals.Launch{Transport: plugins.Stdio} }, "start-failed"},
		{"a folder that does not exist", func(_ *testing.T, l *approvals.Launch) { l.Dir += "/gone" }, "cwd-missing"},
		{"a folder that a link in the data folder leads out to", func(t *testing.T, l *approvals.Launch) {
			l.Dir = linkIn(t, l.Data, t.TempDir())
		}, "cwd-outside"},
		{"a folder below such a link", func(t *testing.T, l *approvals.Launch) {
			l.Dir = filepath.Join(linkIn(t, l.Data, filepath.Dir(l.Env.Root)), filepath.Base(l.Env.Root))
		}, "cwd-outside"},
		{"a folder that is a file", func(_ *testing.T, l *approvals.Launch) { l.Dir = self() }, "cwd-missing"},
		{"a program that does not exist", func(_ *testing.T, l *approvals.Launch) { l.Path = "/gone/program" }, "exec-not-found"},
		{"a file that is no program", func(t *testing.T, l *approvals.Launch) { l.Path = script(t, "x", "hello\n", 0o755) }, "exec-format"},
		{"a file without the right", func(t *testing.T, l *approvals.Launch) { l.Path = script(t, "x", "#!/bin/sh\n", 0o644) }, "exec-denied"},
		{"a script whose interpreter is missing", func(t *testing.T, l *approvals.Launch) { l.Path = script(t, "x", "#!/gone/sh\n", 0o755) }, "exec-not-found"},
		{"another program than the approved one", func(_ *testing.T, l *approvals.Launch) { l.Path = "/bin/sh" }, "executable-changed"},
		{"a program with other bytes", func(_ *testing.T, l *approvals.Launch) { l.Executable.SHA256 = strings.Repeat("0", 64) }, "executable-changed"},
		{"a program that nobody hashed", func(_ *testing.T, l *approvals.Launch) { l.Executable.SHA256 = "" }, "executable-changed"},
		{"NUL in an argument", func(_ *testing.T, l *approvals.Launch) { l.Args = append(l.Args, "a\x00b") }, "argument-nul"},
		{"a secret in an argument", func(_ *testing.T, l *approvals.Launch) { l.Args = append(l.Args, "secret:S") }, "secret-in-args"},
		{"a budget below zero", func(_ *testing.T, l *approvals.Launch) { l.Options.Budget.OpenFiles = -1 }, "budget-invalid"},
		{"a data folder that is a link", func(t *testing.T, l *approvals.Launch) { os.Symlink(t.TempDir(), l.Data) }, "data-folder"},
	} {
		t.Run(row.what, func(t *testing.T) {
			m := newManager(t, nil)
			l := childLaunch(t, "exit", "0")
			row.change(t, &l)
			_, err := m.start(context.Background(), l)
			wantCode(t, err, row.code)
			if strings.Contains(err.Error(), l.Dir) && l.Dir != "" || strings.Contains(err.Error(), "SENTINEL") {
				t.Errorf("the error shows too much: %v", err)
			}
			if n := len(m.Children()); n != 0 {
				t.Errorf("%d children are left", n)
			}
		})
	}
}

func TestRefusedBeforeTheSpawner(t *testing.T) {
	spawned := 0
	m := newManager(t, func(c *Config) {
		c.Spawn = func(string, []string, *os.ProcAttr) (*os.Process, error) {
			spawned++
			return nil, errors.New("spawned")
		}
	})
	if _, err := m.Start(context.Background(), approvals.Grant{}); err == nil {
		t.Error("the zero grant started something")
	} else {
		wantCode(t, err, "no-grant")
	}
	l := launchIn(t, t.TempDir(), []env.Declared{{Name: "KEY", Value: "secret:S", References: true}}, "exit", "0")
	_, err := m.start(context.Background(), l)
	wantCode(t, err, "secret-unavailable")
	if spawned != 0 {
		t.Errorf("the spawner was called %d times", spawned)
	}
	_, err = m.start(context.Background(), childLaunch(t, "exit", "0"))
	wantCode(t, err, "start-failed")
	if spawned != 1 {
		t.Errorf("the spawner was called %d times", spawned)
	}
}

func TestMismatchedProgramRunsNoInstruction(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux stops a program before its first instruction")
	}
	folder := t.TempDir()
	proof := filepath.Join(folder, "ran")
	l := launchIn(t, folder, nil)
	l.Path, l.Args = "/bin/touch", []string{proof}
	for range 20 {
		_, err := newManager(t, nil).start(context.Background(), l)
		wantCode(t, err, "executable-changed")
	}
	if _, err := os.Stat(proof); err == nil {
		t.Error("the program ran")
	}
}

func TestProgramReplacedAfterItsHashWasTaken(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "server")
	copyFile(t, self(), path)
	l := launchIn(t, folder, nil, "exit", "0")
	l.Path, l.Executable = path, program(path)
	if c := start(t, newManager(t, nil), l); c.Stop(context.Background(), nil).Err() != nil {
		t.Fatal("the unchanged program did not end")
	}
	copyFile(t, "/bin/sh", path)
	_, err := newManager(t, nil).start(context.Background(), l)
	wantCode(t, err, "executable-changed")
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		os.Remove(to)
		err = os.WriteFile(to, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestScriptsAreComparedByTheirInterpreter(t *testing.T) {
	folder := t.TempDir()
	for _, row := range []struct {
		what, line string
		chain      []string
		code       string
	}{
		{"directly", "#!/bin/sh", []string{"/bin/sh"}, ""},
		{"through env", "#!/usr/bin/env sh", []string{"/usr/bin/env", "/bin/sh"}, ""},
		{"through env to another one", "#!/usr/bin/env sh", []string{"/usr/bin/env", self()}, "executable-changed"},
		{"through env to nothing", "#!/usr/bin/env gone-program", []string{"/usr/bin/env", "/bin/sh"}, ""},
		{"by another one", "#!/bin/sh", []string{self()}, "executable-changed"},
	} {
		t.Run(row.what, func(t *testing.T) {
			if row.code != "" && runtime.GOOS != "linux" {
				t.Skip("only Linux holds a script until its interpreter was compared")
			}
			path := filepath.Join(t.TempDir(), "server")
			// exec at once: what a script becomes is its own affair.
			if err := os.WriteFile(path, []byte(row.line+"\nexec cat\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			l := launchIn(t, folder, nil)
			l.Path, l.Args, l.Executable = path, nil, program(path)
			for _, name := range row.chain {
				l.Executable.Interpreters = append(l.Executable.Interpreters, program(name))
			}
			c, err := newManager(t, nil).start(context.Background(), l)
			if strings.Contains(row.what, "nothing") {
				if err == nil {
					t.Fatal("env found nothing, and yet it started")
				}
				return
			}
			if row.code != "" {
				wantCode(t, err, row.code)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			c.Stdin().Write([]byte("echo\n"))
			if got := firstLine(t, c); got != "echo" {
				t.Errorf("the script said %q", got)
			}
			c.Stop(context.Background(), nil)
			c.Stdout().Close()
		})
	}
}

func TestProgramInTheBundleIsComparedByFile(t *testing.T) {
	l := childLaunch(t, "exit", "0")
	l.Executable = env.Executable{Command: "./server", Found: "/source/server", Real: "/source/server", InBundle: true}
	start(t, newManager(t, nil), l).Stop(context.Background(), nil)
}

func TestOneStartPerConnectorAtATime(t *testing.T) {
	enter, leave := make(chan struct{}), make(chan struct{})
	m := newManager(t, func(c *Config) {
		c.Spawn = func(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
			enter <- struct{}{}
			<-leave
			return nil, errors.New("no")
		}
	})
	var first sync.WaitGroup
	l := childLaunch(t, "exit", "0")
	first.Go(func() { m.start(context.Background(), l) })
	<-enter
	for range 4 {
		_, err := m.start(context.Background(), l)
		wantCode(t, err, "start-in-progress")
	}
	close(leave)
	first.Wait()
}

func TestCancelledStartLeavesNothing(t *testing.T) {
	m := newManager(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if c, err := m.start(ctx, childLaunch(t, "deaf")); err == nil {
		t.Errorf("%d was started", c.PID())
	}
	if len(m.Children()) != 0 {
		t.Error("a child is left")
	}
}

func TestClosingEndsAStartThatIsUnderWay(t *testing.T) {
	enter := make(chan struct{})
	m, err := New(Config{StateDir: t.TempDir(), Shim: testShim(), Spawn: func(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
		p, err := os.StartProcess(path, argv, attr)
		close(enter)
		return p, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	var under sync.WaitGroup
	l := childLaunch(t, "deaf")
	under.Go(func() {
		if c, err := m.start(context.Background(), l); err == nil {
			<-c.Gone()
			c.Stdout().Close()
		}
	})
	<-enter
	if err := m.Close(context.Background()); err != nil {
		t.Error(err)
	}
	under.Wait()
}

// Where the system forbids tracing, the image is compared while it runs.
func TestImageIsComparedWithoutTracingToo(t *testing.T) {
	m := newManager(t, func(c *Config) { c.Shim, c.Spawn = nil, os.StartProcess })
	c := start(t, m, childLaunch(t, "polite"))
	firstLine(t, c)
	c.Stop(context.Background(), nil)
	l := childLaunch(t, "polite")
	l.Executable.SHA256 = strings.Repeat("0", 64)
	_, err := m.start(context.Background(), l)
	wantCode(t, err, "executable-changed")

	script := filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec cat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	l = childLaunch(t)
	l.Path, l.Args, l.Executable = script, nil, program(script)
	l.Executable.Interpreters = []env.Executable{program("/bin/sh")}
	for range 10 {
		start(t, m, l).Stop(context.Background(), nil)
	}
	l.Executable.Interpreters[0].SHA256 = strings.Repeat("0", 64)
	_, err = m.start(context.Background(), l)
	wantCode(t, err, "executable-changed")
}

func BenchmarkStart(b *testing.B) {
	m, err := New(Config{StateDir: b.TempDir(), Shim: testShim()})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close(context.Background())
	l, err := makeLaunch(b.TempDir(), nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	l.Path, l.Args, l.Executable = "/bin/cat", nil, program("/bin/cat")
	for b.Loop() {
		c, err := m.start(context.Background(), l)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		c.Stop(context.Background(), nil)
		c.Stdout().Close()
		b.StartTimer()
	}
}
