package unpack

import (
	"bufio"
	"compress/flate"
	"context"
	"hash"
	"hash/crc32"
	"io"
)

// Zip makes the folder dir, at which nothing may be, from the zip in r. After an
// error there is nothing at dir.
func Zip(ctx context.Context, r io.ReaderAt, size int64, dir string, opts Options) (Result, error) {
	target, err := Create(ctx, dir, opts)
	if err != nil {
		return Result{}, err
	}
	z := &zipReader{r: r, size: size, target: target, crc: crc32.NewIEEE()}
	return target.finish(z.read())
}

type zipReader struct {
	r       io.ReaderAt
	size    int64
	target  *Target
	crc     hash.Hash32
	packed  *bufio.Reader
	inflate io.ReadCloser
}

// read checks the whole directory before it inflates anything.
func (z *zipReader) read() error {
	entries, directory, err := z.directory()
	if err != nil {
		return err
	}
	if err := z.locate(entries, directory); err != nil {
		return err
	}
	for i := range entries {
		if err := z.unpack(&entries[i]); err != nil {
			return err
		}
	}
	return nil
}

func (z *zipReader) unpack(e *zipEntry) error {
	if e.isDir() {
		if e.size != 0 {
			return damaged(e.name, "a folder has content")
		}
		return z.target.Dir(e.name)
	}
	content, err := z.content(e)
	if err != nil {
		return err
	}
	z.crc.Reset()
	n, err := z.target.file(e.name, e.executable(), io.TeeReader(content, z.crc), func(n int64) error {
		switch {
		case n > ratioSlack && n/z.target.limits.Ratio > e.packed:
			return bomb(e.name, z.target.limits.Ratio)
		case uint64(n) > uint64(e.size):
			return damaged(e.name, "an entry is larger than it says")
		}
		return nil
	})
	if isCorrupt(err) {
		return damaged(e.name, "an entry cannot be inflated")
	}
	if err != nil {
		return err
	}
	if !e.hasMode() {
		z.target.result.Modeless = append(z.target.result.Modeless, e.name)
	}
	switch {
	case n != e.size:
		return damaged(e.name, "an entry is smaller than it says")
	case z.crc.Sum32() != e.crc:
		return damaged(e.name, "an entry has another checksum than it says")
	}
	if _, err := z.packed.ReadByte(); err == nil {
		return damaged(e.name, "an entry ends before its bytes do")
	}
	return nil
}

func (z *zipReader) content(e *zipEntry) (io.Reader, error) {
	section := io.NewSectionReader(z.r, e.data, e.packed)
	if z.packed == nil {
		z.packed = bufio.NewReaderSize(section, 64<<10)
	} else {
		z.packed.Reset(section)
	}
	if e.method == methodStored {
		return z.packed, nil
	}
	if z.inflate == nil {
		z.inflate = flate.NewReader(z.packed)
		return z.inflate, nil
	}
	if err := z.inflate.(flate.Resetter).Reset(z.packed, nil); err != nil {
		return nil, err
	}
	return z.inflate, nil
}
