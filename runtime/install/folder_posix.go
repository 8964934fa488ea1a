//go:build !windows

package install

import "syscall"

// withoutWaiting opens without waiting for the other end of what became a pipe
// since it was listed.
const withoutWaiting = syscall.O_NONBLOCK

const nullDevice = "/dev/null"
