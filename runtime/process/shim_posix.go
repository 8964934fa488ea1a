//go:build !windows

package process

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"sallyport/runtime/plugins"
)

// The shim stays on the process's first thread, which init runs on and main only
// happens to: see traceMe.
func init() {
	if len(os.Args) > 1 && os.Args[1] == ShimArg {
		runtime.LockOSThread()
	}
}

// ShimMain sets umask, limits and descriptors and becomes the child. args are
// what follows ShimArg: the order, the path, the child's arguments. It does not
// return: either the image is replaced, or descriptor 3 says why not and the
// exit status is 127.
//
// It runs between fork and exec of the child, in the child's environment: it
// reads nothing from it, opens nothing and trusts nothing but its arguments.
func ShimMain(args []string) {
	if len(args) < 2 {
		os.Exit(2)
	}
	var order shimOrder
	if err := json.Unmarshal([]byte(args[0]), &order); err != nil {
		os.Exit(2)
	}
	path, argv, environ := args[1], args[1:], os.Environ()
	syscall.Umask(0o077)
	if err := closeOnExec(); err != nil {
		fail("descriptors", err)
	}
	if order.Signals {
		// What is caught, and only that, has its default again after the exec.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
			syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGCONT)
	}
	limits := limitsOf(order.Budget)
	say(shimTraced)
	if !traceMe() {
		say(shimUntraced)
	}
	for _, l := range limits {
		if err := lower(l); err != nil {
			fail(l.name, err)
		}
	}
	fail("exec", syscall.Exec(path, argv, environ))
}

type limit struct {
	name       string
	resource   int
	soft, hard uint64
}

// limitsOf turns a budget into limits of one process. Those of the whole tree
// are watched from outside (budget.go).
func limitsOf(b plugins.Budget) []limit {
	limits := []limit{
		{"core", unix.RLIMIT_CORE, coreLimit, coreLimit},
		{"open files", unix.RLIMIT_NOFILE, uint64(b.OpenFiles), uint64(b.OpenFiles)},
	}
	if b.MemoryBytes > 0 {
		// Data, not address space: runtimes such as V8 reserve far more than they
		// use. Far above the budget, because the watcher, which can say why, is to
		// be the one that acts; this is for what is quicker than it.
		most := 4*min(uint64(b.MemoryBytes), 1<<50) + 1<<30
		limits = append(limits, limit{"memory", unix.RLIMIT_DATA, most, most})
	}
	return limits
}

// lower never raises what the user's own limit is.
func lower(l limit) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(l.resource, &now); err != nil {
		return err
	}
	hard := min(l.hard, uint64(now.Max))
	return unix.Setrlimit(l.resource, &unix.Rlimit{Cur: min(l.soft, hard), Max: hard})
}

func say(line string) { _, _ = unix.Write(shimStatus, []byte(line+"\n")) }

func fail(what string, err error) {
	number, _ := err.(syscall.Errno)
	say(fmt.Sprintf("%s %d %s", shimFailed, int(number), what))
	os.Exit(127)
}
