//go:build !windows

package approvals

import "io/fs"

// openToOthers reports whether the file's mode lets group or others read or write
// it.
func openToOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o066 != 0 }
