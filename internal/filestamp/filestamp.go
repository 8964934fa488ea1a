// Package filestamp says what a stat tells about a file, in one comparable value.
//
// The one idea: whoever wants to know whether a file is still the one that was
// read compares two stamps. The change time is among them, because a program can
// set the write time back and not that one.
//
// Equal stamps are a hint and no proof: a change within one tick of the clock of
// the file system, or through a shared mapping, leaves them as they are. A start
// reads the bytes.
package filestamp

import "io/fs"

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
