//go:build !windows

package process

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/coded"
)

func TestStopEndsEveryTree(t *testing.T) {
	for _, row := range []struct {
		what      string
		behaviour string
		steps     string
		within    time.Duration
	}{
		{"a polite child ends with its input", "polite", "close stdin", time.Second},
		{"one that ignores the end of input is terminated", "ignores-eof", "close stdin, terminate", 3 * time.Second},
		{"one that is deaf as well is killed", "deaf", "close stdin, terminate, kill", 5 * time.Second},
		{"a grandchild that keeps stdout ends with its parent", "family stay grandchild", "close stdin, terminate rest, kill rest", 2 * time.Second},
		{"so does one that left the session", "family stay setsid", "close stdin, terminate rest, kill rest", 2 * time.Second},
		{"so does one whose parent has ended as well", "family stay double", "close stdin, terminate rest, kill rest", 2 * time.Second},
		{"a whole deaf family is killed", "family deaf grandchild setsid double", "close stdin, terminate, kill, kill escaped", 5 * time.Second},
	} {
		t.Run(row.what, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS != "linux" && (strings.Contains(row.behaviour, "setsid") || strings.Contains(row.behaviour, "double")) {
				t.Skip("a stated residual risk on this system")
			}
			m := newManager(t, nil)
			c := start(t, m, childLaunch(t, strings.Fields(row.behaviour)...))
			pids := pidsIn(firstLine(t, c))
			if len(pids) != len(strings.Fields(row.behaviour))-1 && len(pids) != 1 && !strings.Contains(row.behaviour, "double") {
				t.Fatalf("the family is %v", pids)
			}
			began := time.Now()
			report := c.Stop(context.Background(), coded.New("test", "because"))
			took := time.Since(began)
			if err := report.Err(); err != nil || report.Reason == nil || report.Exit.At.IsZero() {
				t.Errorf("%v: %+v", err, report)
			}
			if got := steps(report); !strings.HasPrefix(got, row.steps) {
				t.Errorf("steps %q, want %q", got, row.steps)
			}
			for _, pid := range pids {
				if alive(pid) {
					t.Errorf("%d of %v is alive", pid, pids)
				}
			}
			if took > row.within+2*time.Second { // the machine is shared
				t.Errorf("it took %v, want %v", took, row.within)
			}
			t.Logf("%v: %s", took, steps(report))
			if n := len(m.Children()); n != 0 {
				t.Errorf("%d children are left", n)
			}
		})
	}
}

func TestGrandchildThatHoldsStdoutDelaysNothing(t *testing.T) {
	c := start(t, newManager(t, nil), childLaunch(t, "family", "leave", "grandchild"))
	pids := pidsIn(firstLine(t, c))
	began := time.Now()
	if rest := readAll(t, c); rest != "" {
		t.Errorf("more output: %q", rest)
	}
	<-c.Gone()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the end took %v", took)
	}
	if got := c.Status(); got != "exit status 0" {
		t.Errorf("status %q", got)
	}
	if alive(pids[1]) {
		t.Error("the grandchild is alive")
	}
}

func TestEverythingWrittenBeforeTheExitIsRead(t *testing.T) {
	c := start(t, newManager(t, nil), childLaunch(t, "exit", "7"))
	<-c.Gone()
	if got := readAll(t, c); got != "last words" || c.Exit().Code != 7 {
		t.Errorf("got %q and %v", got, c.Exit())
	}
	if _, err := c.Stdin().Write([]byte("x")); err == nil {
		t.Error("a write to a dead child succeeded")
	}
	if report := c.Stop(context.Background(), nil); report.Err() != nil || len(report.Steps) != 0 {
		t.Errorf("stopping what has ended: %+v", report)
	}
	c.Kill()
}

func TestWriteToAChildThatJustDiedIsAnError(t *testing.T) {
	c := start(t, newManager(t, nil), childLaunch(t, "exit", "0"))
	eventually(t, "a write fails", func() bool {
		_, err := c.Stdin().Write(bytes.Repeat([]byte("x"), 64<<10))
		return errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed)
	})
}

func TestCrashIsToldByItsSignal(t *testing.T) {
	c := start(t, newManager(t, nil), childLaunch(t, "crash"))
	<-c.Done()
	if got := c.Exit(); got.Code == 0 || got.String() == "" {
		t.Errorf("exit %+v", got)
	}
	c = start(t, newManager(t, nil), childLaunch(t, "polite"))
	firstLine(t, c)
	syscall.Kill(c.PID(), syscall.SIGKILL)
	<-c.Done()
	if got := c.Exit(); got.Code != -1 || got.Signal != "killed" {
		t.Errorf("exit %+v", got)
	}
}

func TestStopIsOneEndForAllWhoAsk(t *testing.T) {
	c := start(t, newManager(t, nil), childLaunch(t, "ignores-eof"))
	firstLine(t, c)
	var asks sync.WaitGroup
	for range 10 {
		asks.Go(func() {
			if err := c.Stop(context.Background(), coded.New("test", "because")).Err(); err != nil {
				t.Error(err)
			}
		})
	}
	c.Kill()
	c.Kill()
	asks.Wait()
	kills := strings.Count(steps(c.Stop(context.Background(), nil)), "kill")
	if kills != 1 {
		t.Errorf("killed %d times", kills)
	}
}

func TestKillIsImmediate(t *testing.T) {
	c := start(t, newManager(t, nil), childLaunch(t, "family", "deaf", "grandchild", "setsid"))
	pids := pidsIn(firstLine(t, c))
	began := time.Now()
	c.Kill()
	<-c.Gone()
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
	for _, pid := range pids {
		if alive(pid) && runtime.GOOS == "linux" {
			t.Errorf("%d is alive", pid)
		}
	}
}

func TestEndedContextSkipsTheWaiting(t *testing.T) {
	c := start(t, newManager(t, nil), childLaunch(t, "deaf"))
	firstLine(t, c)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	began := time.Now()
	if err := c.Stop(ctx, nil).Err(); err != nil || time.Since(began) > 1500*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

// C19: the host is killed outright; nothing of what it started survives the
// next start.
func TestKilledHostLeavesNoSurvivor(t *testing.T) {
	for _, behaviour := range []string{"deaf", "family deaf grandchild", "family deaf grandchild setsid double"} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS != "linux" && strings.Contains(behaviour, "setsid") {
				t.Skip("a stated residual risk on this system")
			}
			folder := t.TempDir()
			os.Mkdir(filepath.Join(folder, "state"), 0o700)
			os.WriteFile(filepath.Join(folder, "behaviour"), []byte(behaviour), 0o600)
			host := exec.Command(self(), "__host", folder)
			host.Stderr = os.Stderr
			if err := host.Start(); err != nil {
				t.Fatal(err)
			}
			var pids []int
			eventually(t, "the host's children are up", func() bool {
				text, err := os.ReadFile(filepath.Join(folder, "pids"))
				pids = pidsIn(string(text))
				return err == nil
			})
			host.Process.Kill()
			host.Wait()
			m := newManager(t, func(c *Config) { c.StateDir = filepath.Join(folder, "state") })
			report, err := m.Sweep(context.Background())
			if err != nil || len(report.Swept) != 1 {
				t.Fatalf("%+v %v", report, err)
			}
			for _, pid := range pids {
				eventually(t, "the survivors are gone", func() bool { return !alive(pid) })
			}
			t.Logf("%v: %+v", pids, report)
			if again, err := m.Sweep(context.Background()); err != nil || len(again.Swept) != 0 {
				t.Errorf("a second sweep: %+v %v", again, err)
			}
		})
	}
}

func TestSweepSparesWhoeverHasTheNumberNow(t *testing.T) {
	cmd := exec.Command("/bin/sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var p proc
	eventually(t, "the program runs", func() bool {
		p, _ = look(cmd.Process.Pid)
		return strings.Contains(imagePath(p.pid), "/") && imagePath(p.pid) != self()
	})
	for _, row := range []struct {
		what    string
		change  func(*entry)
		outcome string
		spared  bool
	}{
		{"another start time", func(e *entry) { e.Start-- }, "absent", true},
		{"another executable", func(e *entry) { e.Executable = "/bin/other" }, "absent", true},
		{"another boot", func(e *entry) { e.Boot = "another" }, "absent", true},
		{"a start that was only intended", func(e *entry) { e.PID, e.Start, e.Data = 0, 0, "/nobody/has/this" }, "unknown", true},
		{"all three agree", func(*entry) {}, "ended", false},
	} {
		e := entry{Connector: "a/b", PID: p.pid, Start: p.start, Boot: bootID(), Executable: imagePath(p.pid)}
		row.change(&e)
		m := newManager(t, nil)
		m.record.left = []entry{e}
		report, err := m.Sweep(context.Background())
		if err != nil || report.Swept[0].Outcome != row.outcome || alive(p.pid) != row.spared {
			t.Errorf("%s: %+v %v, alive %v", row.what, report, err, alive(p.pid))
		}
	}
}

func TestRecordThatCannotBeReadIsKeptAndReported(t *testing.T) {
	for _, text := range []string{"", `{"version":1,"chil`, `{"version":2,"children":[]}`, `{"version":1,"children":[],"more":1}`, `{"version":1,"children":[]} {}`, `{"version":1,"children":[{"pid":-`} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "children.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m := newManager(t, func(c *Config) { c.StateDir = folder })
		report, err := m.Sweep(context.Background())
		if err != nil || report.Unreadable == "" || len(report.Swept) != 0 {
			t.Errorf("%q: %+v %v", text, report, err)
		}
		if kept, err := os.ReadFile(filepath.Join(folder, report.KeptAs)); err != nil || string(kept) != text {
			t.Errorf("%q was kept as %q %v", text, kept, err)
		}
	}
}

func TestRecordNamesChildrenWhileTheyRun(t *testing.T) {
	folder := t.TempDir()
	m := newManager(t, func(c *Config) { c.StateDir = folder })
	c := start(t, m, childLaunch(t, "polite"))
	firstLine(t, c)
	read := func() []entry {
		text, _ := os.ReadFile(filepath.Join(folder, "children.json"))
		entries, err := parseRecord(text)
		if err != nil {
			t.Fatal(err)
		}
		return entries
	}
	entries := read()
	if len(entries) != 1 || entries[0].PID != c.PID() || entries[0].Start == 0 || entries[0].Executable != self() || entries[0].Connector != "demo/main" {
		t.Errorf("recorded %+v", entries)
	}
	c.Stop(context.Background(), nil)
	if left := read(); len(left) != 0 {
		t.Errorf("recorded afterwards %+v", left)
	}
}

func TestStandardErrorIsDrainedAndBounded(t *testing.T) {
	for _, row := range []struct {
		what string
		args []string
	}{
		{"2 MiB without a line end", []string{"2097152", "x"}},
		{"2 MiB of progress", []string{"2097152", "50%\r"}},
		{"2 MiB of empty lines", []string{"2097152", "\n"}},
		{"2 MiB of control characters", []string{"2097152", "\x1b"}},
	} {
		t.Run(row.what, func(t *testing.T) {
			t.Parallel()
			c := start(t, newManager(t, nil), childLaunch(t, append([]string{"flood"}, row.args...)...))
			if got := firstLine(t, c); got != "done" {
				t.Errorf("the child said %q", got)
			}
			<-c.Gone()
			lines := c.Stderr().Lines()
			size := 0
			for _, line := range lines {
				size += len(line)
			}
			if lines[len(lines)-1] != "the end" || size > 4*TailSize+TailLine || c.Stderr().Total() < 2<<20 {
				t.Errorf("%d lines, %d bytes, total %d, last %.20q", len(lines), size, c.Stderr().Total(), lines[len(lines)-1])
			}
		})
	}
}

// C02: the server floods stderr before each answer.
func TestAnswersComeThroughAFloodOfErrors(t *testing.T) {
	c := start(t, newManager(t, nil), childLaunch(t, "reply-after-flood"))
	for range 5 {
		io.WriteString(c.Stdin(), "call\n")
		if got := firstLine(t, c); got != "done" {
			t.Errorf("the child said %q", got)
		}
	}
	c.Stop(context.Background(), nil)
}
