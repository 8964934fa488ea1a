// Package filestamp says what a stat tells about a file, in one comparable value.
//
// The one idea: whoever wants to know whether a file is still the one that was
// read compares two stamps. The change time is among them, because a program can
// set the write time back and not that one.
//
// Equal stamps are a hint and no proof: a change within one tick of the clock of
// the file system (see Racy), or through a shared mapping, leaves them as they are.
// A start reads the bytes.
package filestamp

import (
	"io/fs"
	"time"
)

// Stamp is comparable; the zero value is that of a file that is not there.
type Stamp struct {
	exists        bool
	mode          fs.FileMode
	size          int64
	write, change int64 // nanoseconds; change is 0 where the system has none
	device, inode uint64
}

// Of returns the stamp of a file, or of its absence for nil.
func Of(info fs.FileInfo) Stamp {
	if info == nil {
		return Stamp{}
	}
	s := Stamp{exists: true, mode: info.Mode(), size: info.Size(), write: info.ModTime().UnixNano()}
	s.change, s.device, s.inode = system(info)
	return s
}

// Exists reports whether the file was there.
func (s Stamp) Exists() bool { return s.exists }

// tick is the coarsest time stamp of a file system in use (FAT: 2 s).
const tick = 2 * time.Second

// Racy reports whether a change made just after now could leave the stamp as it
// is, in the manner of git's index: with now the moment at which the file was
// begun to be read, what was read does not belong to a racy stamp for certain. A
// time in the future is always racy.
func (s Stamp) Racy(now time.Time) bool {
	limit := now.Add(-tick).UnixNano()
	return s.exists && (s.write > limit || s.change > limit)
}

// Node returns the part that says which file it is, whatever becomes of its mode
// and contents.
func (s Stamp) Node() Stamp { return Stamp{exists: s.exists, device: s.device, inode: s.inode} }

// Timeless returns s without size and times: for a directory, what does not change
// with the entries in it.
func (s Stamp) Timeless() Stamp {
	s.size, s.write, s.change = 0, 0, 0
	return s
}
