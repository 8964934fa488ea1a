//go:build unix

package artifact

import (
	"syscall"
	"time"
)

func makeFifo(path string) error { return syscall.Mkfifo(path, 0o644) }

func chmodExact(path string, mode uint32) error { return syscall.Chmod(path, mode) }

// processorTime is what this process and its ended children have used.
func processorTime() (used time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		if syscall.Getrusage(who, &r) == nil {
			used += time.Duration(r.Utime.Nano() + r.Stime.Nano())
		}
	}
	return used
}
