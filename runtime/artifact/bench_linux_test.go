//go:build amd64 || arm64

package artifact

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// listedDir is a directory whose entries are known beforehand.
type listedDir struct {
	path         string
	names, files [][]byte // NUL-terminated
}

func listTree(b *testing.B, dir string) []listedDir {
	b.Helper()
	var all []listedDir
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		l := listedDir{path: path}
		entries, err := os.ReadDir(path)
		for _, e := range entries {
			name := append([]byte(e.Name()), 0)
			l.names = append(l.names, name)
			if e.Type().IsRegular() {
				l.files = append(l.files, name)
			}
		}
		all = append(all, l)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return all
}

// onTwoThreads gives each directory, opened, to one of two goroutines.
func onTwoThreads(dirs []listedDir, each func(fd int, d *listedDir, buf []byte) error) error {
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, 2)
	for worker := range errs {
		group.Go(func() {
			buf := make([]byte, 1<<20)
			for {
				i := int(next.Add(1)) - 1
				if i >= len(dirs) {
					return
				}
				fd, err := unix.Open(dirs[i].path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
				if err == nil {
					err = each(fd, &dirs[i], buf)
					unix.Close(fd)
				}
				if err != nil {
					errs[worker] = err
					return
				}
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// readAndHash is the floor: every file is opened, its size asked, read and
// hashed by two threads that know all names beforehand, sort and keep nothing.
func readAndHash(dirs []listedDir) error {
	var sink atomic.Uint32
	return onTwoThreads(dirs, func(dirfd int, d *listedDir, buf []byte) error {
		var st unix.Stat_t
		for _, name := range d.files {
			fd, _, e := unix.RawSyscall6(unix.SYS_OPENAT, uintptr(dirfd), uintptr(unsafe.Pointer(&name[0])), unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0)
			if e != 0 {
				return e
			}
			unix.RawSyscall(unix.SYS_FSTAT, fd, uintptr(unsafe.Pointer(&st)), 0)
			n, _, e := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
			if e != 0 {
				return e
			}
			if int64(n) != st.Size {
				return fmt.Errorf("file larger than the buffer")
			}
			sum := sha256.Sum256(buf[:n])
			sink.Store(uint32(sum[0]))
			unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
		}
		return nil
	})
}

// lstatAll is the floor of a re-check: an lstat of every entry, names known.
func lstatAll(dirs []listedDir) error {
	return onTwoThreads(dirs, func(dirfd int, d *listedDir, _ []byte) error {
		var st unix.Stat_t
		for _, name := range d.names {
			if _, _, e := unix.RawSyscall6(sysFstatat, uintptr(dirfd), uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&st)), unix.AT_SYMLINK_NOFOLLOW, 0, 0); e != 0 {
				return e
			}
		}
		return nil
	})
}

// BenchmarkDigestAgainstFloor: the goal is 1.3 of the floor.
func BenchmarkDigestAgainstFloor(b *testing.B) {
	dir := benchTree(b)
	dirs := listTree(b, dir)
	race(b, contender{"floor", func() error { return readAndHash(dirs) }}, fullDigest(dir),
		contender{"portable", func() error {
			_, err := Of(context.Background(), dir, Options{source: rootSource{}})
			return err
		}})
}

// BenchmarkRecheckAgainstLstat: the goal is 2.2 of an lstat of every entry. The
// yardstick knows all names beforehand and uses two threads and raw calls; the
// other two have to find the names as the re-check has, in raw calls and with
// the standard library.
func BenchmarkRecheckAgainstLstat(b *testing.B) {
	dir := benchTree(b)
	dirs := listTree(b, dir)
	if !cacheable(dir) {
		b.Log("this file system is never trusted: every re-check is a full digest")
	}
	cache, err := OpenCache(CacheConfig{KeepSmall: true, Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	race(b, contender{"lstat", func() error { return lstatAll(dirs) }},
		contender{"recheck", func() error {
			_, err := cache.Tree(context.Background(), dir)
			return err
		}},
		contender{"lstat-listing", func() error { return listAndLstat(dirs) }},
		contender{"lstat-walkdir", func() error { return lstatWalkDir(dir) }},
		fullDigest(dir))
}

// listAndLstat is lstatAll for a program that must list the directories too.
func listAndLstat(dirs []listedDir) error {
	return onTwoThreads(dirs, func(dirfd int, _ *listedDir, buf []byte) error {
		var st unix.Stat_t
		for {
			n, err := unix.Getdents(dirfd, buf[:32<<10])
			if n <= 0 {
				return err
			}
			for at := 0; at < n; at += int(*(*uint16)(unsafe.Pointer(&buf[at+direntLength]))) {
				if _, _, e := unix.RawSyscall6(sysFstatat, uintptr(dirfd), uintptr(unsafe.Pointer(&buf[at+direntName])), uintptr(unsafe.Pointer(&st)), unix.AT_SYMLINK_NOFOLLOW, 0, 0); e != 0 {
					return e
				}
			}
		}
	})
}

// lstatWalkDir is the standard walk with an lstat of each entry, on one thread.
func lstatWalkDir(dir string) error {
	return filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil {
			_, err = d.Info()
		}
		return err
	})
}
