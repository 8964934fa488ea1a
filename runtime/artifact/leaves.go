package artifact

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A leaf list is
//
//	magic, count, and per leaf: kind, length of the path shared with the leaf
//	before, the rest of the path, and for a file mode, size, SHA-256, for a link
//	its text
//
// with lengths and numbers as shortest uvarints. There is exactly one encoding
// of a list: what decodes encodes to the same bytes.
const leavesMagic = "sallyport-leaves-1\n"

// EncodeLeaves returns the compact form of leaves in ascending path order.
func EncodeLeaves(leaves []Leaf) []byte {
	b := append(make([]byte, 0, len(leavesMagic)+16+64*len(leaves)), leavesMagic...)
	b = binary.AppendUvarint(b, uint64(len(leaves)))
	last := ""
	for i := range leaves {
		l := &leaves[i]
		shared := sharedPrefix(last, l.Path)
		b = append(b, l.Kind)
		b = binary.AppendUvarint(b, uint64(shared))
		b = appendText(b, l.Path[shared:])
		switch l.Kind {
		case KindFile:
			b = binary.AppendUvarint(b, uint64(l.Mode))
			b = binary.AppendUvarint(b, uint64(l.Size))
			b = append(b, l.Sum[:]...)
		case KindLink:
			b = appendText(b, l.Target)
		}
		last = l.Path
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func sharedPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

var errLeaves = errors.New("leaf list is damaged or of another version")

// DecodeLeaves is the inverse of EncodeLeaves. It accepts only lists that a
// digest could have made: paths in ascending order, valid and in NFC, modes and
// sizes where they belong. Whether a list is the one that was approved is asked
// with DigestOf.
func DecodeLeaves(data []byte) ([]Leaf, error) {
	rest, ok := strings.CutPrefix(string(data), leavesMagic)
	if !ok {
		return nil, errLeaves
	}
	d := leafDecoder{rest: rest}
	count := d.uvarint()
	const leastLeaf = 4
	if d.bad || count > uint64(len(d.rest)/leastLeaf) {
		return nil, errLeaves
	}
	leaves := make([]Leaf, count)
	last := ""
	for i := range leaves {
		if err := d.leaf(&leaves[i], last); err != nil {
			return nil, fmt.Errorf("cannot read leaf %d: %w", i, err)
		}
		last = leaves[i].Path
	}
	if d.rest != "" {
		return nil, errLeaves
	}
	return leaves, nil
}

type leafDecoder struct {
	rest string
	bad  bool
}

func (d *leafDecoder) take(n uint64) string {
	if n > uint64(len(d.rest)) {
		d.bad, d.rest = true, ""
		return ""
	}
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s
}

// uvarint reads a number in its shortest form only.
func (d *leafDecoder) uvarint() uint64 {
	head := d.rest[:min(len(d.rest), binary.MaxVarintLen64)]
	v, n := binary.Uvarint([]byte(head))
	if n <= 0 || (n > 1 && head[n-1] == 0) {
		d.bad, d.rest = true, ""
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *leafDecoder) leaf(l *Leaf, last string) error {
	kind := d.take(1)
	shared := d.uvarint()
	suffix := d.take(d.uvarint())
	if d.bad || shared > uint64(len(last)) {
		return errLeaves
	}
	l.Kind, l.Path = kind[0], last[:shared]+suffix
	switch l.Kind {
	case KindDir:
	case KindFile:
		mode, size := d.uvarint(), d.uvarint()
		if mode&^countedMode != 0 || size > 1<<62 {
			return errLeaves
		}
		l.Mode, l.Size = uint32(mode), int64(size)
		copy(l.Sum[:], d.take(uint64(len(l.Sum))))
	case KindLink:
		l.Target = d.take(d.uvarint())
		if l.Target == "" || len(l.Target) > maxTarget || !utf8.ValidString(l.Target) {
			return errLeaves
		}
	default:
		return errLeaves
	}
	if d.bad || l.Path <= last || uint64(sharedPrefix(last, l.Path)) != shared || !validPath(l.Path) {
		return errLeaves
	}
	return nil
}

// validPath reports whether p is a path that a tree may have (clause 2.1).
func validPath(p string) bool {
	return p != "." && p != ".." && len(p) <= maxPath && strings.Count(p, "/") < maxDepth &&
		!strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "../") && path.Clean(p) == p &&
		strings.IndexByte(p, 0) < 0 && utf8.ValidString(p) && norm.NFC.IsNormalString(p)
}
