package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// Kinds of entry (spec/artifact-digest.md 2).
const (
	KindDir  byte = 'd'
	KindFile byte = 'f'
	KindLink byte = 'l'
)

// countedMode is what of a file's mode takes part (spec/artifact-digest.md 2.2).
const countedMode = 0o7100

// Leaf is one entry of a tree, as the digest sees it.
type Leaf struct {
	// Path is relative to the root, joined with '/', in Unicode form NFC.
	Path string
	// Kind is KindDir, KindFile or KindLink.
	Kind byte
	// Mode is set-uid, set-gid, sticky and owner-execute of a file; else 0.
	Mode uint32
	// Size is a file's length in bytes; else 0.
	Size int64
	// Sum is the SHA-256 of a file's bytes; else zero.
	Sum [sha256.Size]byte
	// Target is a link's text; else empty.
	Target string
}

// Executable reports whether the leaf is a file its owner may execute.
func (l Leaf) Executable() bool { return l.Kind == KindFile && l.Mode&0o100 != 0 }

// DigestOf returns the digest of a tree with these leaves, which must stand in
// ascending path order as in Tree.Leaves. It checks a stored list against the
// digest that was approved; a list out of order matches no digest.
func DigestOf(leaves []Leaf) Digest {
	e := newEncoder(len(leaves))
	for i := range leaves {
		e.add(&leaves[i])
	}
	return e.close()
}

// encoder writes records into the hash (spec/artifact-digest.md 3). Hashing has
// a goroutine of its own, so that it takes no time from making the records.
type encoder struct {
	buf  []byte
	full chan []byte
	free chan []byte
	sum  chan []byte
}

const (
	encoderBuffer = 64 << 10
	longestRecord = maxPath + maxTarget + 256
)

func newEncoder(count int) *encoder {
	e := &encoder{full: make(chan []byte, 1), free: make(chan []byte, 2), sum: make(chan []byte, 1)}
	for range cap(e.free) {
		e.free <- nil
	}
	go e.work()
	e.next()
	e.buf = append(e.buf, "sallyport-artifact-v1\n"...)
	e.buf = strconv.AppendInt(e.buf, int64(count), 10)
	e.buf = append(e.buf, '\n')
	return e
}

func (e *encoder) work() {
	h := sha256.New()
	for b := range e.full {
		h.Write(b)
		e.free <- b
	}
	e.sum <- h.Sum(nil)
}

func (e *encoder) next() {
	e.buf = (<-e.free)[:0]
	if e.buf == nil {
		e.buf = make([]byte, 0, encoderBuffer+longestRecord)
	}
}

func (e *encoder) add(l *Leaf) {
	e.buf = appendRecord(e.buf, l)
	if len(e.buf) >= encoderBuffer {
		e.full <- e.buf
		e.next()
	}
}

// close ends the encoder and returns the digest. It must be called once.
func (e *encoder) close() Digest {
	e.full <- e.buf
	close(e.full)
	return digestFromSum(<-e.sum)
}

func appendRecord(b []byte, l *Leaf) []byte {
	m := l.Mode
	b = append(b, l.Kind, ' ', '0'+byte(m>>9&7), '0'+byte(m>>6&7), '0'+byte(m>>3&7), '0'+byte(m&7), ' ')
	b = strconv.AppendInt(b, l.Size, 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(len(l.Path)), 10)
	b = append(b, ':')
	b = append(b, l.Path...)
	b = append(b, ' ')
	switch l.Kind {
	case KindFile:
		b = append(b, "64:"...)
		b = hex.AppendEncode(b, l.Sum[:])
	case KindLink:
		b = strconv.AppendInt(b, int64(len(l.Target)), 10)
		b = append(b, ':')
		b = append(b, l.Target...)
	default:
		b = append(b, "0:"...)
	}
	return append(b, '\n')
}
