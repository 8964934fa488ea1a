package artifact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sallyport/internal/coded"
)

// Stage makes the snapshot of want from the tree below source: it copies the
// tree to a private folder, digests the copy, and gives it its place only if its
// own bytes give want (spec/artifact-digest.md 7.3). Otherwise the error has
// CodeChangedSinceAsked and nothing is kept. A snapshot that is already there
// and verifies is used; one that is there and does not is discarded first.
func (s *Snapshots) Stage(ctx context.Context, source string, want Digest) (Snapshot, error) {
	if !want.Valid() {
		return Snapshot{}, fmt.Errorf("cannot stage a snapshot: %q is no digest", string(want))
	}
	lock := s.lock(want)
	lock.Lock()
	defer lock.Unlock()
	switch snapshot, err := s.check(ctx, want); coded.Of(err) {
	case "":
		return snapshot, err
	case CodeSnapshotDamaged:
		if err := s.discard(s.path(want)); err != nil {
			return Snapshot{}, err
		}
	}
	staging, release, err := s.newStaging()
	if err != nil {
		return Snapshot{}, err
	}
	defer release()
	tree, err := s.fillStaging(ctx, source, staging, want)
	if err == nil {
		err = s.place(staging, tree)
	}
	if err != nil {
		return Snapshot{}, errors.Join(err, removeTree(staging), removeTree(staging+leavesSuffix))
	}
	return Snapshot{Dir: s.path(want), Tree: tree}, nil
}

// newStaging makes a folder that Collect leaves alone until release.
func (s *Snapshots) newStaging() (dir string, release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir, err = os.MkdirTemp(s.dir, stagingPrefix)
	if err != nil {
		return "", nil, fmt.Errorf("cannot stage a snapshot: %w", err)
	}
	name := filepath.Base(dir)
	s.active[name] = true
	return dir, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.active, name)
	}, nil
}

// fillStaging copies source and returns the tree of the copy, which is want.
func (s *Snapshots) fillStaging(ctx context.Context, source, staging string, want Digest) (*Tree, error) {
	if err := copyTree(ctx, source, staging, s.opts); err != nil {
		return nil, changedSince(err)
	}
	tree, err := Of(ctx, staging, s.opts)
	if err != nil {
		return nil, changedSince(err)
	}
	if tree.Digest != want {
		return nil, refuse(CodeChangedSinceAsked, s.firstDifference(want, tree), nil)
	}
	return tree, nil
}

// changedSince says of a refusal of the contract that the source is not what was
// asked about: that had a digest. Our own trouble stays what it is.
func changedSince(err error) error {
	if isOurTrouble(err) {
		return fmt.Errorf("cannot stage a snapshot: %w", err)
	}
	return refuse(CodeChangedSinceAsked, pathOf(err), err)
}

// place makes a staged copy durable and gives it its name, the leaf list first:
// a snapshot without its list would be one that cannot be compared.
func (s *Snapshots) place(staging string, tree *Tree) error {
	final := s.path(tree.Digest)
	if err := os.WriteFile(staging+leavesSuffix, EncodeLeaves(tree.Leaves), 0o600); err != nil {
		return fmt.Errorf("cannot write a leaf list: %w", err)
	}
	if err := syncTree(staging); err != nil {
		return fmt.Errorf("cannot write a snapshot to disk: %w", err)
	}
	if err := os.Rename(staging+leavesSuffix, final+leavesSuffix); err != nil {
		return fmt.Errorf("cannot put a leaf list in its place: %w", err)
	}
	if err := os.Rename(staging, final); err != nil {
		return fmt.Errorf("cannot put a snapshot in its place: %w", err)
	}
	if err := syncDir(s.dir); err != nil {
		return fmt.Errorf("cannot write a snapshot to disk: %w", err)
	}
	return nil
}
