//go:build unix

package artifact

import "syscall"

func makeFifo(path string) error { return syscall.Mkfifo(path, 0o644) }

func chmodExact(path string, mode uint32) error { return syscall.Chmod(path, mode) }
