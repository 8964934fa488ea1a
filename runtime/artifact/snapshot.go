package artifact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"sallyport/internal/coded"
)

// Snapshots keeps private copies of trees under their digests (spec/approval.md
// 5.2, spec/artifact-digest.md 7.3):
//
//	a1-<hex>/        the tree, owner-only and read-only
//	a1-<hex>.leaves  its leaf list (EncodeLeaves)
//	staging-*        a copy being made
//	discard-*        a copy being removed
//
// A folder has its digest's name only after its own bytes gave that digest. That
// the files are read-only keeps programs from writing by mistake; what protects
// a start is Verify. A Snapshots is safe for concurrent use in one process.
type Snapshots struct {
	dir  string
	opts Options

	mu     sync.Mutex
	locks  map[Digest]*sync.RWMutex
	active map[string]bool // staging folders in use
}

// Snapshot is an approved copy on disk. Nothing may be written below Dir.
type Snapshot struct {
	Dir  string
	Tree *Tree
}

const (
	stagingPrefix = "staging-"
	discardPrefix = "discard-"
	leavesSuffix  = ".leaves"
)

// OpenSnapshots opens the folder dir, making it owner-only.
func OpenSnapshots(dir string, opts Options) (*Snapshots, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot open the snapshots folder: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the snapshots folder private: %w", err)
	}
	return &Snapshots{dir: dir, opts: opts, locks: map[Digest]*sync.RWMutex{}, active: map[string]bool{}}, nil
}

// Verify digests the snapshot of d again, every byte of it, as must be done
// before every start. A snapshot that no longer gives d is moved away and
// removed, and the error has CodeSnapshotDamaged; CodeSnapshotMissing says that
// there is none.
func (s *Snapshots) Verify(ctx context.Context, d Digest) (Snapshot, error) {
	if !d.Valid() {
		return Snapshot{}, refuse(CodeSnapshotMissing, "", nil)
	}
	lock := s.lock(d)
	lock.RLock()
	snapshot, err := s.check(ctx, d)
	lock.RUnlock()
	if coded.Of(err) != CodeSnapshotDamaged {
		return snapshot, err
	}
	lock.Lock()
	defer lock.Unlock()
	// Another call may have put a good one in its place since.
	again, err2 := s.check(ctx, d)
	switch coded.Of(err2) {
	case CodeSnapshotDamaged:
		return Snapshot{}, errors.Join(err, s.discard(s.path(d)))
	case CodeSnapshotMissing:
		return Snapshot{}, err
	}
	return again, err2
}

// check digests the snapshot of d, and discards nothing.
func (s *Snapshots) check(ctx context.Context, d Digest) (Snapshot, error) {
	info, err := os.Lstat(s.path(d))
	if errors.Is(err, os.ErrNotExist) {
		return Snapshot{}, refuse(CodeSnapshotMissing, "", nil)
	}
	if err != nil {
		return Snapshot{}, fmt.Errorf("cannot look at snapshot %q: %w", d.Short(), err)
	}
	if !info.IsDir() { // a link would lead to bytes that others may write
		return Snapshot{}, refuse(CodeSnapshotDamaged, "", nil)
	}
	tree, err := Of(ctx, s.path(d), s.opts)
	switch {
	case err != nil && isOurTrouble(err):
		return Snapshot{}, fmt.Errorf("cannot digest snapshot %q: %w", d.Short(), err)
	case err != nil:
		return Snapshot{}, &coded.Error{
			Code: CodeSnapshotDamaged, Sentence: refuse(CodeSnapshotDamaged, "", nil).Sentence,
			Next: refuse(CodeSnapshotDamaged, "", nil).Next, Path: pathOf(err), Err: err,
		}
	case tree.Digest != d:
		return Snapshot{}, refuse(CodeSnapshotDamaged, s.firstDifference(d, tree), nil)
	}
	return Snapshot{Dir: s.path(d), Tree: tree}, nil
}

// isOurTrouble reports whether a digest failed for a reason that says nothing
// about the tree: the call was given up, or the process is short of something.
func isOurTrouble(err error) bool {
	for _, ours := range []error{context.Canceled, context.DeadlineExceeded, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, ours) {
			return true
		}
	}
	return coded.Of(err) == ""
}

func pathOf(err error) string {
	var refusal *coded.Error
	if errors.As(err, &refusal) {
		return refusal.Path
	}
	return ""
}

// firstDifference names the first path that differs from the stored leaf list.
func (s *Snapshots) firstDifference(d Digest, found *Tree) string {
	leaves, err := s.Leaves(d)
	if err != nil {
		return ""
	}
	for _, change := range Compare(leaves, found.Leaves) {
		return change.Path
	}
	return ""
}

// Leaves returns the leaf list stored with a snapshot, checked against d. It may
// outlive the snapshot, so that a damaged one can still be compared with.
func (s *Snapshots) Leaves(d Digest) ([]Leaf, error) {
	if !d.Valid() {
		return nil, refuse(CodeSnapshotMissing, "", nil)
	}
	data, err := os.ReadFile(s.path(d) + leavesSuffix)
	if errors.Is(err, os.ErrNotExist) {
		return nil, refuse(CodeSnapshotMissing, "", nil)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the leaf list of %q: %w", d.Short(), err)
	}
	leaves, err := DecodeLeaves(data)
	if err != nil {
		return nil, fmt.Errorf("cannot read the leaf list of %q: %w", d.Short(), err)
	}
	if DigestOf(leaves) != d {
		return nil, fmt.Errorf("cannot use the leaf list of %q: %w", d.Short(), errLeaves)
	}
	return leaves, nil
}

func (s *Snapshots) path(d Digest) string { return filepath.Join(s.dir, d.folder()) }

// lock returns the lock of one digest: readers digest, a writer moves folders.
func (s *Snapshots) lock(d Digest) *sync.RWMutex {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks[d] == nil {
		s.locks[d] = &sync.RWMutex{}
	}
	return s.locks[d]
}

// discard takes a folder out of its place before removing it, so that no half
// of it is ever found there.
func (s *Snapshots) discard(path string) error {
	aside, err := os.MkdirTemp(s.dir, discardPrefix)
	if err != nil {
		return fmt.Errorf("cannot discard a snapshot: %w", err)
	}
	// A read-only folder may be renamed only within its parent.
	if err := os.Remove(aside); err != nil {
		return fmt.Errorf("cannot discard a snapshot: %w", err)
	}
	if err := os.Rename(path, aside); err != nil {
		return fmt.Errorf("cannot discard a snapshot: %w", err)
	}
	return removeTree(aside)
}

// Collect removes every snapshot and leaf list whose digest keep does not hold,
// and what interrupted calls have left. It returns the number of snapshots
// removed. The digests of running servers and of decisions being made must be in
// keep.
func (s *Snapshots) Collect(ctx context.Context, keep map[Digest]bool) (removed int, err error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return 0, fmt.Errorf("cannot list the snapshots: %w", err)
	}
	var failures []error
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return removed, errors.Join(append(failures, err)...)
		}
		gone, err := s.collect(e.Name(), keep)
		if gone {
			removed++
		}
		failures = append(failures, err)
	}
	return removed, errors.Join(failures...)
}

// collect removes one entry of the folder if nothing needs it. What has no name
// of ours is left alone.
func (s *Snapshots) collect(name string, keep map[Digest]bool) (snapshot bool, err error) {
	path := filepath.Join(s.dir, name)
	if strings.HasPrefix(name, stagingPrefix) || strings.HasPrefix(name, discardPrefix) {
		if s.isActive(name) {
			return false, nil
		}
		return false, removeTree(path)
	}
	base, isLeaves := strings.CutSuffix(name, leavesSuffix)
	d, ours := digestOfFolder(base)
	if !ours || keep[d] {
		return false, nil
	}
	lock := s.lock(d)
	lock.Lock()
	defer lock.Unlock()
	if isLeaves {
		return false, os.Remove(path)
	}
	return true, s.discard(path)
}

func (s *Snapshots) isActive(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active[strings.TrimSuffix(name, leavesSuffix)]
}
