//go:build !windows

package atomicfile

import "os"

// replace gives from the name to, whatever had it.
func replace(from, to string) error { return os.Rename(from, to) }

// syncFolder makes the names in a folder durable.
func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// linkNew gives from the name to unless something has it, by a hard link, for
// file systems without an exclusive rename.
func linkNew(from, to string) error {
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}
