//go:build linux

package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// growthLimit is the promise of how much an endless line may cost the host.
const growthLimit = 16 << 20

// resident is VmRSS, in bytes.
func resident(t testing.TB, pid int) int64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("there is no VmRSS")
	return 0
}

// peak watches the memory of a process until it is stopped.
func peak(t testing.TB, pid int) (stop func() int64) {
	ctx, cancel := context.WithCancel(context.Background())
	seen := make(chan int64, 1)
	go func() {
		most := int64(0)
		for ctx.Err() == nil {
			most = max(most, resident(t, pid))
			time.Sleep(2 * time.Millisecond)
		}
		seen <- most
	}()
	return func() int64 { cancel(); return <-seen }
}

func TestAnEndlessFloodIsNobodyElsesTrouble(t *testing.T) {
	for _, behaviour := range []string{"endless", "endless-string", "endless-stderr"} {
		t.Run(behaviour, func(t *testing.T) { flood(t, behaviour) })
	}
}

const pending = 50

func flood(t *testing.T, behaviour string) {
	f := newPlainFort(t)
	f.addServer("flood", behaviour, set("command", "./script"))
	f.write("flood", "script", []byte("#!/bin/sh\nsleep 1000 &\nexec \"$PLUGIN_ROOT/fakeserver\" \"$@\"\n"), 0o755) // the sleeper holds stdout too
	f.addServer("other", "polite")
	s := f.serve()
	f.approve("flood")
	f.approve("other")
	agent, other := s.overHTTP("claude"), s.overHTTP("cursor")
	flooding, neighbour := f.pid("flood/main"), f.pid("other/main")
	for range 200 {
		other.wantOK("other__main__go") // warm: what the host needs anyway is there
	}

	var calls sync.WaitGroup
	answers := make(chan error, pending)
	for range pending {
		calls.Go(func() {
			_, err := agent.call("flood__main__hang", nil)
			answers <- err
		})
	}
	waitFor(t, "all calls are on their way", 20*time.Second, func() bool { return s.inFlight("flood") == pending })
	if n := len(f.childrenOf("flood")); n != 2 {
		t.Fatalf("the tree has %d processes", n)
	}
	asked, stop, asking := steady(other)
	before := resident(t, s.PID)
	most := peak(t, s.PID)

	begun := time.Now()
	_, err := agent.call("flood__main__go", nil)
	if behaviour == "endless-stderr" {
		if err != nil {
			t.Errorf("the call was answered before the flood: %v", err)
		}
		time.Sleep(3 * time.Second) // of a flood that nobody ends: what is awaited is that nothing happens
		if !alive(flooding) {
			t.Error("a server was ended for what it says on stderr")
		}
		f.ok("disable", "flood")
	} else if err == nil {
		t.Error("an endless line was answered")
	}
	calls.Wait()
	took := time.Since(begun)
	for range pending {
		if err := <-answers; err == nil || behaviour != "endless-stderr" && !strings.Contains(err.Error(), "frame-too-large") {
			t.Errorf("a pending call ended with %v", err)
		}
	}
	waitFor(t, "the whole tree is gone", 10*time.Second, func() bool { return len(f.childrenOf("flood")) == 0 })
	waitFor(t, "the neighbour answers on", 5*time.Second, func() bool { return asked.Load() >= 20 })
	grown := most() - before
	stop()
	slowest := <-asking
	t.Logf("grew by %d KiB; all %d refused %s after the call; the neighbour's slowest of %d calls took %s", grown>>10, pending, took, slowest.calls, slowest.most)
	if grown >= growthLimit {
		t.Errorf("the host grew by %d bytes", grown)
	}
	if took > 15*time.Second {
		t.Errorf("the pending calls waited %s", took)
	}
	if slowest.err != nil || slowest.most > 5*time.Second {
		t.Errorf("the neighbour noticed: %+v", slowest)
	}
	if now := f.pid("other/main"); now != neighbour {
		t.Error("the neighbour was started again")
	}
}

// inFlight is how many calls a server has to answer.
func (s *sidecar) inFlight(plugin string) int {
	_, body := s.ask("GET", "/v1/plugins/"+plugin+"/main")
	_, after, _ := strings.Cut(string(body), `"inFlight":`)
	n, _ := strconv.Atoi(strings.TrimRight(after[:min(len(after), 4)], ",}\n "))
	return n
}

// steadily is how somebody else fared meanwhile.
type steadily struct {
	calls int
	most  time.Duration
	err   error
}

// steady calls another plugin one call after the other until it is stopped.
func steady(a *agent) (asked *atomic.Int64, stop func(), fared <-chan steadily) {
	asked = &atomic.Int64{}
	ctx, cancel := context.WithCancel(context.Background())
	out := make(chan steadily, 1)
	go func() {
		var s steadily
		for ctx.Err() == nil && s.err == nil {
			begun := time.Now()
			_, s.err = a.call("other__main__go", nil)
			asked.Add(1)
			s.calls, s.most = s.calls+1, max(s.most, time.Since(begun))
		}
		out <- s
	}()
	return asked, cancel, out
}
