//go:build linux || darwin

package bundle

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

// attributes lists the extended attributes of a file, not those of what it links to.
func attributes(path string) ([]string, error) {
	size, err := unix.Llistxattr(path, nil)
	if errors.Is(err, unix.ENOTSUP) || err == nil && size == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names := make([]byte, size+1024) // room for one that comes in between
	if size, err = unix.Llistxattr(path, names); err != nil {
		return nil, err
	}
	return strings.FieldsFunc(string(names[:size]), func(r rune) bool { return r == 0 }), nil
}
