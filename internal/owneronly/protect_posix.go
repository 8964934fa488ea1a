//go:build !windows

package owneronly

import "os"

// protect takes every right of group and others, whatever the umask was.
func protect(path string) error {
	return os.Chmod(path, 0o700) // a folder needs its execute bit
}
