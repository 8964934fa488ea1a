package artifact

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// rootSource reads through os.Root and works on every system. It is the product's
// source where there is no faster one, which is everywhere but on Linux. On Linux
// copying opens files by it; the rest serves tests there, so that what the other
// systems do is tested on Linux too. os.Root may follow a link that stays inside, so
// whatever it opens is compared with the lstat made before.
type rootSource struct{}

func (rootSource) openRoot(dir string) (handle, identity, error) {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return handle{}, identity{}, refuse(CodeNotADirectory, "", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return handle{}, identity{}, refuse(CodeUnreadable, "", err)
	}
	h := handle{root: root}
	id, err := rootSource{}.statDir(h)
	if err != nil {
		root.Close()
		return handle{}, identity{}, refuse(CodeUnreadable, "", err)
	}
	return h, id, nil
}

func (r rootSource) openDir(parent handle, name string, _ *scratch) (handle, identity, error) {
	before, err := parent.root.Lstat(name)
	if err != nil {
		return handle{}, identity{}, err
	}
	if !before.IsDir() {
		return handle{}, identity{}, errChanged
	}
	root, err := parent.root.OpenRoot(name)
	if err != nil {
		return handle{}, identity{}, err
	}
	h := handle{root: root}
	after, err := root.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		err = errChanged
	}
	if err != nil {
		root.Close()
		return handle{}, identity{}, err
	}
	return h, identityOf(after), nil
}

// listBlock is how many names are read at once.
const listBlock = 1024

func (rootSource) list(dir handle, _ bool, _ *scratch, each func([]byte, byte)) error {
	d, err := dir.root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		entries, err := d.ReadDir(listBlock)
		for _, e := range entries {
			each([]byte(e.Name()), kindOfMode(e.Type()))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func kindOfMode(m fs.FileMode) byte {
	switch m.Type() {
	case 0:
		return KindFile
	case fs.ModeDir:
		return KindDir
	case fs.ModeSymlink:
		return KindLink
	}
	return 0
}

func (rootSource) statDir(dir handle) (identity, error) {
	info, err := dir.root.Stat(".")
	if err != nil {
		return identity{}, err
	}
	return identityOf(info), nil
}

func (rootSource) lstat(dir handle, name string, _ *scratch) (identity, error) {
	info, err := dir.root.Lstat(name)
	if err != nil {
		return identity{}, err
	}
	return identityOf(info), nil
}

func (rootSource) readLink(dir handle, name string, _ *scratch) (string, error) {
	return dir.root.Readlink(name)
}

func (rootSource) openFile(dir handle, name string, _ *scratch) (file, identity, error) {
	before, err := dir.root.Lstat(name)
	if err != nil {
		return file{}, identity{}, err
	}
	if !before.Mode().IsRegular() {
		return file{}, identity{}, errChanged
	}
	f, err := dir.root.OpenFile(name, os.O_RDONLY|neverBlock, 0)
	if err != nil {
		return file{}, identity{}, err
	}
	after, err := f.Stat()
	if err == nil && !os.SameFile(before, after) {
		err = errChanged
	}
	if err != nil {
		f.Close()
		return file{}, identity{}, err
	}
	return file{f: f}, identityOf(after), nil
}

func (rootSource) prefetch(handle, []entry, *scratch) {}

func (rootSource) read(f file, buf []byte, offset int64) (int, error) {
	n, err := f.f.ReadAt(buf, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (rootSource) statFile(f file) (identity, error) {
	info, err := f.f.Stat()
	if err != nil {
		return identity{}, err
	}
	return identityOf(info), nil
}

func (rootSource) closeFile(f file)    { f.f.Close() }
func (rootSource) closeDir(dir handle) { dir.root.Close() }

func (rootSource) settle(dir handle) int64 {
	d, err := dir.root.Open(".")
	if err != nil {
		return 0
	}
	defer d.Close()
	return settleAt(int(d.Fd()))
}
