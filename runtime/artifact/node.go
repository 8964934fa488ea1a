package artifact

import (
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"sallyport/internal/coded"
)

// entry is one entry of a directory while the tree is walked.
type entry struct {
	raw     string // name on disk
	path    string // NFC, relative to the root
	id      identity
	sum     [32]byte
	target  string
	child   *node // of a directory
	refusal *coded.Error
	kind    byte
	hashed  bool // sum is of the bytes that id describes
	trusted bool // a stat cache may keep it (cache.go)
}

// node is one directory while the tree is walked. Its handle stays open while
// refs says that someone may still open a child from it.
type node struct {
	parent *node
	entry  *entry // in the parent; nil for the root
	path   string // NFC; "" for the root
	depth  int
	handle handle
	id     identity
	cached *cachedDir
	refs   atomic.Int32

	young   bool   // changed just before it was opened (sameListing)
	listing uint64 // sum of its names' fingerprints, if young

	// chunks are filled by the one worker that lists; sorted and refusal are set by
	// the one that drops the last reference.
	chunks  [][]entry
	sorted  []*entry
	refusal *coded.Error
}

// name returns e's last name in NFC.
func (n *node) name(e *entry) string {
	if n.path == "" {
		return e.path
	}
	return e.path[len(n.path)+1:]
}

// sort puts the entries in ascending order of their NFC names; entries equal in
// NFC stand in the order of their raw names, so that which of them is refused
// does not depend on the file system.
func (n *node) sort() {
	count := 0
	for _, c := range n.chunks {
		count += len(c)
	}
	n.sorted = make([]*entry, 0, count)
	for _, c := range n.chunks {
		for i := range c {
			n.sorted = append(n.sorted, &c[i])
		}
	}
	n.chunks = nil
	slices.SortFunc(n.sorted, func(a, b *entry) int {
		if order := strings.Compare(n.name(a), n.name(b)); order != 0 {
			return order
		}
		return strings.Compare(a.raw, b.raw)
	})
}

// find returns the entry with a name as it stands in link text, or nil.
func (n *node) find(raw string) *entry {
	want := nfc(raw)
	i, _ := slices.BinarySearchFunc(n.sorted, want, func(e *entry, name string) int {
		return strings.Compare(n.name(e), name)
	})
	for ; i < len(n.sorted) && n.name(n.sorted[i]) == want; i++ {
		if namesAreNormalised || n.sorted[i].raw == raw {
			return n.sorted[i]
		}
	}
	return nil
}

// caseCollisions returns the siblings that are equal but for letter case.
func (n *node) caseCollisions(seen map[string]*entry) []Warning {
	if !slices.ContainsFunc(n.sorted, func(e *entry) bool { return hasCase(n.name(e)) }) {
		return nil
	}
	clear(seen)
	var found []Warning
	for _, e := range n.sorted {
		key := foldCase(n.name(e))
		if first, ok := seen[key]; ok && first.path != e.path {
			found = append(found, Warning{Code: CodeCaseCollision, Path: first.path, Other: e.path})
			continue
		}
		seen[key] = e
	}
	return found
}

// hasCase reports whether folding may change s.
func hasCase(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return true
		}
	}
	return false
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func nfc(s string) string {
	if isASCII(s) {
		return s
	}
	return norm.NFC.String(s)
}

func foldCase(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return norm.NFC.String(cases.Fold().String(s))
}
