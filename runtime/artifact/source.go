package artifact

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// A source opens and reads below one root, each child from its parent's handle
// and never again by an absolute path (spec/artifact-digest.md 1.1). It follows
// no link and opens nothing whose kind it does not know to be file or directory.
//
// There is one for Linux in system calls and one for everywhere in os.Root; both
// pass the same vectors. Its methods are safe for concurrent use.
type source interface {
	// openRoot opens dir, which may be reached through a link.
	openRoot(dir string) (handle, identity, error)
	openDir(parent handle, name string, s *scratch) (handle, identity, error)
	// list calls each with every name and its kind (0: neither file, directory nor
	// link), in the file system's order. name is valid during the call only. again
	// says that dir was listed before.
	list(dir handle, again bool, s *scratch, each func(name []byte, kind byte)) error
	statDir(dir handle) (identity, error)
	lstat(dir handle, name string, s *scratch) (identity, error)
	readLink(dir handle, name string, s *scratch) (string, error)
	openFile(dir handle, name string, s *scratch) (file, identity, error)
	// prefetch may ask the disk for the files of a chunk that is about to be read.
	prefetch(dir handle, chunk []entry, s *scratch)
	read(f file, buf []byte, offset int64) (int, error)
	statFile(f file) (identity, error)
	closeFile(f file)
	closeDir(dir handle)
	// settle returns the time in nanoseconds before which an entry must have changed
	// last for a stat cache to trust it; 0 trusts nothing. dir is open.
	settle(dir handle) int64
}

// handle is an open directory, file an open file; each source uses one field.
type (
	handle struct {
		fd   int
		root *os.Root
	}
	file struct {
		fd int
		f  *os.File
	}
)

// identity is what of an entry must not differ before and after reading it
// (spec/artifact-digest.md 5, changed-while-reading).
type identity struct {
	dev, ino     uint64
	size         int64
	mtime, ctime int64 // nanoseconds since 1970; ctime 0 where there is none
	mode         uint32
}

// Unix file types, used as the common form on every system.
const (
	typeMask = 0o170000
	typeDir  = 0o040000
	typeFile = 0o100000
	typeLink = 0o120000
)

// kind returns the entry kind of an identity, 0 for a special file.
func (i identity) kind() byte {
	switch i.mode & typeMask {
	case typeDir:
		return KindDir
	case typeFile:
		return KindFile
	case typeLink:
		return KindLink
	}
	return 0
}

// readBuffer is the size of one read. Between 32 KiB and 1 MiB it makes no
// difference; this much serves large files too.
const readBuffer = 256 << 10

// scratch is one worker's memory, reused from entry to entry.
type scratch struct {
	read    []byte
	dirents []byte
	name    []byte
	names   []byte // paths of the chunk being listed
	ends    []int
	slab    []entry
	folded  map[string]*entry
}

func newScratch() *scratch {
	return &scratch{
		dirents: make([]byte, 32<<10),
		name:    make([]byte, 0, 512),
		folded:  make(map[string]*entry),
	}
}

// buffer returns the memory for one read; a re-check by lstat needs none.
func (s *scratch) buffer() []byte {
	if s.read == nil {
		s.read = make([]byte, readBuffer)
	}
	return s.read
}

// codeOf tells a listed entry that is no longer what was listed from one that
// may not be read.
func codeOf(err error) string {
	for _, gone := range []error{fs.ErrNotExist, syscall.ELOOP, syscall.ENOTDIR, syscall.ENXIO, errChanged} {
		if errors.Is(err, gone) {
			return CodeChanged
		}
	}
	return CodeUnreadable
}

var errChanged = errors.New("entry is not what was listed")
