package loopback

import (
	"errors"
	"syscall"

	"golang.org/x/sys/windows"
)

// soExclusiveAddrUse is SO_EXCLUSIVEADDRUSE, ~SO_REUSEADDR in winsock2.h.
const soExclusiveAddrUse = ^windows.SO_REUSEADDR

// exclusive keeps another program from binding the same address with
// SO_REUSEADDR and taking the connections, which Windows allows by default.
func exclusive(_, _ string, c syscall.RawConn) error {
	var err error
	if controlErr := c.Control(func(fd uintptr) {
		err = windows.SetsockoptInt(windows.Handle(fd), windows.SOL_SOCKET, soExclusiveAddrUse, 1)
	}); controlErr != nil {
		return controlErr
	}
	return err
}

func addressInUse(err error) bool {
	// WSAEACCES is the answer where the other program asked for exclusive use.
	return errors.Is(err, windows.WSAEADDRINUSE) || errors.Is(err, windows.WSAEACCES)
}
