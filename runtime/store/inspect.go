package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
)

// applicationID marks a SQLite file as ours: "SyPt".
const applicationID = 0x53795074

const (
	walSuffix     = "-wal"
	journalSuffix = "-journal"
)

// Where things are in the first page, see sqlite.org/fileformat2.html 1.3.
const (
	headerSize      = 100
	magic           = "SQLite format 3\x00"
	atPageSize      = 16
	atChangeCounter = 24
	atPageCount     = 28
	atUserVersion   = 60
	atApplicationID = 68
	atCountValidFor = 92
)

// inspect reads the head of the file and of its write-ahead log and refuses what
// SQLite must not be let near: it would take an empty file for a new database,
// or write a log back into a file that is cut. It reports whether there is a
// store; it writes nothing.
func inspect(path string, known int) (exists bool, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, inspectCompanions(path)
	}
	if err != nil {
		return false, refusal(CodeUnreadable, path, "the store cannot be read", err)
	}
	if !info.Mode().IsRegular() { // and a FIFO must not be opened
		return false, refusal(CodeUnreadable, path, "the store is not a regular file", nil)
	}
	head, err := readHead(path)
	if err != nil {
		return false, refusal(CodeUnreadable, path, "the store cannot be read", err)
	}
	if len(head) < headerSize || !bytes.HasPrefix(head, []byte(magic)) {
		return false, refusal(CodeDamaged, path, "the store is not a database or is cut short", nil)
	}
	if binary.BigEndian.Uint32(head[atApplicationID:]) != applicationID {
		return false, refusal(CodeDamaged, path, "the store is a database of another program", nil)
	}
	log, err := readLog(path+walSuffix, pageSize(head))
	if err != nil {
		return false, refusal(CodeUnreadable, path, "the store's log cannot be read", err)
	}
	if torn(head, info.Size(), log) {
		return false, refusal(CodeDamaged, path, "the store is cut short", nil)
	}
	if newest := log.newestHead(head); binary.BigEndian.Uint32(newest[atUserVersion:]) > uint32(known) {
		return false, refusal(CodeNewer, path, "the store was written by a newer version", nil)
	}
	return true, nil
}

// inspectCompanions refuses a log without its store: SQLite would play it into
// the fresh one.
func inspectCompanions(path string) error {
	for _, suffix := range []string{walSuffix, journalSuffix} {
		if info, err := os.Lstat(path + suffix); err == nil && info.Size() > 0 {
			return refusal(CodeDamaged, path, "the store is missing but its log is there", nil)
		}
	}
	return nil
}

func readHead(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, headerSize)
	n, err := io.ReadFull(f, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return head[:n], err
}

func pageSize(head []byte) int64 {
	size := int64(binary.BigEndian.Uint16(head[atPageSize:]))
	if size == 1 {
		size = 65536
	}
	return size
}

// torn reports whether a page is neither in the file nor in its log.
func torn(head []byte, size int64, log walPages) bool {
	page := pageSize(head)
	if page < 512 || page&(page-1) != 0 {
		return true
	}
	pages := int64(binary.BigEndian.Uint32(head[atPageCount:]))
	if log.pages > 0 {
		pages = log.pages
	} else if head := head; !bytes.Equal(head[atChangeCounter:atChangeCounter+4], head[atCountValidFor:atCountValidFor+4]) {
		pages = 1 // the count in the header is stale, SQLite does not use it either
	}
	for missing := size/page + 1; missing <= pages; missing++ {
		if !log.has[uint32(missing)] {
			return true
		}
	}
	return size < page
}
