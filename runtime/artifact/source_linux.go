//go:build linux && (amd64 || arm64)

package artifact

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawSource reads with four system calls a file: openat, fstat, read, close (and
// a second fstat, which the contract asks for). os.Open makes about ten.
//
// Calls that may sleep on a disk tell the scheduler so (Syscall); the ones that
// the kernel answers from memory do not (RawSyscall), which is what makes small
// files cheap. Where it can be asked, the kernel says which is which: openat2
// with RESOLVE_CACHED and preadv2 with RWF_NOWAIT refuse to sleep.
type rawSource struct {
	noCachedOpen atomic.Bool
	noCachedRead atomic.Bool
	cold         atomic.Bool // the last reads had to wait for the disk
}

func systemSource() source { return &rawSource{} }

const (
	openDirFlags  = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	openFileFlags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY
)

func (*rawSource) openRoot(dir string) (handle, identity, error) {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Open(dir, openDirFlags&^unix.O_NOFOLLOW, 0)
		return err
	})
	if err != nil {
		return handle{}, identity{}, rootRefusal(dir, err)
	}
	id, err := fstat(fd)
	if err != nil {
		unix.Close(fd)
		return handle{}, identity{}, refuse(CodeUnreadable, "", err)
	}
	return handle{fd: fd}, id, nil
}

// rootRefusal tells a root that may not be read from one that is not there.
func rootRefusal(dir string, err error) error {
	if info, statErr := os.Stat(dir); statErr == nil && info.IsDir() && errors.Is(err, fs.ErrPermission) {
		return refuse(CodeUnreadable, "", err)
	}
	return refuse(CodeNotADirectory, "", err)
}

func (r *rawSource) openDir(parent handle, name string, s *scratch) (handle, identity, error) {
	fd, err := r.openat(parent.fd, name, openDirFlags, s)
	if err != nil {
		return handle{}, identity{}, err
	}
	id, err := fstat(fd)
	if err != nil {
		closeFD(fd)
		return handle{}, identity{}, err
	}
	return handle{fd: fd}, id, nil
}

func (*rawSource) list(dir handle, again bool, s *scratch, each func([]byte, byte)) error {
	if again {
		if _, err := unix.Seek(dir.fd, 0, unix.SEEK_SET); err != nil {
			return err
		}
	}
	for {
		n, err := unix.Getdents(dir.fd, s.dirents)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return err
		case n == 0:
			return nil
		}
		for block := s.dirents[:n]; len(block) > 0; {
			length := binary.NativeEndian.Uint16(block[direntLength:])
			name := trimNUL(block[direntName:length])
			kind := block[direntType]
			block = block[length:]
			if string(name) != "." && string(name) != ".." {
				each(name, kindOfDirent(kind))
			}
		}
	}
}

// Offsets in struct linux_dirent64.
const (
	direntLength = 16
	direntType   = 18
	direntName   = 19
)

func kindOfDirent(t byte) byte {
	switch t {
	case unix.DT_DIR:
		return KindDir
	case unix.DT_REG:
		return KindFile
	case unix.DT_LNK:
		return KindLink
	case unix.DT_UNKNOWN:
		return kindUnknown
	}
	return 0
}

func (*rawSource) statDir(dir handle) (identity, error) { return fstat(dir.fd) }

func (*rawSource) lstat(dir handle, name string, s *scratch) (identity, error) {
	var st unix.Stat_t
	for {
		_, _, e := unix.RawSyscall6(sysFstatat, uintptr(dir.fd), uintptr(unsafe.Pointer(s.cString(name))),
			uintptr(unsafe.Pointer(&st)), unix.AT_SYMLINK_NOFOLLOW, 0, 0)
		if e == unix.EINTR {
			continue
		}
		if e != 0 {
			return identity{}, e
		}
		return identityOfStat(&st), nil
	}
}

func (*rawSource) readLink(dir handle, name string, s *scratch) (string, error) {
	// A text of maxTarget+1 bytes is enough to refuse it as too long.
	buf := s.buffer()[:maxTarget+1]
	var n int
	err := retry(func() (err error) {
		n, err = unix.Readlinkat(dir.fd, name, buf)
		return err
	})
	if err == unix.EINVAL {
		return "", errChanged
	}
	return string(buf[:max(n, 0)]), err
}

func (r *rawSource) openFile(dir handle, name string, s *scratch) (file, identity, error) {
	fd, err := r.openat(dir.fd, name, openFileFlags, s)
	if err != nil {
		return file{}, identity{}, err
	}
	id, err := fstat(fd)
	if err != nil {
		closeFD(fd)
		return file{}, identity{}, err
	}
	return file{fd: fd}, id, nil
}

func (r *rawSource) openat(dirfd int, name string, flags uint64, s *scratch) (int, error) {
	path := s.cString(name)
	if !r.noCachedOpen.Load() {
		how := unix.OpenHow{Flags: flags, Resolve: resolveCached}
		fd, _, e := unix.RawSyscall6(unix.SYS_OPENAT2, uintptr(dirfd), uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&how)), unix.SizeofOpenHow, 0, 0)
		switch e {
		case 0:
			return int(fd), nil
		case unix.EAGAIN, unix.EINTR: // would sleep
		case unix.ENOSYS, unix.EINVAL, unix.EPERM:
			r.noCachedOpen.Store(true)
		default:
			return 0, e
		}
	}
	for {
		fd, _, e := unix.Syscall6(unix.SYS_OPENAT, uintptr(dirfd), uintptr(unsafe.Pointer(path)), uintptr(flags), 0, 0, 0)
		if e == unix.EINTR {
			continue
		}
		if e != 0 {
			return 0, e
		}
		return int(fd), nil
	}
}

// prefetch asks for all files of a chunk at once, where the one before was cold:
// the disk then works on many small files at a time rather than on one. Errors
// are met again when the file is read.
func (r *rawSource) prefetch(dir handle, chunk []entry, s *scratch) {
	if !r.cold.Swap(false) {
		return
	}
	for i := range chunk {
		if chunk[i].kind != KindFile {
			continue
		}
		if fd, err := r.openat(dir.fd, chunk[i].raw, openFileFlags, s); err == nil {
			unix.Fadvise(fd, 0, readBuffer, unix.FADV_WILLNEED)
			closeFD(fd)
		}
	}
}

func (r *rawSource) read(f file, buf []byte, offset int64) (int, error) {
	if !r.noCachedRead.Load() {
		vec := unix.Iovec{Base: &buf[0], Len: uint64(len(buf))}
		n, _, e := unix.RawSyscall6(unix.SYS_PREADV2, uintptr(f.fd), uintptr(unsafe.Pointer(&vec)), 1, uintptr(offset), 0, unix.RWF_NOWAIT)
		switch e {
		case 0:
			return int(n), nil
		case unix.EAGAIN: // would sleep
			r.cold.Store(true)
		case unix.EINTR:
		default:
			r.noCachedRead.Store(true)
		}
	}
	for {
		n, err := unix.Pread(f.fd, buf, offset)
		if err != unix.EINTR {
			return n, err
		}
	}
}

func (*rawSource) statFile(f file) (identity, error) { return fstat(f.fd) }

func (*rawSource) closeFile(f file) { closeFD(f.fd) }

func (*rawSource) closeDir(dir handle) { closeFD(dir.fd) }

// closeFD closes what was open for reading only: there is nothing to wait for.
func closeFD(fd int) { _, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

func (*rawSource) settle(dir handle) int64 { return settleAt(dir.fd) }

func fstat(fd int) (identity, error) {
	var st unix.Stat_t
	if _, _, e := unix.RawSyscall(unix.SYS_FSTAT, uintptr(fd), uintptr(unsafe.Pointer(&st)), 0); e != 0 {
		return identity{}, e
	}
	return identityOfStat(&st), nil
}

func identityOfStat(st *unix.Stat_t) identity {
	return identity{
		dev: uint64(st.Dev), ino: st.Ino, size: st.Size, mode: st.Mode,
		mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(),
	}
}

func retry(call func() error) error {
	for {
		if err := call(); err != syscall.EINTR {
			return err
		}
	}
}

// resolveCached is RESOLVE_CACHED of Linux 5.12: fail with EAGAIN rather than
// wait for a disk.
const resolveCached = 0x20

// cString returns name in s with the NUL that the kernel wants.
func (s *scratch) cString(name string) *byte {
	s.name = append(append(s.name[:0], name...), 0)
	return &s.name[0]
}

// trimNUL returns b up to its first NUL.
func trimNUL(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}
