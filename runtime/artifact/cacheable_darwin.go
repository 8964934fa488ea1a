package artifact

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// cacheable reports whether a stat cache may be used below dir: on the system's
// own local file systems.
func cacheable(dir string) bool {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil || st.Flags&unix.MNT_LOCAL == 0 {
		return false
	}
	return slices.Contains([]string{"apfs", "hfs"}, unix.ByteSliceToString(st.Fstypename[:]))
}

// settleAt returns the moment from which on a time is too young to be trusted.
// There is no syncfs here: a page made dirty through a mapping before that moment
// may be stored to unseen (stated with Cache).
func settleAt(int) int64 { return time.Now().Add(-clockGrain).UnixNano() }
