package artifact

import (
	"time"

	"golang.org/x/sys/unix"
)

// File systems on disk whose ctime moves with every change after a sync. All
// others get a full digest each time: memory has no pages to write-protect, and
// whoever serves FUSE or a network share may answer what he likes.
const (
	magicBtrfs = 0x9123683e
	magicExt   = 0xef53
	magicXFS   = 0x58465342
)

// cacheable reports whether a stat cache may be used below dir.
func cacheable(dir string) bool {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return false
	}
	switch uint32(st.Type) {
	case magicBtrfs, magicExt, magicXFS:
		return true
	}
	return false
}

// settleAt writes out the dirty pages of the file system that fd is on, so that
// the next store through a mapping moves ctime, and returns the moment from
// which on a time is too young to be trusted. An error trusts nothing.
func settleAt(fd int) int64 {
	t0 := time.Now().Add(-clockGrain).UnixNano()
	if unix.Syncfs(fd) != nil {
		return 0
	}
	return t0
}
