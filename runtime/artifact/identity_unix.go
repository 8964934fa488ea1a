//go:build unix

package artifact

import (
	"io/fs"
	"syscall"
)

// neverBlock makes the open of a FIFO return, should one take a file's place
// between the look and the open.
const neverBlock = syscall.O_NONBLOCK | syscall.O_NOFOLLOW

func identityOf(info fs.FileInfo) identity {
	st := info.Sys().(*syscall.Stat_t)
	return identity{
		dev: uint64(st.Dev), ino: uint64(st.Ino), size: st.Size, mode: uint32(st.Mode),
		mtime: info.ModTime().UnixNano(), ctime: changeTime(st),
	}
}
