//go:build !windows

package env

import (
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// protection remembers which paths this user cannot change.
type protection map[string]bool

// of reports that this user can write neither the file nor any folder above it.
// It is never so when running privileged, and never for what the user owns, who
// could make it writable.
func (p protection) of(path string) bool {
	if os.Geteuid() == 0 {
		return false
	}
	return p.chain(filepath.Clean(path))
}

func (p protection) chain(path string) bool {
	if known, ok := p[path]; ok {
		return known
	}
	safe := unwritable(path)
	if parent := filepath.Dir(path); safe && parent != path {
		safe = p.chain(parent)
	}
	p[path] = safe
	return safe
}

func unwritable(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) == os.Geteuid() {
		return false
	}
	if info.Mode()&os.ModeSymlink != 0 {
		return true // a link is as safe as the folder that it is in
	}
	return !mayWrite(path)
}

func mayWrite(path string) bool {
	err := unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS)
	return err != unix.EACCES && err != unix.EROFS && err != unix.EPERM
}
