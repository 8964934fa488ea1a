package bundle

import (
	"archive/zip"
	"compress/flate"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

// Zip writes the bundle at dir to w, with modes and links kept, as Finder and ditto
// unpack them. Equal bundles give equal bytes: every file is as old as date.
func Zip(w io.Writer, dir string, date time.Time) error {
	archive := zip.NewWriter(w)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	base := filepath.Base(dir)
	err := filepath.WalkDir(dir, func(full string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, full)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return add(archive, full, path.Join(base, filepath.ToSlash(relative)), info.Mode(), date)
	})
	if err != nil {
		return fmt.Errorf("cannot pack the bundle: %w", err)
	}
	return archive.Close()
}

func add(archive *zip.Writer, full, name string, mode fs.FileMode, date time.Time) error {
	header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: date.UTC()}
	header.SetMode(mode)
	switch {
	case mode.IsDir():
		header.Name += "/"
		header.Method = zip.Store
		_, err := archive.CreateHeader(header)
		return err
	case mode&fs.ModeSymlink != 0:
		target, err := os.Readlink(full)
		if err != nil {
			return err
		}
		header.Method = zip.Store
		to, err := archive.CreateHeader(header)
		if err == nil {
			_, err = io.WriteString(to, filepath.ToSlash(target))
		}
		return err
	}
	from, err := os.Open(full)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := archive.CreateHeader(header)
	if err == nil {
		_, err = io.Copy(to, from)
	}
	return err
}
