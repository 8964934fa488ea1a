//go:build !windows

package clients

import (
	"io/fs"
	"os"
	"syscall"
)

// ours reports whether a file is this user's; root may write everybody's, and gives
// it back (keepOwner).
func ours(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || os.Geteuid() == 0 || int(stat.Uid) == os.Geteuid()
}

// keepOwner gives a file that was replaced the owner and group of the one before.
func keepOwner(path string, before fs.FileInfo) error {
	stat, ok := before.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	now, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if is, ok := now.Sys().(*syscall.Stat_t); ok && is.Uid == stat.Uid && is.Gid == stat.Gid {
		return nil
	}
	if err := os.Lchown(path, int(stat.Uid), int(stat.Gid)); err != nil && os.Geteuid() == 0 {
		return err // another group that this user may not give is left
	}
	return nil
}
