package process

import (
	"syscall"
	"unsafe"
)

// siginfo is siginfo_t of <sys/signal.h>.
type siginfo struct {
	signo, errno, code, pid int32
	uid                     uint32
	status                  int32
	_                       [104]byte
}

// awaitZombie blocks until pid has ended, reads how, and does not reap it.
func awaitZombie(pid int) Exit {
	const (
		pPID    = 1
		exited  = 0x04
		noReap  = 0x20
		unknown = "unknown"
	)
	var info siginfo
	for {
		_, _, err := syscall.Syscall6(syscall.SYS_WAITID, pPID, uintptr(pid), uintptr(unsafe.Pointer(&info)), exited|noReap, 0, 0)
		if err == 0 {
			return exitOf(info.code, info.status)
		}
		if err != syscall.EINTR {
			return Exit{Code: -1, Signal: unknown}
		}
	}
}
