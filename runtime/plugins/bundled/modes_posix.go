//go:build !windows

package bundled

// keepsModes says whether the file system keeps permission bits.
const keepsModes = true
