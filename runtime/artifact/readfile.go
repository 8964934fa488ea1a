package artifact

import (
	"context"
	"crypto/sha256"

	"sallyport/internal/coded"
)

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
