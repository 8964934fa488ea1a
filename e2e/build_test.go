//go:build linux

package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"sallyport/internal/fakeserver/fakeservertest"
)

// built is what every test of this process shares: programs, built when the first
// test needs them, in a folder that goes with the process.
var built struct {
	dir                 string
	program, plain      func() (string, error)
	fakeserver, goSuite func() (string, error)
	desktop             func() (string, error)
}

// together is how many of the tests that allow it run at once: they wait for browsers,
// windows, scripts and servers more than they compute.
const together = 4

func TestMain(m *testing.M) {
	flag.Parse()
	if most := flag.Lookup("test.parallel"); most.Value.String() == most.DefValue && runtime.GOMAXPROCS(0) < together {
		_ = most.Value.Set(strconv.Itoa(together))
	}
	heedSignals()
	dir, err := os.MkdirTemp("", "sallyport-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	built.dir = dir
	built.plain = sync.OnceValues(func() (string, error) { return goBuild("sallyport", "sallyport", false) })
	built.program = built.plain
	if withRace {
		built.program = sync.OnceValues(func() (string, error) { return goBuild("sallyport-race", "sallyport", true) })
	}
	built.fakeserver = sync.OnceValues(func() (string, error) { return fakeservertest.BuildIn(dir) })
	built.goSuite = sync.OnceValues(func() (string, error) {
		return goBuild("everything-server", "github.com/modelcontextprotocol/go-sdk/conformance/everything-server", false)
	})
	built.desktop = sync.OnceValues(func() (string, error) { return goBuild("sallyport-desktop", "sallyport", false, desktopTags) })
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// heedSignals: under nohup, or in the background of a shell, signals are ignored, by the
// children too, and a script cannot take that back. Tests send these.
func heedSignals() {
	for _, one := range []os.Signal{syscall.SIGINT, syscall.SIGHUP} {
		if signal.Ignored(one) {
			signal.Notify(make(chan os.Signal, 1), one)
		}
	}
}

func goBuild(name, pkg string, race bool, tags ...string) (string, error) {
	path := filepath.Join(built.dir, name)
	args := []string{"build", "-o", path}
	cgo := "CGO_ENABLED=0"
	if race {
		args, cgo = append(args, "-race"), "CGO_ENABLED=1"
	}
	if len(tags) > 0 {
		args, cgo = append(args, "-tags", strings.Join(tags, ",")), "CGO_ENABLED=1"
	}
	build := exec.Command("go", append(args, pkg)...)
	build.Env = append(os.Environ(), cgo)
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("cannot build %s: %w", name, err), errors.New(string(out)))
	}
	return path, nil
}

// program is the path of sallyport, with the race detector where the tests have it.
func program(t testing.TB) string { return need(t, built.program) }

// plainProgram is sallyport as it is shipped, for tests of memory and time.
func plainProgram(t testing.TB) string { return need(t, built.plain) }

func need(t testing.TB, build func() (string, error)) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
