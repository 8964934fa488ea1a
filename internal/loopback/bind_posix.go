//go:build !windows

package loopback

import (
	"errors"
	"syscall"
)

// exclusive has nothing to do here: two listeners on one address are refused
// unless both ask for SO_REUSEPORT, and this one does not.
func exclusive(string, string, syscall.RawConn) error { return nil }

func addressInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }
