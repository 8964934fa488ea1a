package atomicfile

import (
	"fmt"
	"path/filepath"
)

// Rename gives a whole and synced file the name to, whatever had it, and makes
// the name durable. Both must be in one folder.
func Rename(from, to string) error { return renameDurably(replace, from, to) }

// RenameNew is Rename unless something has the name: then the error is
// fs.ErrExist and nothing has changed.
func RenameNew(from, to string) error { return renameDurably(renameNew, from, to) }

func renameDurably(rename func(from, to string) error, from, to string) error {
	if err := rename(from, to); err != nil {
		return fmt.Errorf("cannot rename %q to %q: %w", filepath.Base(from), filepath.Base(to), pathless(err))
	}
	return syncFolder(filepath.Dir(to))
}
