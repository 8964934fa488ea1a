//go:build !windows

package console

import (
	"os"
	"syscall"
)

const shellVariable = "SHELL"

func systemShell() string { return "/bin/sh" }

// trusted reports whether a path leads to a program that is root's or this user's own
// and that nobody else may write.
func trusted(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int(stat.Uid) == os.Geteuid())
}
