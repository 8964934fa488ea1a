package loginitem

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"sallyport/internal/atomicfile"
)

// file is a place that is a file of its own in a folder that other programs use too.
type file struct{ kind, path string }

// mostBytes is more than any item has.
const mostBytes = 64 << 10

func (f file) how() string   { return f.kind }
func (f file) where() string { return f.path }
func (f file) paused() bool  { return false }

func (f file) read() ([]byte, bool, error) {
	info, err := os.Lstat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if !info.Mode().IsRegular() || info.Size() > mostBytes {
		return nil, true, errForeign // a link is somebody's own arrangement
	}
	opened, err := os.Open(f.path)
	if err != nil {
		return nil, true, err
	}
	defer opened.Close()
	text, err := io.ReadAll(io.LimitReader(opened, mostBytes))
	return text, true, err
}

func (f file) write(now, was []byte) error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o750); err != nil {
		return err
	}
	if was == nil {
		return atomicfile.WriteNew(f.path, now, 0o644)
	}
	if text, there, err := f.read(); err != nil || !there || !bytes.Equal(text, was) {
		return errors.Join(err, errors.New("it was changed by something else at this moment"))
	}
	return atomicfile.Write(f.path, now, 0o644)
}

func (f file) remove() error { return os.Remove(f.path) }
