package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"sallyport/internal/coded"
)

// chunkSize is how many entries are handed to a worker at once: enough that the
// pool's lock is not felt, few enough that the work stays even.
const chunkSize = 16

// slabSize is how many entries are allocated at once.
const slabSize = 512

// walk reads one tree. It is used once.
type walk struct {
	ctx    context.Context
	opts   Options
	limits Limits
	src    source
	pool   *pool
	reuse  *reuse // nil: read every file
	seed   maphash.Seed

	root    *node
	entries atomic.Int64
	bytes   atomic.Int64

	// stop ends the walk at once: ctx has ended or there are too many entries.
	stop atomic.Bool
	// quiet ends reading: whatever the files hold, the tree is refused.
	quiet atomic.Bool
	// refusedAt is the first path known to be refused: what stands behind it in
	// path order need not be read.
	refusedAt atomic.Pointer[string]

	mu       sync.Mutex
	warnings []Warning
	early    *coded.Error // see refuseEarly
	earlyRaw string

	progressMu   sync.Mutex
	lastProgress time.Time
}

func newWalk(ctx context.Context, opts Options) *walk {
	src := opts.source
	if src == nil {
		src = systemSource()
	}
	return &walk{ctx: ctx, opts: opts, limits: opts.Limits.orDefault(), src: src, pool: newPool(), seed: maphash.MakeSeed()}
}

// run reads the tree below dir and returns it, or the first refusal.
func (w *walk) run(dir string) (*Tree, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	h, id, err := w.src.openRoot(dir)
	if err != nil {
		return nil, err
	}
	w.root = &node{handle: h, id: id}
	w.root.refs.Store(1)
	if w.reuse != nil {
		w.root.cached = w.reuse.dirs[""]
	}
	w.pool.push(task{node: w.root})
	w.work()
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	if w.entries.Load() > int64(w.limits.Entries) {
		return nil, refuse(CodeTooManyEntries, "", nil)
	}
	if w.early != nil {
		return nil, w.early
	}
	w.report(true)
	return w.assemble()
}

func (w *walk) work() {
	watched := context.AfterFunc(w.ctx, func() { w.stop.Store(true) })
	defer watched()
	var group sync.WaitGroup
	for range w.opts.workers() {
		group.Go(func() {
			s := newScratch()
			for {
				t, ok := w.pool.next()
				if !ok {
					return
				}
				w.do(t, s)
				w.pool.done()
			}
		})
	}
	group.Wait()
}

func (w *walk) do(t task, s *scratch) {
	switch {
	case t.chunk != nil:
		w.readChunk(t.node, t.chunk, s)
		w.release(t.node, s)
	case t.node.parent == nil:
		w.listDir(t.node, s)
	default:
		w.openDir(t.node, s)
	}
	w.report(false)
}

// openDir opens a directory from its parent and lists it.
func (w *walk) openDir(n *node, s *scratch) {
	if w.stop.Load() {
		w.release(n.parent, s)
		return
	}
	h, id, err := w.src.openDir(n.parent.handle, n.entry.raw, s)
	w.release(n.parent, s)
	if err != nil {
		w.cannotList(n, err)
		return
	}
	n.handle, n.id = h, id
	n.refs.Store(1)
	w.listDir(n, s)
}

func (w *walk) cannotList(n *node, err error) {
	if code := codeOf(err); code != CodeUnreadable {
		n.refusal = refuse(code, n.path, err)
		w.refusedFrom(n.path)
		return
	}
	w.refuseEarly(CodeUnreadable, n.path, err)
}

// listDir lists an open directory, handing out its entries as they come. The
// last, partial chunk is read here.
func (w *walk) listDir(n *node, s *scratch) {
	defer w.release(n, s)
	n.young = isYoung(n.id)
	l := lister{walk: w, node: n, scratch: s}
	l.begin()
	if err := w.src.list(n.handle, false, s, l.add); err != nil {
		w.cannotList(n, err)
	}
	w.hook("listed", n.path)
	if last := l.cut(); last != nil {
		w.readChunk(n, last, s)
	}
}

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
	s.slab = append(s.slab, entry{kind: kind})
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

// release drops a reference to an open directory. The last one checks that its
// listing still is what was read, closes it and sorts it.
func (w *walk) release(n *node, s *scratch) {
	if n.refs.Add(-1) > 0 {
		return
	}
	w.hook("leaving", n.path)
	if n.refusal == nil {
		if same, err := w.sameListing(n, s); !same {
			n.refusal = refuse(CodeChanged, n.path, err)
			w.refusedFrom(n.path)
		}
	}
	w.src.closeDir(n.handle)
	n.sort()
	if found := n.caseCollisions(s.folded); found != nil {
		w.mu.Lock()
		w.warnings = append(w.warnings, found...)
		w.mu.Unlock()
	}
}

// sameListing reports whether a directory still is what was listed. Its times
// tell, unless it was so young when it was opened that a change within one tick
// of the file system's clock would not show: then it is listed again.
func (w *walk) sameListing(n *node, s *scratch) (bool, error) {
	id, err := w.src.statDir(n.handle)
	if err != nil || id != n.id {
		return false, err
	}
	if !n.young || w.stop.Load() {
		return true, nil
	}
	var listing uint64
	err = w.src.list(n.handle, true, s, func(name []byte, kind byte) { listing += w.fingerprint(name, kind) })
	return err == nil && listing == n.listing, err
}

// fingerprint is summed over a listing, in whatever order it comes.
func (w *walk) fingerprint(name []byte, kind byte) uint64 {
	return maphash.Bytes(w.seed, name) * (2*uint64(kind) + 1)
}

func isYoung(id identity) bool {
	return time.Now().Add(-clockGrain).UnixNano() < max(id.mtime, id.ctime)
}

// readChunk reads every entry of a chunk but the directories.
func (w *walk) readChunk(n *node, chunk []entry, s *scratch) {
	w.src.prefetch(n.handle, chunk, s)
	for i := range chunk {
		if w.stop.Load() {
			return
		}
		e := &chunk[i]
		if e.kind == KindDir || e.refusal != nil {
			continue
		}
		// A link is read even then: one that stands before the refusal may lead
		// through it.
		if e.kind == KindFile && w.moot(e.path) {
			continue
		}
		if e.refusal = w.readEntry(n, e, s); e.refusal != nil {
			w.refusedFrom(e.path)
		}
	}
}

func (w *walk) readEntry(n *node, e *entry, s *scratch) *coded.Error {
	switch e.kind {
	case KindFile:
		return w.readFile(n, e, s)
	case KindLink:
		text, err := w.src.readLink(n.handle, e.raw, s)
		if err != nil {
			return refuse(codeOf(err), e.path, err)
		}
		e.target = text
		return nil
	}
	// Decided by the listing, before any open (spec/artifact-digest.md 5).
	return refuse(CodeSpecialFile, e.path, nil)
}

// readFile hashes a file, unless a stat cache knows it.
func (w *walk) readFile(n *node, e *entry, s *scratch) *coded.Error {
	if w.reuse != nil && w.reuse.knows(w, n, e, s) {
		w.bytes.Add(e.id.size)
		return nil
	}
	f, before, err := w.src.openFile(n.handle, e.raw, s)
	if err != nil {
		return refuse(codeOf(err), e.path, err)
	}
	defer w.src.closeFile(f)
	if before.kind() != KindFile {
		return refuse(CodeChanged, e.path, nil)
	}
	e.id = before
	if before.size > w.limits.FileBytes {
		return refuse(CodeFileTooLarge, e.path, nil)
	}
	if w.bytes.Add(before.size) > w.limits.TreeBytes {
		// Which path is refused is decided in path order; sizes are enough for that.
		return nil
	}
	size, err := w.hashFile(f, e, s)
	if err != nil {
		return refuse(CodeUnreadable, e.path, err)
	}
	w.hook("read", e.path)
	after, err := w.src.statFile(f)
	if err != nil || after != before || size != before.size {
		return refuse(CodeChanged, e.path, err)
	}
	e.hashed = true
	if w.reuse != nil {
		e.trusted = w.reuse.settled(w, e.id)
	}
	return nil
}

// hashFile reads to the end of f. A read that fills less than the buffer and
// reaches the size that the file had is the end: one system call less a file,
// and the identity is compared afterwards anyway.
func (w *walk) hashFile(f file, e *entry, s *scratch) (int64, error) {
	buf := s.buffer()
	n, err := w.src.read(f, buf, 0)
	if err != nil {
		return 0, err
	}
	if n < len(buf) && int64(n) == e.id.size {
		e.sum = sha256.Sum256(buf[:n])
		return int64(n), nil
	}
	h, size := sha256.New(), int64(0)
	for n > 0 && size <= e.id.size {
		h.Write(buf[:n])
		size += int64(n)
		if w.stop.Load() {
			return size, context.Cause(w.ctx)
		}
		if n, err = w.src.read(f, buf, size); err != nil {
			return size, err
		}
	}
	h.Sum(e.sum[:0])
	return size, nil
}

// refuseEarly refuses what keeps the tree from being put in path order at all: a
// directory that cannot be listed, a name that is no UTF-8, a path too long.
// They come before every other refusal, the first in order of raw paths.
func (w *walk) refuseEarly(code, path string, cause error) {
	w.quiet.Store(true)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.early == nil || path < w.earlyRaw {
		w.early, w.earlyRaw = refuse(code, path, cause), path
	}
}

func (w *walk) refusedFrom(path string) {
	for {
		first := w.refusedAt.Load()
		if first != nil && *first <= path {
			return
		}
		if w.refusedAt.CompareAndSwap(first, &path) {
			return
		}
	}
}

// moot reports whether an entry need not be read, because the tree is refused
// whatever it holds.
func (w *walk) moot(path string) bool {
	if w.quiet.Load() {
		return true
	}
	first := w.refusedAt.Load()
	return first != nil && strings.Compare(path, *first) > 0
}

const progressEvery = 50 * time.Millisecond

func (w *walk) report(last bool) {
	if w.opts.Progress == nil {
		return
	}
	if !last && !w.progressMu.TryLock() {
		return
	}
	if last {
		w.progressMu.Lock()
	}
	defer w.progressMu.Unlock()
	if now := time.Now(); last || now.Sub(w.lastProgress) >= progressEvery {
		w.lastProgress = now
		w.opts.Progress(Progress{Entries: int(w.entries.Load()), Bytes: w.bytes.Load()})
	}
}

func (w *walk) hook(moment, path string) {
	if w.opts.hook != nil {
		w.opts.hook(moment, path)
	}
}

// kindUnknown is listed where the file system does not say what an entry is.
const kindUnknown byte = '?'

// cString returns name in s with the NUL that the kernel wants.
func (s *scratch) cString(name string) *byte {
	s.name = append(append(s.name[:0], name...), 0)
	return &s.name[0]
}

// trimNUL returns b up to its first NUL.
func trimNUL(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}
