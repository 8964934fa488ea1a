package unpack

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
)

// The records of a zip. Each has its signature first; numbers are little-endian.
const (
	localSignature   = 0x04034b50
	centralSignature = 0x02014b50
	endSignature     = 0x06054b50
	end64Signature   = 0x06064b50
	find64Signature  = 0x07064b50
	afterSignature   = 0x08074b50

	localSize   = 30
	centralSize = 46
	endSize     = 22
	end64Size   = 56
	find64Size  = 20

	methodStored   = 0
	methodDeflated = 8

	extraZip64 = 0x0001
	extraName  = 0x7075

	flagAfter = 0x8 // sizes follow the data
	// flagsEncrypted are the bits of encryption, strong encryption and a masked
	// directory.
	flagsEncrypted = 0x1 | 0x40 | 0x2000
)

// zipEntry is one record of the central directory, and where its data lies.
type zipEntry struct {
	name          string
	creator       byte // the system that packed it
	flags, method uint16
	crc           uint32
	packed, size  int64
	attributes    uint32
	header        int64 // offset of the local record
	data, end     int64 // offsets of the data and of what follows the entry
}

const (
	creatorUnix  = 3
	creatorMacOS = 19

	unixType    = 0o170000
	unixFolder  = 0o040000
	unixFile    = 0o100000
	unixSymlink = 0o120000
)

func (e *zipEntry) unixMode() uint32 {
	if e.creator != creatorUnix && e.creator != creatorMacOS {
		return 0
	}
	return e.attributes >> 16
}

// hasMode reports whether the packer's system knew who may execute a file.
func (e *zipEntry) hasMode() bool { return e.unixMode() != 0 }

func (e *zipEntry) executable() bool { return e.unixMode()&0o111 != 0 }

func (e *zipEntry) isDir() bool {
	return strings.HasSuffix(e.name, "/") || e.unixMode()&unixType == unixFolder
}

// check refuses what an entry may not be, whatever its data says.
func (e *zipEntry) check() error {
	switch kind := e.unixMode() & unixType; {
	case e.flags&flagsEncrypted != 0:
		return encrypted(e.name)
	case kind == unixSymlink:
		return link(e.name)
	case kind != 0 && kind != unixFile && kind != unixFolder:
		return special(e.name)
	case kind == unixFile && strings.HasSuffix(e.name, "/"):
		return damaged(e.name, "an entry is both a file and a folder")
	case e.method != methodStored && e.method != methodDeflated:
		return method(e.name)
	case e.method == methodStored && e.packed != e.size:
		return damaged(e.name, "an entry that is not packed has two sizes")
	}
	return nil
}

// directory reads the central directory and returns it with its offset.
func (z *zipReader) directory() ([]zipEntry, int64, error) {
	end, err := z.end()
	if err != nil {
		return nil, 0, err
	}
	if end.count > uint64(z.target.limits.Entries) {
		return nil, 0, tooMany(z.target.limits.Entries)
	}
	if end.size/centralSize < end.count {
		return nil, 0, damaged("", "its directory is cut")
	}
	reader := bufio.NewReaderSize(io.NewSectionReader(z.r, int64(end.offset), int64(end.size)), 64<<10)
	entries := make([]zipEntry, 0, end.count)
	var read uint64
	for range end.count {
		if err := z.target.ctx.Err(); err != nil {
			return nil, 0, err
		}
		e, length, err := readCentral(reader, z.target.limits)
		if err != nil {
			return nil, 0, err
		}
		if err := e.check(); err != nil {
			return nil, 0, err
		}
		read += uint64(length)
		entries = append(entries, e)
	}
	if read != end.size {
		return nil, 0, damaged("", "its directory has another size than it says")
	}
	return entries, int64(end.offset), nil
}

// zipEnd is what the end of the archive says about its directory.
type zipEnd struct{ count, size, offset uint64 }

// end finds the one end record. Two that could both be meant are refused.
func (z *zipReader) end() (zipEnd, error) {
	tail := min(z.size, endSize+math.MaxUint16)
	buf := make([]byte, tail)
	if _, err := z.r.ReadAt(buf, z.size-tail); err != nil && !errors.Is(err, io.EOF) {
		return zipEnd{}, cannotRead(err)
	}
	found := -1
	for i := 0; i+endSize <= len(buf); i++ {
		// Its comment is followed by nothing.
		if u32(buf[i:]) != endSignature || int(u16(buf[i+20:])) != len(buf)-i-endSize {
			continue
		}
		if found >= 0 {
			return zipEnd{}, damaged("", "it has two ends")
		}
		found = i
	}
	if found < 0 {
		return zipEnd{}, damaged("", "its end is missing")
	}
	return z.parseEnd(buf, found, z.size-tail+int64(found))
}

func (z *zipReader) parseEnd(buf []byte, at int, offset int64) (zipEnd, error) {
	record := buf[at:]
	end := zipEnd{count: uint64(u16(record[10:])), size: uint64(u32(record[12:])), offset: uint64(u32(record[16:]))}
	if u16(record[4:]) != 0 || u16(record[6:]) != 0 || u16(record[8:]) != u16(record[10:]) {
		if !saturated(record) {
			return zipEnd{}, damaged("", "it is one part of several")
		}
	}
	large, where, err := z.end64(offset)
	if err != nil {
		return zipEnd{}, err
	}
	if large == nil {
		if saturated(record) {
			return zipEnd{}, damaged("", "its second end is missing")
		}
		return end, z.followsDirectory(end, offset)
	}
	if end.count != math.MaxUint16 && end.count != large.count || end.size != math.MaxUint32 && end.size != large.size ||
		end.offset != math.MaxUint32 && end.offset != large.offset {
		return zipEnd{}, damaged("", "its two ends differ")
	}
	return *large, z.followsDirectory(*large, where)
}

// saturated reports whether an end record leaves a number to the larger one.
func saturated(record []byte) bool {
	return u16(record[10:]) == math.MaxUint16 || u32(record[12:]) == math.MaxUint32 || u32(record[16:]) == math.MaxUint32
}

// followsDirectory checks that the directory lies directly before its end, so
// that there is one way to find it.
func (z *zipReader) followsDirectory(end zipEnd, at int64) error {
	if end.offset > uint64(at) || end.size != uint64(at)-end.offset {
		return damaged("", "its directory is not where it says")
	}
	return nil
}

// end64 returns the larger end record, if a pointer to one stands before the end.
func (z *zipReader) end64(end int64) (*zipEnd, int64, error) {
	var pointer [find64Size]byte
	if end < find64Size {
		return nil, 0, nil
	}
	if err := z.readAt(pointer[:], end-find64Size); err != nil {
		return nil, 0, err
	}
	if u32(pointer[:]) != find64Signature {
		return nil, 0, nil
	}
	var record [end64Size]byte
	where := u64(pointer[8:])
	if where != uint64(end-find64Size-end64Size) || u32(pointer[4:]) != 0 || u32(pointer[16:]) > 1 {
		return nil, 0, damaged("", "its second end is not where it says")
	}
	if err := z.readAt(record[:], int64(where)); err != nil {
		return nil, 0, err
	}
	if u32(record[:]) != end64Signature || u64(record[4:]) != end64Size-12 || u64(record[24:]) != u64(record[32:]) {
		return nil, 0, damaged("", "its second end is none")
	}
	return &zipEnd{count: u64(record[32:]), size: u64(record[40:]), offset: u64(record[48:])}, int64(where), nil
}

// readCentral reads one record of the directory.
func readCentral(r io.Reader, limits Limits) (e zipEntry, length int, err error) {
	var b [centralSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil || u32(b[:]) != centralSignature {
		return e, 0, damaged("", "its directory is cut")
	}
	nameLength, extraLength, commentLength := int(u16(b[28:])), int(u16(b[30:])), int(u16(b[32:]))
	rest := make([]byte, nameLength+extraLength+commentLength)
	if _, err := io.ReadFull(r, rest); err != nil {
		return e, 0, damaged("", "its directory is cut")
	}
	name, extra := rest[:nameLength], rest[nameLength:nameLength+extraLength]
	if nameLength > limits.PathBytes {
		return e, 0, tooLong(string(name))
	}
	e = zipEntry{
		name: string(name), creator: b[5], flags: u16(b[8:]), method: u16(b[10:]), crc: u32(b[16:]),
		packed: int64(u32(b[20:])), size: int64(u32(b[24:])), attributes: u32(b[38:]), header: int64(u32(b[42:])),
	}
	if other, found := extraField(extra, extraName); found && (len(other) < 5 || string(other[5:]) != e.name) {
		return e, 0, damaged(e.name, "an entry has two names")
	}
	err = e.widen(extra, &e.size, &e.packed, &e.header)
	return e, centralSize + len(rest), err
}

// widen takes the numbers that do not fit into 32 bits from the extra field, in
// the order that the format gives them.
func (e *zipEntry) widen(extra []byte, numbers ...*int64) error {
	large, _ := extraField(extra, extraZip64)
	for _, number := range numbers {
		if *number != math.MaxUint32 {
			continue
		}
		if len(large) < 8 || u64(large) > math.MaxInt64 {
			return damaged(e.name, "an entry's size is missing")
		}
		*number, large = int64(u64(large)), large[8:]
	}
	return nil
}

// extraField returns the first extra field with that id.
func extraField(extra []byte, id uint16) ([]byte, bool) {
	for len(extra) >= 4 {
		length := int(u16(extra[2:]))
		if length > len(extra)-4 {
			return nil, false
		}
		if u16(extra) == id {
			return extra[4 : 4+length], true
		}
		extra = extra[4+length:]
	}
	return nil, false
}

// locate finds every entry's data by its local record, which must say the same
// as the directory, and refuses two entries that share a byte: that is how a
// small archive would inflate to anything.
func (z *zipReader) locate(entries []zipEntry, directory int64) error {
	for i := range entries {
		if err := z.target.ctx.Err(); err != nil {
			return err
		}
		if err := z.local(&entries[i], directory); err != nil {
			return err
		}
	}
	order := make([]*zipEntry, len(entries))
	for i := range entries {
		order[i] = &entries[i]
	}
	slices.SortFunc(order, func(a, b *zipEntry) int { return cmp.Compare(a.header, b.header) })
	if len(order) > 0 && order[0].header != 0 {
		return damaged("", "something stands before its first entry")
	}
	for i := 1; i < len(order); i++ {
		if order[i].header < order[i-1].end {
			return overlap(order[i].name)
		}
	}
	return nil
}

func (z *zipReader) local(e *zipEntry, directory int64) error {
	var b [localSize]byte
	if e.header > directory-localSize {
		return damaged(e.name, "an entry is not where the directory says")
	}
	if err := z.readAt(b[:], e.header); err != nil {
		return err
	}
	nameLength, extraLength := int(u16(b[26:])), int(u16(b[28:]))
	e.data = e.header + localSize + int64(nameLength) + int64(extraLength)
	if u32(b[:]) != localSignature || nameLength != len(e.name) || e.data > directory || e.packed > directory-e.data {
		return damaged(e.name, "an entry is not where the directory says")
	}
	rest := make([]byte, nameLength+extraLength)
	if err := z.readAt(rest, e.header+localSize); err != nil {
		return err
	}
	local := zipEntry{
		name: string(rest[:nameLength]), flags: u16(b[6:]), method: u16(b[8:]), crc: u32(b[14:]),
		packed: int64(u32(b[18:])), size: int64(u32(b[22:])),
	}
	e.end = e.data + e.packed
	if local.flags&flagAfter != 0 {
		return z.after(e, local, directory)
	}
	if err := local.widen(rest[nameLength:], &local.size, &local.packed); err != nil {
		return err
	}
	if !e.agrees(local) || local.crc != e.crc || local.packed != e.packed || local.size != e.size {
		return damaged(e.name, "an entry and the directory say different things")
	}
	return nil
}

// agrees compares what an entry and its record in the directory always share.
func (e *zipEntry) agrees(local zipEntry) bool {
	const compared = flagsEncrypted | flagAfter
	return local.name == e.name && local.method == e.method && local.flags&compared == e.flags&compared
}

// after reads the record behind the data of an entry whose size was not known
// when it was begun. An entry without data may be without it.
func (z *zipReader) after(e *zipEntry, local zipEntry, directory int64) error {
	if !e.agrees(local) {
		return damaged(e.name, "an entry and the directory say different things")
	}
	buf := make([]byte, min(24, directory-e.end))
	if err := z.readAt(buf, e.end); err != nil {
		return err
	}
	for _, signed := range []bool{true, false} {
		for _, wide := range []bool{false, true} {
			record := e.afterRecord(signed, wide)
			if bytes.HasPrefix(buf, record) {
				e.end += int64(len(record))
				return nil
			}
		}
	}
	if e.packed == 0 && e.size == 0 {
		return nil
	}
	return damaged(e.name, "what follows an entry says something else than the directory")
}

func (e *zipEntry) afterRecord(signed, wide bool) []byte {
	var b []byte
	if signed {
		b = binary.LittleEndian.AppendUint32(b, afterSignature)
	}
	b = binary.LittleEndian.AppendUint32(b, e.crc)
	if wide {
		b = binary.LittleEndian.AppendUint64(b, uint64(e.packed))
		return binary.LittleEndian.AppendUint64(b, uint64(e.size))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(e.packed))
	return binary.LittleEndian.AppendUint32(b, uint32(e.size))
}

func (z *zipReader) readAt(b []byte, offset int64) error {
	if offset < 0 || offset > z.size-int64(len(b)) {
		return damaged("", "it is cut")
	}
	if _, err := z.r.ReadAt(b, offset); err != nil && !errors.Is(err, io.EOF) {
		return cannotRead(err)
	}
	return nil
}

// isCorrupt reports whether err says that packed bytes are none.
func isCorrupt(err error) bool {
	var corrupt flate.CorruptInputError
	var internal flate.InternalError
	return errors.As(err, &corrupt) || errors.As(err, &internal) || errors.Is(err, io.ErrUnexpectedEOF)
}

func u16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
func u32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func u64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
