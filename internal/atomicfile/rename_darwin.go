package atomicfile

import (
	"errors"

	"golang.org/x/sys/unix"
)

// renameNew gives from the name to unless something has it.
func renameNew(from, to string) error {
	err := unix.RenamexNp(from, to, unix.RENAME_EXCL)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return linkNew(from, to)
	}
	return err
}
