//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const kills = 100

// TestKilledAtAnyMoment kills the sidecar, and everybody who talks to it, at random
// points of an approval, a call, a scan and a start. What finished is kept, what was
// never answered is not there, the audit verifies and nothing is left running.
func TestKilledAtAnyMoment(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	f := newPlainFort(t)
	w := &wreck{fort: f, enabled: map[string]bool{}, began: map[string]bool{}}
	for n := range 4 {
		w.add(n)
	}
	f.addServer("untouched", "polite") // nobody ever answers about it
	begun := time.Now()
	inStart := 0
	for n := range kills {
		early := n%5 == 4
		w.kill(random, n, early)
		if early {
			inStart++
		}
		w.survey(n)
	}
	t.Logf("%d kills, %d of them during a start, in %s; %d approvals were finished, %d begun and cut", kills, inStart, time.Since(begun), len(w.enabled), len(w.began))
	if len(w.enabled) < kills/10 {
		t.Error("too few approvals were finished for this to say anything")
	}
}

// wreck is a home in which things are broken off.
type wreck struct {
	*fort
	names   []string
	enabled map[string]bool // a finished approve said so
	began   map[string]bool // an approve was begun and did not finish
}

func (w *wreck) add(n int) {
	name := fmt.Sprintf("plugin%d", n)
	behaviour := "polite"
	if n%8 == 7 {
		behaviour = "ignores-eof" // its first try is still being ended when the end comes
	}
	w.addServer(name, behaviour)
	w.names = append(w.names, name)
}

// kill starts the sidecar and work on it and kills all at a random moment.
func (w *wreck) kill(random *rand.Rand, n int, early bool) {
	t := w.t
	t.Helper()
	if early {
		cmd := w.command("serve")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.IntN(60_000)) * time.Microsecond)
		cmd.Process.Kill()
		cmd.Wait()
		return
	}
	end := func() {}
	if n%5 != 3 { // there each command opens a host of its own
		s, err := w.tryServe()
		if err != nil {
			t.Fatalf("kill %d: it does not start again: %v\n%s\n%s", n, err, s.stderr, s.log())
		}
		w.swept(n)
		end = s.kill
	}
	fresh := fmt.Sprintf("plugin%d", len(w.names))
	w.add(len(w.names))
	work := [][]string{{"approve", fresh, "--yes", "--all-tools"}, {"plugins", "scan"}}
	for _, name := range w.names {
		if w.enabled[name] {
			work = append(work, []string{"call", name, "go"})
			if len(work) == 4 {
				break
			}
		}
	}
	ends := make([]chan outcome, len(work))
	commands := make([]*exec.Cmd, len(work))
	for i, args := range work {
		commands[i], ends[i] = w.begin(args)
	}
	most := 300 // within an approval
	if n%2 == 0 {
		most = 1200 // and now and then after one
	}
	var got outcome
	if n%10 == 0 {
		got = <-ends[0] // for certain
		most = 100
	}
	time.Sleep(time.Duration(random.IntN(most)) * time.Millisecond)
	end()
	for _, cmd := range commands {
		syscall.Kill(cmd.Process.Pid, syscall.SIGKILL)
	}
	if n%10 != 0 {
		got = <-ends[0]
	}
	if got.code == 0 && strings.Contains(got.stdout, "is enabled") {
		w.enabled[fresh] = true
	} else {
		w.began[fresh] = true
	}
	for _, end := range ends[1:] {
		<-end
	}
}

func (w *wreck) begin(args []string) (*exec.Cmd, chan outcome) {
	var out bytes.Buffer
	cmd := w.command(args...)
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	end := make(chan outcome, 1)
	go func() {
		cmd.Wait()
		end <- outcome{stdout: out.String(), code: cmd.ProcessState.ExitCode()}
	}()
	return cmd, end
}

// survey looks at what is left, without a sidecar.
func (w *wreck) survey(n int) {
	t := w.t
	t.Helper()
	if got := w.run("audit", "verify"); got.code != 0 && n > 0 {
		t.Fatalf("kill %d: the audit does not verify: %+v", n, got)
	}
	if n%5 != 0 {
		return // the states need a host of their own, which sweeps: not after each
	}
	var all []connector
	w.read(&all, "plugins", "list")
	if len(all) < len(w.names) {
		t.Fatalf("kill %d: %d connectors are listed", n, len(all))
	}
	for _, one := range all {
		name, _, _ := strings.Cut(one.ID, "/")
		enabled := one.State == "enabled"
		if w.enabled[name] && !enabled {
			t.Errorf("kill %d: the approval of %s was lost: %+v", n, name, one)
		}
		if enabled && !w.enabled[name] && !w.began[name] {
			t.Errorf("kill %d: an approval of %s was invented", n, name)
		}
		if enabled && w.began[name] {
			w.enabled[name] = true // it was answered, and its answer arrived
		}
	}
	w.swept(n)
}

// swept is called after a start: nothing of an earlier run is alive.
func (w *wreck) swept(n int) {
	w.t.Helper()
	var left []int
	if !holds(5*time.Second, func() bool { left = w.children(); return len(left) == 0 }) {
		for _, pid := range left {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			w.t.Errorf("kill %d: an orphan survived the next start: %d %q", n, pid, line)
		}
	}
	if i := slices.Index(left, os.Getpid()); i >= 0 {
		w.t.Error("the test takes itself for an orphan")
	}
}
