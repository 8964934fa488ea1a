// Package owneronly makes folders that nobody but their owner can look into.
//
// The one idea: what 0600 says on Linux and macOS, Windows says with an access
// list, and there a file takes its list from its folder. So the folder is what is
// protected, once, and every file made in it afterwards is its owner's alone on
// every system (spec/local-api.md 2).
//
// An administrator can still read everything. It knows no domain words. Every
// package may import it.
package owneronly

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Folder makes the folder at path, with the folders above it, or takes an
// existing one, and closes it to everybody but its owner (and the system itself
// on Windows). Folders above that exist already stay as they are. A link to a
// folder is followed; anything else at path is an error.
func Folder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return cannot(path, err)
	}
	if err := protect(path); err != nil {
		return cannot(path, err)
	}
	return nil
}

// cannot names the last element alone: the rest may be the user's.
func cannot(path string, err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	return fmt.Errorf("cannot make the folder %q private: %w", filepath.Base(path), err)
}
