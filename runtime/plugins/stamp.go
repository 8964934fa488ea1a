package plugins

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"syscall"
	"time"
)

// stamp is what stat tells about a directory entry; equal stamps mean unchanged,
// but for the racy case (cache.go) and for stores through a shared mapping.
type stamp struct {
	exists        bool
	mode          fs.FileMode
	size          int64
	mtime, ctime  int64 // nanoseconds
	device, inode uint64
}

// stampOf takes nil for an entry that is missing.
func stampOf(info fs.FileInfo) stamp {
	if info == nil {
		return stamp{}
	}
	s := stamp{exists: true, mode: info.Mode(), size: info.Size(), mtime: info.ModTime().UnixNano()}
	s.ctime, s.device, s.inode = systemStamp(info)
	return s
}

// raceWindow is the coarsest time stamp of a file system in use (FAT: 2 s).
const raceWindow = 2 * time.Second

// racy reports whether a change made just after now could leave the stamp as it
// is. A time in the future is always racy.
func (s stamp) racy(now time.Time) bool {
	limit := now.Add(-raceWindow).UnixNano()
	return s.exists && (s.mtime > limit || s.ctime > limit)
}

func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func sortedByName(entries []fs.DirEntry) []fs.DirEntry {
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries
}
