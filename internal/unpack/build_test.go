package unpack

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// part is one entry of a zip that is built byte by byte, so that it can lie.
type part struct {
	name    string
	content string
	stored  bool
	mode    uint32 // Unix mode; 0: packed on Windows
	flags   uint16
	method  uint16 // instead of what is used
	after   string // "", "signed", "unsigned", "wide" or "wrong": sizes behind the data
	extra   []byte // in the directory

	// Lies. Each replaces what is true.
	localName  string
	size       uint32 // in both places
	localSize  uint32 // in the local record alone
	crc        uint32
	sameDataAs string // lies where that entry lies
	junk       int    // zeros inside the packed bytes, after their end
	header     uint32 // offset of the local record
}

// archive is the zip of parts; the other fields are lies about the whole.
type archive struct {
	parts   []part
	before  string // bytes before everything
	between string // between the last entry and the directory
	after   string // behind the end
	comment string
	count   int // added to the number of entries
	size    int // added to the directory's size
	zip64   func(record []byte)
}

func (a archive) bytes() []byte {
	var b, directory bytes.Buffer
	b.WriteString(a.before)
	offsets := map[string]uint32{}
	for _, p := range a.parts {
		p.write(&b, &directory, offsets)
	}
	b.WriteString(a.between)
	at := uint32(b.Len())
	b.Write(directory.Bytes())
	end := binary.LittleEndian.AppendUint32(nil, endSignature)
	n, size := uint16(len(a.parts)+a.count), uint32(directory.Len()+a.size)
	if a.zip64 != nil {
		record := le(nil, uint32(end64Signature), uint64(44), uint16(45), uint16(45), uint32(0), uint32(0), uint64(n), uint64(n), uint64(size), uint64(at))
		a.zip64(record)
		where := uint64(b.Len())
		b.Write(record)
		b.Write(le(nil, uint32(find64Signature), uint32(0), where, uint32(1)))
		n, size, at = 0xffff, 0xffffffff, 0xffffffff
	}
	b.Write(le(end, uint16(0), uint16(0), n, n, size, at, uint16(len(a.comment))))
	b.WriteString(a.comment)
	b.WriteString(a.after)
	return b.Bytes()
}

func (p part) write(b, directory *bytes.Buffer, offsets map[string]uint32) {
	packed, method := []byte(p.content), uint16(methodStored)
	if !p.stored && p.content != "" {
		packed, method = deflate(p.content), methodDeflated
	}
	packed = append(packed, make([]byte, p.junk)...)
	if p.method != 0 {
		method = p.method
	}
	crc, size := crc32.ChecksumIEEE([]byte(p.content)), uint32(len(p.content))
	if p.crc != 0 {
		crc = p.crc
	}
	if p.size != 0 {
		size = p.size
	}
	flags := p.flags
	if p.after != "" {
		flags |= flagAfter
	}
	localName, localSize := p.name, size
	if p.localName != "" {
		localName = p.localName
	}
	if p.localSize != 0 {
		localSize = p.localSize
	}
	offset, shared := offsets[p.sameDataAs]
	if !shared {
		offset = uint32(b.Len())
		local := le(nil, uint32(localSignature), uint16(20), flags, method, uint32(0))
		if p.after != "" {
			local = le(local, uint32(0), uint32(0), uint32(0))
		} else {
			local = le(local, crc, uint32(len(packed)), localSize)
		}
		b.Write(le(local, uint16(len(localName)), uint16(0)))
		b.WriteString(localName)
		b.Write(packed)
		p.writeAfter(b, crc, uint32(len(packed)), size)
	}
	offsets[p.name] = offset
	if p.header != 0 {
		offset = p.header
	}
	creator := uint16(creatorUnix<<8 | 20)
	if p.mode == 0 {
		creator = 20
	}
	record := le(nil, uint32(centralSignature), creator, uint16(20), flags, method, uint32(0), crc, uint32(len(packed)), size)
	record = le(record, uint16(len(p.name)), uint16(len(p.extra)), uint16(0), uint16(0), uint16(0), p.mode<<16, offset)
	directory.Write(record)
	directory.WriteString(p.name)
	directory.Write(p.extra)
}

func (p part) writeAfter(b *bytes.Buffer, crc, packed, size uint32) {
	switch p.after {
	case "signed":
		b.Write(le(nil, uint32(afterSignature), crc, packed, size))
	case "unsigned":
		b.Write(le(nil, crc, packed, size))
	case "wide":
		b.Write(le(nil, uint32(afterSignature), crc, uint64(packed), uint64(size)))
	case "wrong":
		b.Write(le(nil, uint32(afterSignature), crc, packed, size+1))
	}
}

func le(b []byte, values ...any) []byte {
	for _, v := range values {
		switch v := v.(type) {
		case uint16:
			b = binary.LittleEndian.AppendUint16(b, v)
		case uint32:
			b = binary.LittleEndian.AppendUint32(b, v)
		case uint64:
			b = binary.LittleEndian.AppendUint64(b, v)
		}
	}
	return b
}

func deflate(content string) []byte {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err == nil {
		_, err = w.Write([]byte(content))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err)
	}
	return b.Bytes()
}

// unzip unpacks into a new folder below parent.
func unzip(t *testing.T, parent string, data []byte, opts Options) (Result, error) {
	t.Helper()
	return Zip(t.Context(), bytes.NewReader(data), int64(len(data)), filepath.Join(parent, "new"), opts)
}

// wantNothing fails if anything is below parent, or was written beside it.
func wantNothing(t *testing.T, parent string) {
	t.Helper()
	walk(t, filepath.Dir(parent), func(path string) {
		if path != parent && path != filepath.Dir(parent) {
			t.Errorf("%s was left behind", path)
		}
	})
}

// listing returns every entry below dir: its mode, its name, its content.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var lines []string
	walk(t, dir, func(path string) {
		info, err := os.Lstat(path)
		must(t, err)
		name, err := filepath.Rel(dir, path)
		must(t, err)
		if info.IsDir() {
			lines = append(lines, name+"/")
			return
		}
		content, err := os.ReadFile(path)
		must(t, err)
		if len(content) > 20 {
			content = content[:20]
		}
		lines = append(lines, strings.Join([]string{info.Mode().String(), name, string(content)}, " "))
	})
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func walk(t *testing.T, dir string, each func(path string)) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && path != dir {
			each(path)
		}
		return err
	}))
}

// parentOf makes an empty folder in an empty folder, so that a step out of it
// would be seen.
func parentOf(t *testing.T) string {
	t.Helper()
	parent := filepath.Join(t.TempDir(), "parent")
	must(t, os.Mkdir(parent, 0o700))
	return parent
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
