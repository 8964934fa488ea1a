package process

import (
	"math"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// coreLimit is 1 and not 0: a core pattern that is a pipe ignores 0, and the
// kernel takes exactly 1 as "abort the dump" (core(5), fs/coredump.c).
const coreLimit = 1

// closeOnExec sees to it that the child gets no descriptor but its three, also
// none that Sallyport itself was started with.
func closeOnExec() error {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// traceMe lets the kernel stop the child after the exec and before its first
// instruction, so that its image can be compared (spec/approval.md 5.2a). Where
// the system does not allow it, the image is compared while it runs.
//
// Only the first thread may be traced: any other that dies traced stays behind
// until its tracer asks for it by its own number, and the process with it, so
// that whoever waits for the process waits for ever.
func traceMe() bool {
	if unix.Gettid() != os.Getpid() {
		return false
	}
	_, _, err := syscall.RawSyscall(syscall.SYS_PTRACE, syscall.PTRACE_TRACEME, 0, 0)
	return err == 0
}
