package signature

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	header = "MCPB_SIG_V1"
	footer = "MCPB_SIG_END"
	// maxSignature is of the PKCS #7 part: a chain of certificates has a few KiB.
	maxSignature = 128 << 10
	maxBlock     = len(header) + 4 + maxSignature + len(footer)

	endLength  = 22 // of a zip archive's end record, without its comment
	endMark    = "PK\x05\x06"
	maxComment = 1<<16 - 1
)

// The codes of refusals.
const (
	codeNoArchive = "signature-no-archive"
	codeTrailing  = "signature-trailing-bytes"
	codeBlock     = "signature-block-invalid"
	codeHidden    = "signature-hides-archive"
)

// layout is how a file is made up.
type layout struct {
	// archives are the readings of the archive that may have been signed, most likely
	// first. They differ in the length of the comment alone (findLayout).
	archives []*io.SectionReader
	der      []byte // nil: nothing claims to be a signature
}

// findLayout says where the archive ends and the signature begins. All of the file
// has to be one of the two: what is neither could be another archive to another
// reader, which nobody signed and nobody looked at.
//
// The end record of a zip archive has a comment and its length. mcpb 2.1 appends the
// block and leaves the record as it is. Later versions add the block's length to that
// of the comment, so that strict readers take the file, some before they sign and
// some after; the archive is then read both ways.
func findLayout(file io.ReaderAt, size int64) (layout, error) {
	tail, err := readTail(file, size)
	if err != nil {
		return layout{}, err
	}
	if !bytes.HasSuffix(tail, []byte(footer)) {
		return unsignedLayout(file, size, tail)
	}
	at, der := findBlock(tail)
	if at < 0 {
		return layout{}, refusal(codeBlock, "the end of a signature is there, and no beginning that fits it")
	}
	block := len(tail) - at
	archiveSize := size - int64(block)
	end := bytes.LastIndex(tail[:at], []byte(endMark))
	if end < 0 {
		if bytes.HasSuffix(tail[:at], []byte(footer)) {
			return layout{}, twice()
		}
		return layout{}, noArchive()
	}
	comment, ok := commentLength(tail[end:at])
	if !ok {
		return layout{}, noArchive()
	}
	if bytes.Contains(tail[at:], []byte(endMark)) {
		return layout{}, refusal(codeHidden, "the signature holds what other programs would read as the end of another archive")
	}
	if err := fromTheStart(file, tail[end:], size-int64(len(tail)-end)); err != nil {
		return layout{}, err
	}
	behind := at - (end + endLength)
	if claimsSignature(tail[end : end+endLength+behind]) {
		return layout{}, twice()
	}
	whole := io.NewSectionReader(file, 0, archiveSize)
	switch comment {
	case behind:
		return layout{archives: []*io.SectionReader{whole}, der: der}, nil
	case behind + block:
		// As it lies there, and as it was before the length was added. Only the
		// second can be unpacked, as an archive on its own.
		lengthAt := archiveSize - int64(at-end) + endLength - 2
		mended := patched{whole, lengthAt, [2]byte(binary.LittleEndian.AppendUint16(nil, uint16(behind)))}
		return layout{archives: []*io.SectionReader{io.NewSectionReader(mended, 0, archiveSize), whole}, der: der}, nil
	}
	return layout{}, trailing()
}

// unsignedLayout is for a file that does not end as a signature does. Whatever looks
// like the rest of one makes it broken.
func unsignedLayout(file io.ReaderAt, size int64, tail []byte) (layout, error) {
	end := bytes.LastIndex(tail, []byte(endMark))
	if end < 0 {
		return layout{}, noArchive()
	}
	comment, ok := commentLength(tail[end:])
	if !ok {
		return layout{}, noArchive()
	}
	behind := len(tail) - (end + endLength)
	switch {
	case claimsSignature(tail[end+endLength:]):
		return layout{}, refusal(codeBlock, "the signature is cut off, or something follows it")
	case comment != behind:
		return layout{}, trailing()
	}
	if err := fromTheStart(file, tail[end:], size-int64(behind+endLength)); err != nil {
		return layout{}, err
	}
	return layout{archives: []*io.SectionReader{io.NewSectionReader(file, 0, size)}}, nil
}

// fromTheStart refuses an archive that does not begin where the file does: a reader
// finds it by counting back from its end, and what stands before it (another archive,
// with its signature) would be the one that somebody else reads. end is the archive's
// end record, which stands at that offset.
func fromTheStart(file io.ReaderAt, end []byte, at int64) error {
	directorySize := uint64(binary.LittleEndian.Uint32(end[12:]))
	directoryAt := uint64(binary.LittleEndian.Uint32(end[16:]))
	if directorySize == 1<<32-1 || directoryAt == 1<<32-1 {
		var ok bool
		if directoryAt, directorySize, at, ok = largeDirectory(file, at); !ok {
			return noArchive()
		}
	}
	if directoryAt > uint64(at) || uint64(at)-directoryAt != directorySize {
		return refusal(codeHidden, "something stands before the archive")
	}
	return nil
}

// largeDirectory reads the records that an archive with many entries or bytes has
// before its end record. at is where the first of them has to stand.
func largeDirectory(file io.ReaderAt, end int64) (directoryAt, directorySize uint64, at int64, ok bool) {
	const locatorLength, recordLength = 20, 56
	if end < locatorLength+recordLength {
		return 0, 0, 0, false
	}
	both := make([]byte, recordLength+locatorLength)
	if _, err := file.ReadAt(both, end-int64(len(both))); err != nil && !errors.Is(err, io.EOF) {
		return 0, 0, 0, false
	}
	record, locator := both[:recordLength], both[recordLength:]
	at = end - int64(len(both))
	if string(locator[:4]) != "PK\x06\x07" || string(record[:4]) != "PK\x06\x06" ||
		binary.LittleEndian.Uint64(locator[8:]) != uint64(at) {
		return 0, 0, 0, false
	}
	return binary.LittleEndian.Uint64(record[48:]), binary.LittleEndian.Uint64(record[40:]), at, true
}

func readTail(file io.ReaderAt, size int64) ([]byte, error) {
	tail := make([]byte, min(size, int64(maxBlock+endLength+maxComment)))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("cannot read the end of the file: %w", err)
	}
	return tail, nil
}

// findBlock returns where the block at the end of tail begins, and what it holds: the
// one header whose length leads to the footer at the very end. Two such headers
// cannot be told apart, which is none.
func findBlock(tail []byte) (at int, der []byte) {
	at = -1
	to := len(tail) - len(footer)
	for from := 0; ; {
		next := bytes.Index(tail[from:to], []byte(header))
		if next < 0 {
			return at, der
		}
		begin := from + next
		from = begin + 1
		body := begin + len(header) + 4
		if body > to {
			return at, der
		}
		length := int64(binary.LittleEndian.Uint32(tail[body-4:]))
		if length == 0 || length > maxSignature || int64(body)+length != int64(to) {
			continue
		}
		if at >= 0 {
			return -1, nil
		}
		at, der = begin, tail[body:to]
	}
}

// commentLength reads the length that the end record at the start of b gives.
func commentLength(b []byte) (int, bool) {
	if len(b) < endLength {
		return 0, false
	}
	return int(binary.LittleEndian.Uint16(b[endLength-2:])), true
}

func claimsSignature(b []byte) bool {
	return bytes.Contains(b, []byte(header)) || bytes.Contains(b, []byte(footer))
}

func noArchive() error {
	return refusal(codeNoArchive, "the file does not end as a zip archive does")
}

func trailing() error {
	return refusal(codeTrailing, "something that belongs to neither follows the archive")
}

func twice() error {
	return refusal(codeBlock, "the file is signed twice")
}

// patched is a file with two other bytes at one place.
type patched struct {
	io.ReaderAt
	at    int64
	bytes [2]byte
}

func (p patched) ReadAt(b []byte, offset int64) (int, error) {
	n, err := p.ReaderAt.ReadAt(b, offset)
	for i, c := range p.bytes {
		if at := p.at + int64(i) - offset; at >= 0 && at < int64(n) {
			b[at] = c
		}
	}
	return n, err
}
