package artifact

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"
)

// A cache file is
//
//	magic, root path, device, then per directory with trusted files:
//	path, number of files n, length of names, n ends of names, names, n records
//
// with lengths and numbers little-endian, names ascending, and the CRC-32C of
// all that at the end. A record is inode, size, mtime, ctime, mode, SHA-256. It
// is searched where it lies: nothing is decoded that is not asked for. The
// checksum finds accidents, not attackers: see Cache.
const cacheMagic = "sallyport-statcache-1\n"

const (
	cachedRecord = 8 + 8 + 8 + 8 + 4 + sha256.Size
	crcBytes     = 4
)

func cacheChecksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// cachedDir is one directory of a cache file.
type cachedDir struct{ ends, names, records string }

func (d *cachedDir) len() int { return len(d.ends) / 4 }

func (d *cachedDir) name(i int) string {
	from := uint32(0)
	if i > 0 {
		from = number32(d.ends[4*(i-1):])
	}
	return d.names[from:number32(d.ends[4*i:])]
}

// find returns the index of a file by its raw name.
func (d *cachedDir) find(name string) (int, bool) {
	if d == nil {
		return 0, false
	}
	low, high := 0, d.len()
	for low < high {
		middle := int(uint(low+high) / 2)
		if d.name(middle) < name {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, low < d.len() && d.name(low) == name
}

func (d *cachedDir) identity(i int, dev uint64) identity {
	r := d.records[i*cachedRecord:]
	return identity{
		dev: dev, ino: number64(r), size: int64(number64(r[8:])),
		mtime: int64(number64(r[16:])), ctime: int64(number64(r[24:])), mode: number32(r[32:]),
	}
}

func (d *cachedDir) sum(i int) string {
	return d.records[(i+1)*cachedRecord-sha256.Size : (i+1)*cachedRecord]
}

func number32(s string) uint32 {
	_ = s[3]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

func number64(s string) uint64 { return uint64(number32(s)) | uint64(number32(s[4:]))<<32 }

type cacheEncoder struct{ buf []byte }

func (e *cacheEncoder) begin(root string, dev uint64) {
	e.buf = append(e.buf, cacheMagic...)
	e.text(root)
	e.buf = binary.LittleEndian.AppendUint64(e.buf, dev)
}

func (e *cacheEncoder) text(s string) {
	e.number(len(s))
	e.buf = append(e.buf, s...)
}

func (e *cacheEncoder) number(n int) { e.buf = binary.LittleEndian.AppendUint32(e.buf, uint32(n)) }

// node writes the trusted files of a directory and of those below it.
func (e *cacheEncoder) node(n *node) {
	var files []*entry
	for _, x := range n.sorted {
		if x.kind == KindFile && x.trusted {
			files = append(files, x)
		}
	}
	if len(files) > 0 {
		slices.SortFunc(files, func(a, b *entry) int { return strings.Compare(a.raw, b.raw) })
		e.dir(n.path, files)
	}
	for _, x := range n.sorted {
		if x.child != nil {
			e.node(x.child)
		}
	}
}

func (e *cacheEncoder) dir(path string, files []*entry) {
	var names []byte
	e.text(path)
	e.number(len(files))
	for _, x := range files {
		names = append(names, x.raw...)
	}
	e.number(len(names))
	end := 0
	for _, x := range files {
		end += len(x.raw)
		e.number(end)
	}
	e.buf = append(e.buf, names...)
	for _, x := range files {
		for _, v := range []uint64{x.id.ino, uint64(x.id.size), uint64(x.id.mtime), uint64(x.id.ctime)} {
			e.buf = binary.LittleEndian.AppendUint64(e.buf, v)
		}
		e.buf = binary.LittleEndian.AppendUint32(e.buf, x.id.mode)
		e.buf = append(e.buf, x.sum[:]...)
	}
}

func (e *cacheEncoder) end() []byte {
	return binary.LittleEndian.AppendUint32(e.buf, cacheChecksum(e.buf))
}

var errCacheDamaged = errors.New("cache file is damaged or of another version")

// maxCacheFile bounds what is read of a cache file, in bytes.
const maxCacheFile = 512 << 20

// load fills r from a cache file, whole or not at all.
func (r *reuse) load(file, root string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.Size() > maxCacheFile {
		return errCacheDamaged
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := r.decode(data, root); err != nil {
		return fmt.Errorf("cannot read %q: %w", filepath.Base(file), err)
	}
	return nil
}

func (r *reuse) decode(data []byte, root string) error {
	body := len(data) - crcBytes
	if body < len(cacheMagic) || cacheChecksum(data[:body]) != binary.LittleEndian.Uint32(data[body:]) {
		return errCacheDamaged
	}
	// The bytes are not written again: a copy would double what a scan allocates.
	d := cacheDecoder{rest: unsafe.String(unsafe.SliceData(data), body)}
	if d.take(len(cacheMagic)) != cacheMagic || d.take(d.number()) != root {
		return errCacheDamaged
	}
	dev := d.take(8)
	const likelyDir = 1 << 10 // bytes
	dirs, files := make(map[string]*cachedDir, body/likelyDir), 0
	var slab []cachedDir
	for len(d.rest) > 0 {
		if len(slab) == 0 {
			slab = make([]cachedDir, 64)
		}
		path := d.take(d.number())
		d.dir(&slab[0])
		dirs[path] = &slab[0]
		files += slab[0].len()
		slab = slab[1:]
	}
	if d.bad {
		return errCacheDamaged
	}
	r.dirs, r.loaded, r.dev = dirs, files, number64(dev)
	return nil
}

type cacheDecoder struct {
	rest string
	bad  bool
}

func (d *cacheDecoder) take(n int) string {
	if n < 0 || n > len(d.rest) {
		d.bad, d.rest = true, ""
		return ""
	}
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s
}

func (d *cacheDecoder) number() int {
	s := d.take(4)
	if d.bad {
		return 0
	}
	return int(number32(s))
}

// dir takes one directory apart. The ends of its names must ascend to their
// length, so that name never leaves them.
func (d *cacheDecoder) dir(dir *cachedDir) {
	count, names := d.number(), d.number()
	if count > len(d.rest)/cachedRecord {
		d.bad, d.rest = true, ""
		return
	}
	dir.ends, dir.names, dir.records = d.take(4*count), d.take(names), d.take(cachedRecord*count)
	last := uint32(0)
	for i := 0; i < len(dir.ends); i += 4 {
		end := number32(dir.ends[i:])
		if end < last || int64(end) > int64(len(dir.names)) {
			d.bad, d.rest = true, ""
			return
		}
		last = end
	}
}
