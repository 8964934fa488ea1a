package process

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// awaitZombie blocks until pid has ended, reads how, and does not reap it.
func awaitZombie(pid int) Exit {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return Exit{Code: -1, Signal: "unknown"}
		}
	}
	// sigaction(2): on 64-bit systems si_pid, si_uid and si_status follow the
	// three integers and four bytes of padding.
	status := *(*int32)(unsafe.Add(unsafe.Pointer(&info), 24))
	return exitOf(info.Code, status)
}
