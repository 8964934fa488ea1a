package plugins

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"sallyport/internal/filestamp"
)

// maxLinks is how many symbolic links one path may go through.
const maxLinks = 40

// The reasons why a path of a bundle is not read.
var (
	errOutside = errors.New("it leads out of the plugin")
	errKind    = errors.New("it is not of the kind it should be")
	errLarge   = errors.New("it is too large")
)

// bundle reads a plugin's files through one opened root. It remembers what it
// looked at, so that an unchanged plugin need not be read again (cache.go).
type bundle struct {
	dir     string // absolute and resolved
	root    *os.Root
	touched map[string]filestamp.Stamp
}

// openBundle opens dir, which may be reached through links, once.
func openBundle(dir string) (*bundle, error) {
	resolved, err := resolveDir(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(resolved)
	if err != nil {
		return nil, err
	}
	return &bundle{dir: resolved, root: root, touched: map[string]filestamp.Stamp{}}, nil
}

func (b *bundle) close() { _ = b.root.Close() }

// resolveDir returns the absolute path of a directory with all links resolved.
func resolveDir(dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(absolute)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%w: not a directory", errKind)
	}
	return resolved, nil
}

// resolve walks a slash-separated path from the root name by name, follows the
// links it meets and returns the same place as a path without links. It returns
// errOutside as soon as a step leaves the root (Agent Plugins 1.0.0 §4.1), and
// fs.ErrNotExist with the path as far as it can be told when nothing is there.
func (b *bundle) resolve(name string) (string, fs.FileInfo, error) {
	pending := strings.Split(name, "/")
	var done []string
	links := 0
	missing := false
	var info fs.FileInfo
	for len(pending) > 0 {
		step := pending[0]
		pending = pending[1:]
		switch step {
		case "", ".":
			continue
		case "..":
			if len(done) == 0 {
				return "", nil, errOutside
			}
			done = done[:len(done)-1]
			info = nil
			continue
		}
		done = append(done, step)
		if missing {
			continue
		}
		here := path.Join(done...)
		var err error
		info, err = b.root.Lstat(here)
		b.touched[here] = filestamp.Of(info)
		if err != nil {
			if !isMissing(err) {
				return "", nil, err
			}
			missing, info = true, nil
			continue
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if links++; links > maxLinks {
			return "", nil, fmt.Errorf("%w: its links run in a circle", errOutside)
		}
		target, err := b.root.Readlink(here)
		if err != nil {
			return "", nil, err
		}
		done, info = done[:len(done)-1], nil
		if filepath.IsAbs(target) {
			inside, err := filepath.Rel(b.dir, target)
			if err != nil || !filepath.IsLocal(inside) {
				return "", nil, errOutside
			}
			target, done = inside, nil
		}
		pending = append(strings.Split(filepath.ToSlash(target), "/"), pending...)
	}
	resolved := path.Join(done...)
	if resolved == "" {
		resolved = "."
	}
	if missing {
		return resolved, nil, fs.ErrNotExist
	}
	if info == nil {
		var err error
		if info, err = b.root.Lstat(resolved); err != nil {
			return resolved, nil, err
		}
	}
	return resolved, info, nil
}

// read returns the bytes of a regular file of at most limit bytes. The kind is
// looked at first: a FIFO is never opened.
func (b *bundle) read(name string, limit int64) ([]byte, error) {
	resolved, info, err := b.resolve(name)
	if err != nil {
		return nil, err
	}
	if err := readable(info, limit); err != nil {
		return nil, err
	}
	f, err := b.root.OpenFile(resolved, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	// Again on the handle: the name may lead elsewhere by now.
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if err := readable(info, limit); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, errLarge
	}
	return data, nil
}

func readable(info fs.FileInfo, limit int64) error {
	if !info.Mode().IsRegular() {
		return errKind
	}
	if info.Size() > limit {
		return errLarge
	}
	return nil
}

// list returns the entries of a directory, sorted by name, at most limit.
func (b *bundle) list(name string, limit int) ([]fs.DirEntry, error) {
	resolved, info, err := b.resolve(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, errKind
	}
	d, err := b.root.Open(resolved)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	entries, err := d.ReadDir(limit + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > limit {
		return nil, errLarge
	}
	return sortedByName(entries), nil
}

func sortedByName(entries []fs.DirEntry) []fs.DirEntry {
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries
}

func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// reason is the sentence for a path that cannot be used. It names neither the
// absolute path nor what the system said about it.
func reason(err error) string {
	switch {
	case errors.Is(err, errOutside):
		return "leads out of the plugin folder"
	case errors.Is(err, errLarge):
		return "is too large"
	case errors.Is(err, errKind):
		return "is not of the kind it should be"
	case isMissing(err):
		return "is missing"
	case errors.Is(err, fs.ErrPermission):
		return "may not be read by this user"
	}
	return "cannot be read"
}
