//go:build !windows

package plugins

import "syscall"

// openNonblock makes opening return at once whatever the entry is by now.
const openNonblock = syscall.O_NONBLOCK
