package artifact

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A cache file is
//
//	magic, root path, then per directory: path, count, and per file:
//	name, dev, ino, size, mtime, ctime, mode, SHA-256
//
// with lengths and numbers little-endian, and the SHA-256 of all that at the
// end. The checksum finds accidents, not attackers: see Cache.
const cacheMagic = "sallyport-statcache-1\n"

type cacheEncoder struct{ buf []byte }

func (e *cacheEncoder) begin(root string) {
	e.buf = append(e.buf, cacheMagic...)
	e.text(root)
}

func (e *cacheEncoder) text(s string) {
	e.buf = binary.LittleEndian.AppendUint32(e.buf, uint32(len(s)))
	e.buf = append(e.buf, s...)
}

func (e *cacheEncoder) node(n *node) {
	var files []*entry
	for _, x := range n.sorted {
		if x.kind == KindFile && x.trusted {
			files = append(files, x)
		}
	}
	slices.SortFunc(files, func(a, b *entry) int { return strings.Compare(a.raw, b.raw) })
	if len(files) > 0 {
		e.text(n.path)
		e.buf = binary.LittleEndian.AppendUint32(e.buf, uint32(len(files)))
	}
	for _, x := range files {
		e.text(x.raw)
		for _, v := range []uint64{x.id.dev, x.id.ino, uint64(x.id.size), uint64(x.id.mtime), uint64(x.id.ctime), uint64(x.id.mode)} {
			e.buf = binary.LittleEndian.AppendUint64(e.buf, v)
		}
		e.buf = append(e.buf, x.sum[:]...)
	}
	for _, x := range n.sorted {
		if x.child != nil {
			e.node(x.child)
		}
	}
}

func (e *cacheEncoder) end() []byte {
	sum := sha256.Sum256(e.buf)
	return append(e.buf, sum[:]...)
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
	dirs, count, err := decodeCache(data, root)
	if err != nil {
		return fmt.Errorf("cannot read %q: %w", filepath.Base(file), err)
	}
	r.dirs, r.loaded = dirs, count
	return nil
}

func decodeCache(data []byte, root string) (map[string]*cachedDir, int, error) {
	body := len(data) - sha256.Size
	if body < len(cacheMagic) {
		return nil, 0, errCacheDamaged
	}
	if sum := sha256.Sum256(data[:body]); !bytes.Equal(sum[:], data[body:]) {
		return nil, 0, errCacheDamaged
	}
	d := cacheDecoder{rest: string(data[:body])}
	if d.take(len(cacheMagic)) != cacheMagic || d.text() != root {
		return nil, 0, errCacheDamaged
	}
	dirs, total := map[string]*cachedDir{}, 0
	for len(d.rest) > 0 && !d.bad {
		path := d.text()
		dir := d.dir()
		dirs[path] = dir
		total += len(dir.files)
	}
	if d.bad {
		return nil, 0, errCacheDamaged
	}
	return dirs, total, nil
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

func (d *cacheDecoder) number(size int) (v uint64) {
	s := d.take(size)
	for i := len(s) - 1; i >= 0; i-- {
		v = v<<8 | uint64(s[i])
	}
	return v
}

func (d *cacheDecoder) text() string { return d.take(int(d.number(4))) }

// cachedFileBytes is the least that a file takes in the encoding.
const cachedFileBytes = 4 + 6*8 + sha256.Size

func (d *cacheDecoder) dir() *cachedDir {
	count := int(d.number(4))
	if count > len(d.rest)/cachedFileBytes {
		d.bad = true
		return &cachedDir{}
	}
	dir := &cachedDir{files: make([]cachedFile, count)}
	for i := range dir.files {
		f := &dir.files[i]
		f.name = d.text()
		f.id.dev, f.id.ino = d.number(8), d.number(8)
		f.id.size, f.id.mtime, f.id.ctime = int64(d.number(8)), int64(d.number(8)), int64(d.number(8))
		f.id.mode = uint32(d.number(8))
		copy(f.sum[:], d.take(sha256.Size))
	}
	return dir
}
