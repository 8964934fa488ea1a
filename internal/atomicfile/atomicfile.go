// Package atomicfile replaces a file whole or not at all.
//
// The one idea: the new bytes are written beside the target, counted, synced,
// and only then given the target's name; whatever goes wrong before that, the
// old file is as it was and the temporary one is gone. A reader sees the old
// bytes or the new ones, never a mixture or a short file.
//
// It does not lock: two writers of one path each leave a whole file, the later
// one's. It knows no domain words. Every package may import it.
package atomicfile

import (
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write puts data at path with exactly the permissions perm (the umask does not
// count; Windows keeps only the read-only bit). When it returns nil, bytes and
// name are on disk. A symbolic link at path is itself replaced; what it points to
// is not touched. The file gets a new inode, so that a running program's image
// or an open reader keeps the old bytes. The folder must exist.
func Write(path string, data []byte, perm fs.FileMode) error {
	return write(createFile, replace, path, data, perm)
}

// WriteNew is Write for a path at which nothing may be, not even a dangling
// link: otherwise the error is fs.ErrExist and nothing has changed. Of several
// concurrent callers one succeeds.
func WriteNew(path string, data []byte, perm fs.FileMode) error {
	return write(createFile, renameNew, path, data, perm)
}

// file is the part of *os.File that is used, so that a test can be a full disk.
type file interface {
	io.Writer
	Chmod(fs.FileMode) error
	Sync() error
	Stat() (fs.FileInfo, error)
	Close() error
}

func createFile(name string) (file, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

func write(create func(string) (file, error), rename func(from, to string) error, path string, data []byte, perm fs.FileMode) (err error) {
	name := filepath.Base(path)
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot write %q: %w", name, pathless(err))
		}
	}()
	temp := filepath.Join(filepath.Dir(path), "."+name+"."+rand.Text()[:10]+".tmp")
	f, err := create(temp)
	if err != nil {
		return err
	}
	if err = fill(f, data, perm); err == nil {
		err = rename(temp, path)
	}
	if err != nil {
		os.Remove(temp)
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// fill writes, syncs and closes f, and believes nothing that it did not count
// (C77: a short file must not be renamed over a good one).
func fill(f file, data []byte, perm fs.FileMode) error {
	err := fillOpen(f, data, perm)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

func fillOpen(f file, data []byte, perm fs.FileMode) error {
	n, err := f.Write(data)
	if err != nil {
		return err
	}
	if n != len(data) {
		return io.ErrShortWrite
	}
	if err := f.Chmod(perm.Perm()); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() != int64(len(data)) {
		return io.ErrShortWrite
	}
	return nil
}

// pathless takes the absolute paths out of an error of package os and keeps its
// operation and cause, so that the text may be shown.
func pathless(err error) error {
	switch e := err.(type) {
	case *fs.PathError:
		return fmt.Errorf("%s: %w", e.Op, e.Err)
	case *os.LinkError:
		return fmt.Errorf("%s: %w", e.Op, e.Err)
	}
	return err
}
