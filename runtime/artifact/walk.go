package artifact

import (
	"context"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
