package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
)

// walPages is what a write-ahead log would change in its store, see
// sqlite.org/fileformat2.html 4. The zero value is an empty log.
type walPages struct {
	pages int64 // size of the store after the last commit in the log
	has   map[uint32]bool
	head  []byte // the newest first page's header, nil when it has none
}

const (
	walHeaderSize   = 32
	frameHeaderSize = 24
)

// readLog reads the committed frames of a log. It does not verify checksums,
// SQLite does; it only wants to know which pages a cut store can get from it.
func readLog(path string, page int64) (walPages, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return walPages{}, nil
	}
	if err != nil {
		return walPages{}, err
	}
	defer f.Close()
	header := make([]byte, walHeaderSize)
	if _, err := io.ReadFull(f, header); err != nil || !bytes.HasPrefix(header, []byte{0x37, 0x7f, 0x06}) {
		return walPages{}, nil // SQLite ignores it too
	}
	salts := header[16:24]
	committed, pending := walPages{has: map[uint32]bool{}}, walPages{}
	var numbers []uint32
	frame := make([]byte, frameHeaderSize+headerSize)
	for at := int64(walHeaderSize); ; at += frameHeaderSize + page {
		if _, err := f.ReadAt(frame, at); err != nil || !bytes.Equal(frame[8:16], salts) {
			return committed, nil
		}
		number := binary.BigEndian.Uint32(frame)
		numbers = append(numbers, number)
		if number == 1 {
			pending.head = bytes.Clone(frame[frameHeaderSize:])
		}
		if size := binary.BigEndian.Uint32(frame[4:]); size != 0 {
			committed.pages = int64(size)
			for _, n := range numbers {
				committed.has[n] = true
			}
			if pending.head != nil {
				committed.head = pending.head
			}
			numbers = numbers[:0]
		}
	}
}

// newestHead is the header that a reader of store and log sees.
func (w walPages) newestHead(inFile []byte) []byte {
	if w.head != nil {
		return w.head
	}
	return inFile
}
