package artifact

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"sallyport/internal/coded"
)

// fixture is a source tree with its digest, and a snapshots folder.
type fixture struct {
	source    string
	digest    Digest
	snapshots *Snapshots
}

func newFixture(t *testing.T, opts Options) *fixture {
	t.Helper()
	f := &fixture{source: filepath.Join(t.TempDir(), "source")}
	write(t, f.source, "bin/run", "#!/bin/sh\n", 0o755)
	write(t, f.source, "lib/deep/code.js", "let a = 1\n", 0o644)
	write(t, f.source, "README", "hello", 0o666)
	symlink(t, "../lib/deep/code.js", filepath.Join(f.source, "bin", "link"))
	if err := os.Mkdir(filepath.Join(f.source, "empty"), 0o777); err != nil {
		t.Fatal(err)
	}
	f.digest = mustDigest(t, f.source)
	dir := filepath.Join(t.TempDir(), "snapshots")
	t.Cleanup(func() { removeTree(dir) })
	var err error
	if f.snapshots, err = OpenSnapshots(dir, opts); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) stage(t *testing.T) Snapshot {
	t.Helper()
	s, err := f.snapshots.Stage(context.Background(), f.source, f.digest)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// names returns what is in the snapshots folder.
func (f *fixture) names(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(f.snapshots.dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestSnapshotHasTheDigestThatWasAskedAbout(t *testing.T) {
	f := newFixture(t, Options{})
	s := f.stage(t)
	if s.Tree.Digest != f.digest || mustDigest(t, s.Dir) != f.digest {
		t.Errorf("snapshot gives %s, want %s", s.Tree.Digest, f.digest)
	}
	verified, err := f.snapshots.Verify(context.Background(), f.digest)
	if err != nil || verified.Dir != s.Dir {
		t.Errorf("got %v, %v", verified.Dir, err)
	}
	leaves, err := f.snapshots.Leaves(f.digest)
	if err != nil || DigestOf(leaves) != f.digest {
		t.Errorf("stored leaves: %v", err)
	}
}

func TestSnapshotIsOwnerOnlyAndReadOnly(t *testing.T) {
	onlyWithModes(t)
	f := newFixture(t, Options{})
	s := f.stage(t)
	want := map[string]fs.FileMode{
		".": 0o500, "bin": 0o500, "lib": 0o500, "empty": 0o500,
		"bin/run": 0o500, "README": 0o400, "lib/deep/code.js": 0o400,
	}
	for path, mode := range want {
		info, err := os.Lstat(filepath.Join(s.Dir, path))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v, want %v (%v)", path, info.Mode(), mode, err)
		}
	}
	if info, _ := os.Stat(f.snapshots.dir); info.Mode().Perm() != 0o700 {
		t.Errorf("snapshots folder has mode %v", info.Mode())
	}
}

func TestSnapshotKeepsCountedModeBits(t *testing.T) {
	onlyWithModes(t)
	f := newFixture(t, Options{})
	if err := chmodExact(filepath.Join(f.source, "bin/run"), 0o5755); err != nil {
		t.Fatal(err)
	}
	f.digest = mustDigest(t, f.source)
	f.stage(t)
}

func TestWritingToTheSourceDoesNotReachTheSnapshot(t *testing.T) {
	f := newFixture(t, Options{})
	s := f.stage(t)
	// In place, as a hard link would let through.
	for _, path := range []string{"README", "bin/run", "lib/deep/code.js"} {
		file, err := os.OpenFile(filepath.Join(f.source, path), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		file.WriteString("HACK!")
		file.Close()
		source, _ := os.Stat(filepath.Join(f.source, path))
		copied, err := os.Stat(filepath.Join(s.Dir, path))
		if err != nil || os.SameFile(source, copied) {
			t.Errorf("%s is one file with the source's (%v)", path, err)
		}
	}
	if _, err := f.snapshots.Verify(context.Background(), f.digest); err != nil {
		t.Error(err)
	}
}

func TestSourceThatChangedSinceItWasAskedAboutIsNotStaged(t *testing.T) {
	changes := map[string]func(dir string) error{
		"a byte":       func(dir string) error { return os.WriteFile(filepath.Join(dir, "README"), []byte("hellO"), 0o644) },
		"a new file":   func(dir string) error { return os.WriteFile(filepath.Join(dir, "payload.py"), nil, 0o644) },
		"a lost file":  func(dir string) error { return os.Remove(filepath.Join(dir, "README")) },
		"a bad link":   func(dir string) error { return os.Symlink("/etc", filepath.Join(dir, "etc")) },
		"no more root": os.RemoveAll,
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, Options{})
			if err := change(f.source); err != nil {
				t.Fatal(err)
			}
			_, err := f.snapshots.Stage(context.Background(), f.source, f.digest)
			if coded.Of(err) != CodeChangedSinceAsked {
				t.Errorf("got %v", err)
			}
			if left := f.names(t); len(left) != 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}

// C50: the file is swapped between the digest and the start.
func TestSourceThatChangesWhileItIsCopiedIsNotStaged(t *testing.T) {
	f := newFixture(t, Options{Workers: 1})
	f.snapshots.opts.hook = func(moment, path string) {
		if moment == "copying" && path == "README" {
			os.WriteFile(filepath.Join(f.source, path), []byte("swap!"), 0o644)
		}
	}
	_, err := f.snapshots.Stage(context.Background(), f.source, f.digest)
	var refusal *coded.Error
	if !errors.As(err, &refusal) || refusal.Code != CodeChangedSinceAsked {
		t.Fatalf("got %v", err)
	}
	if left := f.names(t); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

func TestDamagedSnapshotIsReportedAndDiscarded(t *testing.T) {
	damages := map[string]func(dir string) error{
		"a byte": func(dir string) error {
			os.Chmod(filepath.Join(dir, "README"), 0o600)
			return os.WriteFile(filepath.Join(dir, "README"), []byte("hellO"), 0o600)
		},
		"an added file": func(dir string) error {
			os.Chmod(dir, 0o700)
			return os.WriteFile(filepath.Join(dir, "x.pyc"), nil, 0o600)
		},
		"a lost file": func(dir string) error {
			os.Chmod(dir, 0o700)
			return os.Remove(filepath.Join(dir, "README"))
		},
		"a link in its place": func(dir string) error {
			os.Rename(dir, dir+"-moved")
			return os.Symlink(filepath.Base(dir)+"-moved", dir)
		},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, Options{})
			s := f.stage(t)
			if err := damage(s.Dir); err != nil {
				t.Fatal(err)
			}
			if _, err := f.snapshots.Verify(context.Background(), f.digest); coded.Of(err) != CodeSnapshotDamaged {
				t.Fatalf("got %v", err)
			}
			if _, err := f.snapshots.Verify(context.Background(), f.digest); coded.Of(err) != CodeSnapshotMissing {
				t.Errorf("after that got %v", err)
			}
			if _, err := f.snapshots.Leaves(f.digest); err != nil {
				t.Errorf("the leaf list went with it: %v", err)
			}
			if again := f.stage(t); again.Tree.Digest != f.digest {
				t.Error("not rebuilt from good bytes")
			}
		})
	}
}

func TestDamageNamesTheFile(t *testing.T) {
	f := newFixture(t, Options{})
	s := f.stage(t)
	path := filepath.Join(s.Dir, "lib/deep/code.js")
	os.Chmod(path, 0o600)
	if err := os.WriteFile(path, []byte("let a = 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := f.snapshots.Verify(context.Background(), f.digest)
	if err == nil || !strings.Contains(err.Error(), "lib/deep/code.js") || strings.Contains(err.Error(), s.Dir) {
		t.Errorf("got %v", err)
	}
}

func TestStagingAgainReusesWhatVerifies(t *testing.T) {
	f := newFixture(t, Options{})
	first := f.stage(t)
	before, _ := os.Stat(first.Dir)
	os.RemoveAll(f.source) // C51: the bundle is gone, the approved bytes are not
	second := f.stage(t)
	after, _ := os.Stat(second.Dir)
	if !os.SameFile(before, after) {
		t.Error("copied again")
	}
}

func TestDamagedSnapshotIsReplacedByStage(t *testing.T) {
	f := newFixture(t, Options{})
	s := f.stage(t)
	os.Chmod(s.Dir, 0o700)
	if err := os.Remove(filepath.Join(s.Dir, "README")); err != nil {
		t.Fatal(err)
	}
	f.stage(t)
	if _, err := f.snapshots.Verify(context.Background(), f.digest); err != nil {
		t.Error(err)
	}
}

func TestInterruptedStagingApprovesNothing(t *testing.T) {
	f := newFixture(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	f.snapshots.opts.hook = func(moment, _ string) {
		if moment == "copying" {
			cancel()
		}
	}
	if _, err := f.snapshots.Stage(ctx, f.source, f.digest); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if left := f.names(t); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	if _, err := f.snapshots.Verify(context.Background(), f.digest); coded.Of(err) != CodeSnapshotMissing {
		t.Errorf("got %v", err)
	}
}

// A process that died while staging leaves a folder that no digest names.
func TestCollectRemovesWhatNothingNeeds(t *testing.T) {
	f := newFixture(t, Options{})
	kept := f.digest
	f.stage(t)
	write(t, f.source, "v2", "2", 0o644)
	f.digest = mustDigest(t, f.source)
	f.stage(t)
	write(t, f.snapshots.dir, "staging-123/dir/file", "half", 0o644)
	os.Chmod(filepath.Join(f.snapshots.dir, "staging-123/dir"), 0o500)
	write(t, f.snapshots.dir, "staging-123.leaves", "half", 0o600)
	write(t, f.snapshots.dir, "notes.txt", "not ours", 0o644)

	removed, err := f.snapshots.Collect(context.Background(), map[Digest]bool{kept: true})
	if err != nil || removed != 1 {
		t.Errorf("removed %d, %v", removed, err)
	}
	want := []string{kept.folder(), kept.folder() + ".leaves", "notes.txt"}
	if got := f.names(t); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("left %v, want %v", got, want)
	}
	if _, err := f.snapshots.Verify(context.Background(), kept); err != nil {
		t.Error(err)
	}
}

func TestCollectLeavesAloneWhatIsBeingStaged(t *testing.T) {
	f := newFixture(t, Options{Workers: 1})
	f.snapshots.opts.hook = func(moment, path string) {
		if moment == "copying" && path == "README" {
			if _, err := f.snapshots.Collect(context.Background(), nil); err != nil {
				t.Error(err)
			}
		}
	}
	f.stage(t)
}

func TestCancelledVerifyDiscardsNothing(t *testing.T) {
	f := newFixture(t, Options{})
	f.stage(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := f.snapshots.Verify(ctx, f.digest); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := f.snapshots.Verify(context.Background(), f.digest); err != nil {
		t.Error(err)
	}
}

func TestForgedLeafListIsNotUsed(t *testing.T) {
	f := newFixture(t, Options{})
	s := f.stage(t)
	forged := append([]Leaf{}, s.Tree.Leaves...)
	forged[0].Path += "x"
	if err := os.WriteFile(s.Dir+".leaves", EncodeLeaves(forged), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.snapshots.Leaves(f.digest); err == nil {
		t.Error("accepted")
	}
}

func TestLimitsHoldForCopies(t *testing.T) {
	f := newFixture(t, Options{})
	for name, limits := range map[string]Limits{"entries": {Entries: 3}, "file": {FileBytes: 4}, "tree": {TreeBytes: 12}} {
		f.snapshots.opts.Limits = limits
		if _, err := f.snapshots.Stage(context.Background(), f.source, f.digest); coded.Of(err) != CodeChangedSinceAsked {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestManyStartsAtOnce(t *testing.T) {
	f := newFixture(t, Options{})
	var group errgroup.Group
	for i := range 12 {
		group.Go(func() error {
			if i%3 == 0 {
				_, err := f.snapshots.Collect(context.Background(), map[Digest]bool{f.digest: true})
				return err
			}
			if _, err := f.snapshots.Stage(context.Background(), f.source, f.digest); err != nil {
				return err
			}
			_, err := f.snapshots.Verify(context.Background(), f.digest)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	if got := len(f.names(t)); got != 2 {
		t.Errorf("left %v", f.names(t))
	}
}
