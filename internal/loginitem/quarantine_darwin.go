package loginitem

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// quarantined reports whether macOS asks before it opens a program, or the bundle that it
// is in.
func quarantined(program string) bool {
	for path := program; ; path = filepath.Dir(path) {
		if path == program || strings.HasSuffix(path, ".app") {
			if n, err := unix.Getxattr(path, "com.apple.quarantine", nil); err == nil && n > 0 {
				return true
			}
		}
		if path == filepath.Dir(path) {
			return false
		}
	}
}
