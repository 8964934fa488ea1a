package atomicfile

import (
	"errors"

	"golang.org/x/sys/unix"
)

// renameNew gives from the name to unless something has it.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return linkNew(from, to)
	}
	return err
}
