package artifact

import (
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// kindUnknown is listed where the file system does not say what an entry is.
const kindUnknown byte = '?'

// lister collects the names of one directory into chunks.
type lister struct {
	*walk
	node    *node
	scratch *scratch
	start   int // of the current chunk in the slab
	prefix  int // length of the directory's path with its '/'
}

func (l *lister) begin() {
	l.prefix = 0
	if l.node.path != "" {
		l.prefix = len(l.node.path) + 1
	}
	l.reset()
}

func (l *lister) reset() {
	s := l.scratch
	if cap(s.slab)-len(s.slab) < chunkSize {
		s.slab = make([]entry, 0, slabSize)
	}
	l.start = len(s.slab)
	s.names, s.ends = s.names[:0], s.ends[:0]
}

func (l *lister) add(name []byte, kind byte) {
	if l.stop.Load() {
		return
	}
	if l.node.young {
		l.node.listing += l.fingerprint(name, kind)
	}
	s := l.scratch
	if l.prefix > 0 {
		s.names = append(append(s.names, l.node.path...), '/')
	}
	s.names = append(s.names, name...)
	s.ends = append(s.ends, len(s.names))
	s.slab = s.slab[:len(s.slab)+1] // reset left room, all zero
	s.slab[len(s.slab)-1].kind = kind
	if len(s.slab)-l.start == chunkSize {
		chunk := l.cut()
		l.node.refs.Add(1)
		l.pool.push(task{node: l.node, chunk: chunk})
	}
}

// cut ends the current chunk: it names its entries, hands out its directories
// and returns it to be read, or nil if it is empty.
func (l *lister) cut() []entry {
	s := l.scratch
	end := len(s.slab)
	chunk := s.slab[l.start:end:end]
	if len(chunk) == 0 {
		return nil
	}
	if l.entries.Add(int64(len(chunk))) > int64(l.limits.Entries) {
		l.stop.Store(true)
	}
	paths, from := string(s.names), 0
	var dirs []task
	for i := range chunk {
		e := &chunk[i]
		e.path = paths[from:s.ends[i]]
		e.raw = e.path[l.prefix:]
		from = s.ends[i]
		if !l.accept(e) {
			continue
		}
		if e.kind == KindDir {
			dirs = append(dirs, task{node: l.childOf(e)})
		}
	}
	l.node.chunks = append(l.node.chunks, chunk)
	l.node.refs.Add(int32(len(dirs)))
	l.pool.push(dirs...)
	l.reset()
	return chunk
}

// accept checks a name and brings the path into NFC (spec/artifact-digest.md 2.1).
func (l *lister) accept(e *entry) bool {
	if e.kind == kindUnknown {
		id, err := l.src.lstat(l.node.handle, e.raw, l.scratch)
		if err != nil {
			e.refusal = refuse(codeOf(err), e.path, err)
			l.refusedFrom(e.path)
			return true
		}
		e.kind = id.kind()
	}
	if !isASCII(e.raw) {
		if !utf8.ValidString(e.raw) {
			l.refuseEarly(CodePathEncoding, e.path, nil)
			return false
		}
		e.path = e.path[:l.prefix] + norm.NFC.String(e.raw)
	}
	if len(e.path) > maxPath || l.node.depth+1 > maxDepth {
		l.refuseEarly(CodePathTooLong, e.path, nil)
		return false
	}
	return true
}

func (l *lister) childOf(e *entry) *node {
	e.child = &node{parent: l.node, entry: e, path: e.path, depth: l.node.depth + 1}
	if l.reuse != nil {
		e.child.cached = l.reuse.dirs[e.path]
	}
	return e.child
}
