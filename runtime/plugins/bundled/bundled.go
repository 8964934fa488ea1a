// Package bundled holds the plugins that come with Sallyport.
//
// The one idea: a bundled plugin is a plugin like any other. It is written to a
// folder, found there, asked about and approved; nothing is trusted for having
// come along.
//
// It knows no format and approves nothing. host imports it.
package bundled

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// FS has one folder a plugin at its root.
//
//go:embed all:notes
var FS embed.FS

// The modes that unpacked entries have, whatever the umask is.
const (
	dirMode  fs.FileMode = 0o755
	fileMode fs.FileMode = 0o644
)

// Unpack makes each plugin of FS a folder below dir, and leaves one that is
// already exactly so alone, so that its digest and its times stay. Another is
// replaced as a whole: it is staged beside and renamed. What else is in dir is
// left alone. dir is created.
func Unpack(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot create the folder of bundled plugins: %w", err)
	}
	entries, err := FS.ReadDir(".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		source, err := fs.Sub(FS, entry.Name())
		if err != nil {
			return err
		}
		if err := place(source, filepath.Join(dir, entry.Name())); err != nil {
			return fmt.Errorf("cannot unpack the bundled plugin %q: %w", entry.Name(), err)
		}
	}
	return nil
}

func place(source fs.FS, target string) error {
	if isSame(source, target) {
		return nil
	}
	staged, err := os.MkdirTemp(filepath.Dir(target), ".unpack-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(staged) }()
	fresh, old := filepath.Join(staged, "new"), filepath.Join(staged, "old")
	if err := write(source, fresh); err != nil {
		return err
	}
	if err := os.Rename(target, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(fresh, target); err != nil {
		// Two programs may unpack at once: the other's copy is as good.
		if isSame(source, target) {
			return nil
		}
		_ = os.Rename(old, target)
		return err
	}
	return nil
}

func write(source fs.FS, target string) error {
	return fs.WalkDir(source, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path := filepath.Join(target, filepath.FromSlash(name))
		if entry.IsDir() {
			if err := os.Mkdir(path, dirMode); err != nil {
				return err
			}
			return os.Chmod(path, dirMode)
		}
		data, err := fs.ReadFile(source, name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, data, fileMode); err != nil {
			return err
		}
		return os.Chmod(path, fileMode)
	})
}

// isSame reports whether target holds exactly the entries of source.
func isSame(source fs.FS, target string) bool {
	wanted := map[string]bool{}
	same := fs.WalkDir(source, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		wanted[filepath.FromSlash(name)] = true
		return isSameEntry(source, name, entry, filepath.Join(target, filepath.FromSlash(name)))
	})
	if same != nil {
		return false
	}
	extra := filepath.WalkDir(target, func(path string, _ fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(target, path)
		if err != nil || relErr != nil || !wanted[name] {
			return errDiffers
		}
		return nil
	})
	return extra == nil
}

var errDiffers = errors.New("differs")

func isSameEntry(source fs.FS, name string, entry fs.DirEntry, path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.IsDir() != entry.IsDir() {
		return errDiffers
	}
	mode := fileMode
	if entry.IsDir() {
		mode = dirMode
	}
	if keepsModes && info.Mode()&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != mode {
		return errDiffers
	}
	if entry.IsDir() {
		return nil
	}
	if !info.Mode().IsRegular() {
		return errDiffers
	}
	have, err := os.ReadFile(path)
	if err != nil {
		return errDiffers
	}
	want, err := fs.ReadFile(source, name)
	if err != nil || !bytes.Equal(have, want) {
		return errDiffers
	}
	return nil
}
