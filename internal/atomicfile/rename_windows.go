package atomicfile

import (
	"errors"
	"time"

	"golang.org/x/sys/windows"
)

// replace gives from the name to, whatever had it.
func replace(from, to string) error {
	return move(from, to, windows.MOVEFILE_REPLACE_EXISTING|windows.MOVEFILE_WRITE_THROUGH)
}

// renameNew gives from the name to unless something has it.
func renameNew(from, to string) error {
	return move(from, to, windows.MOVEFILE_WRITE_THROUGH)
}

// move tries again for up to 200 ms while a scanner or an indexer holds one of
// the files open without sharing it.
func move(from, to string, flags uint32) error {
	source, err := windows.UTF16PtrFromString(from)
	if err != nil {
		return err
	}
	target, err := windows.UTF16PtrFromString(to)
	if err != nil {
		return err
	}
	for try := 0; ; try++ {
		err = windows.MoveFileEx(source, target, flags)
		held := errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
		if err == nil || !held || try == 10 {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// syncFolder has nothing to do: MOVEFILE_WRITE_THROUGH returns after the name is
// on disk.
func syncFolder(string) error { return nil }
