package filestamp

import (
	"io/fs"
	"syscall"
)

// system returns the change time, the device and the inode.
func system(info fs.FileInfo) (change int64, device, inode uint64) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, 0
	}
	return s.Ctim.Nano(), uint64(s.Dev), s.Ino
}
