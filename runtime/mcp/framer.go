package mcp

import (
	"bytes"
	"io"
	"weak"
)

const (
	// DefaultMaxFrame is the limit of a frame in bytes unless the operator
	// approved another one (spec/stdio-framing.md 2).
	DefaultMaxFrame = 4 << 20
	// HighestMaxFrame is the largest limit that can be approved.
	HighestMaxFrame = 64 << 20

	smallBlock  = 64 << 10
	mediumBlock = 512 << 10
	// readChunk keeps what is read in the cache until it has been searched.
	readChunk    = 64 << 10
	emptyReads   = 100
	byteOrderLen = 3
)

// Framer cuts newline-delimited frames out of a stream
// (spec/stdio-framing.md 1 to 3 and 5). It is for one goroutine.
//
// The limit counts every byte in front of the line feed, a byte order mark and a
// carriage return included, so that the verdict needs no look ahead and does not
// depend on how the stream is cut into reads.
type Framer struct {
	src   io.Reader
	limit int

	buf        []byte // its length never exceeds limit
	start, end int    // what is held is buf[start:end]
	searched   int    // buf[start:searched] has no line feed

	small  []byte
	large  *block              // what buf is while it is not small
	reuse  weak.Pointer[block] // the last large block, until the collector takes it
	beyond [1]byte             // where the byte after a full buffer is seen
	over   bool                // err is the frame over the limit
	cut    bool
	marks  int64
	err    error

	keepEmpty bool // empty frames are delivered too, for event streams
}

type block struct{ bytes []byte }

// NewFramer returns a Framer over src. A limit of 0 or less is DefaultMaxFrame.
func NewFramer(src io.Reader, limit int) *Framer {
	if limit <= 0 {
		limit = DefaultMaxFrame
	}
	small := make([]byte, min(smallBlock, limit))
	return &Framer{src: src, limit: limit, buf: small, small: small}
}

// Next returns the next frame that is not empty. It is valid until the following
// call. At the end of the stream the error is io.EOF; a frame over the limit is a
// *ProtocolError; both stay.
func (f *Framer) Next() ([]byte, error) {
	for {
		if at := bytes.IndexByte(f.buf[f.searched:f.end], '\n'); at >= 0 {
			line := f.buf[f.start : f.searched+at]
			f.start = f.searched + at + 1
			f.searched = f.start
			if frame := f.trim(line); len(frame) > 0 || f.keepEmpty {
				return frame, nil
			}
			continue
		}
		f.searched = f.end
		if f.err != nil {
			return f.last()
		}
		frame, full := f.makeRoom()
		if full {
			if frame = f.trim(frame); len(frame) > 0 || f.keepEmpty {
				return frame, nil
			}
			continue
		}
		if f.err == nil {
			f.end += f.read(f.buf[f.end:min(len(f.buf), f.end+readChunk)])
		}
	}
}

// Cut reports whether the last frame ended with the stream, not with a line feed.
func (f *Framer) Cut() bool { return f.cut }

// Marks returns how many byte order marks were dropped.
func (f *Framer) Marks() int64 { return f.marks }

// Free drops the buffers. Next returns io.EOF from then on.
func (f *Framer) Free() {
	f.buf, f.small, f.large, f.reuse = nil, nil, nil, weak.Pointer[block]{}
	f.start, f.end, f.searched = 0, 0, 0
	f.err = io.EOF
}

// last delivers what is held when the stream is over.
func (f *Framer) last() ([]byte, error) {
	rest := f.buf[f.start:f.end]
	f.start, f.searched = f.end, f.end
	if f.over || len(rest) == 0 {
		return nil, f.err
	}
	if rest = f.trim(rest); len(rest) == 0 {
		return nil, f.err
	}
	f.cut = true
	return rest, nil
}

func (f *Framer) trim(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	if len(line) >= byteOrderLen && line[0] == 0xEF && line[1] == 0xBB && line[2] == 0xBF {
		f.marks++
		line = line[byteOrderLen:]
	}
	return line
}

// makeRoom makes buf[end:] longer than nothing. Where the buffer has reached the
// limit it looks at one more byte instead, which is a line feed (then the whole
// buffer is a line) or one too many.
func (f *Framer) makeRoom() (line []byte, full bool) {
	if f.start == f.end {
		f.giveBack()
	} else if f.start > 0 {
		f.end = copy(f.buf, f.buf[f.start:f.end])
		f.start, f.searched = 0, f.end
	}
	if f.end < len(f.buf) {
		return nil, false
	}
	if len(f.buf) < f.limit {
		f.grow()
		return nil, false
	}
	if f.read(f.beyond[:]) == 0 {
		return nil, false
	}
	if f.beyond[0] == '\n' {
		line = f.buf[:f.end]
		f.start, f.searched = f.end, f.end
		return line, true
	}
	over := newProtocolError(FrameTooLarge, "the server sent a message over the size limit", nil)
	over.Limit, over.Size = int64(f.limit), int64(f.end)+1
	f.start, f.searched, f.err, f.over = f.end, f.end, over, true
	return nil, false
}

// giveBack returns to the small buffer. The large one stays within reach until
// the next garbage collection, so that a run of large frames allocates once.
func (f *Framer) giveBack() {
	f.start, f.end, f.searched = 0, 0, 0
	if f.large != nil {
		f.large, f.buf = nil, f.small
	}
}

// grow goes from small to medium to the limit in one jump each: doubling would
// hold one and a half times the limit, this holds the limit and half a MiB.
func (f *Framer) grow() {
	next := f.reuse.Value()
	if next == nil || len(next.bytes) <= len(f.buf) {
		size := min(mediumBlock, f.limit)
		if len(f.buf) >= size {
			size = f.limit
		}
		next = &block{bytes: make([]byte, size)}
		f.reuse = weak.Make(next)
	}
	copy(next.bytes, f.buf[:f.end])
	f.large, f.buf = next, next.bytes
}

func (f *Framer) read(into []byte) int {
	for range emptyReads {
		n, err := f.src.Read(into)
		if err != nil {
			f.err = err
		}
		if n > 0 || err != nil {
			return n
		}
	}
	f.err = io.ErrNoProgress
	return 0
}
