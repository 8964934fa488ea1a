package artifact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/coded"
)

func TestRefusalsByTheirPaths(t *testing.T) {
	onlyWithModes(t)
	long := strings.Repeat("n", 200)
	tests := []struct {
		name  string
		build func(t *testing.T, root string)
		opts  Options
		code  string
		path  string
	}{
		{"a root that is missing", func(t *testing.T, root string) { os.RemoveAll(root) }, Options{}, CodeNotADirectory, ""},
		{"a root that is a file", func(t *testing.T, root string) {
			os.RemoveAll(root)
			write(t, filepath.Dir(root), filepath.Base(root), "x", 0o644)
		}, Options{}, CodeNotADirectory, ""},
		{"one entry too many", func(t *testing.T, root string) {
			for i := range 40 {
				write(t, root, fmt.Sprintf("d%d/f", i), "", 0o644)
			}
		}, Options{Limits: Limits{Entries: 79}}, CodeTooManyEntries, ""},
		{"a file too large", func(t *testing.T, root string) {
			write(t, root, "a", "12345", 0o644)
			write(t, root, "b", "123456", 0o644)
		}, Options{Limits: Limits{FileBytes: 5}}, CodeFileTooLarge, "b"},
		{"a tree too large, at the file that is over", func(t *testing.T, root string) {
			for _, name := range []string{"a", "b", "c", "d"} {
				write(t, root, name, "12345", 0o644)
			}
		}, Options{Limits: Limits{TreeBytes: 14}}, CodeTreeTooLarge, "c"},
		{"a link before a tree that is too large", func(t *testing.T, root string) {
			symlink(t, "nope", filepath.Join(root, "a"))
			write(t, root, "b", "12345", 0o644)
		}, Options{Limits: Limits{TreeBytes: 4}}, CodeSymlinkDangling, "a"},
		{"the first of two in path order", func(t *testing.T, root string) {
			symlink(t, "nope", filepath.Join(root, "b"))
			write(t, root, "a/x", "", 0o644)
			makeFifo(filepath.Join(root, "a/z"))
			makeFifo(filepath.Join(root, "a-z"))
		}, Options{}, CodeSpecialFile, "a-z"},
		{"a name that is no UTF-8 before all that needs an order", func(t *testing.T, root string) {
			makeFifo(filepath.Join(root, "a"))
			write(t, root, "z\xff", "", 0o644)
		}, Options{}, CodePathEncoding, `z\xff`},
		{"a path too long", func(t *testing.T, root string) {
			t.Chdir(root) // back at the end; a path this long can only be walked down to
			for range 20 {
				if err := errors.Join(os.Mkdir(long, 0o755), os.Chdir(long)); err != nil { //nolint:usetesting // t.Chdir above goes back; each of these would ask for a path that is too long
					t.Fatal(err)
				}
			}
			if err := os.Mkdir(strings.Repeat("e", 80), 0o755); err != nil {
				t.Fatal(err)
			}
		}, Options{}, CodePathTooLong, strings.Repeat(long+"/", 20) + strings.Repeat("e", 80)},
		{"a link that leads through one that is refused later", func(t *testing.T, root string) {
			makeFifo(filepath.Join(root, "m"))
			symlink(t, "z", filepath.Join(root, "a"))
			symlink(t, "..", filepath.Join(root, "z"))
		}, Options{}, CodeSymlinkEscape, "a"},
		{"a link met on the way that is absolute", func(t *testing.T, root string) {
			symlink(t, "z/x", filepath.Join(root, "a"))
			symlink(t, "/etc", filepath.Join(root, "z"))
		}, Options{}, CodeSymlinkEscape, "a"},
		{"a link up out of a file", func(t *testing.T, root string) {
			write(t, root, "f", "", 0o644)
			symlink(t, "f/..", filepath.Join(root, "a"))
		}, Options{}, CodeSymlinkDangling, "a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "root")
			if err := os.Mkdir(root, 0o755); err != nil {
				t.Fatal(err)
			}
			test.build(t, root)
			for name, opts := range implementations() {
				opts.Limits = test.opts.Limits
				code, path := refusalOf(t, root, opts)
				if code != test.code || path != test.path {
					t.Errorf("%s: got %s at %q, want %s at %q", name, code, path, test.code, test.path)
				}
			}
		})
	}
}

func TestLimitsAreNoPartOfTheDigest(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a/b", "12345", 0o644)
	exact := mustTree(t, root, Options{Limits: Limits{Entries: 2, FileBytes: 5, TreeBytes: 5}})
	if exact.Digest != mustDigest(t, root) {
		t.Error("limits changed the digest")
	}
}

func TestRootMayBeReachedThroughALink(t *testing.T) {
	base := t.TempDir()
	write(t, base, "real/a", "x", 0o644)
	symlink(t, "real", filepath.Join(base, "link"))
	for name, opts := range implementations() {
		if got := mustTree(t, filepath.Join(base, "link"), opts).Digest; got != mustDigest(t, filepath.Join(base, "real")) {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// spec/artifact-digest.md 5: a FIFO is decided before any open. Would it be
// opened, this test would stand still.
func TestFIFONeverBlocks(t *testing.T) {
	onlyWithModes(t)
	root := t.TempDir()
	write(t, root, "a", "x", 0o644)
	if err := makeFifo(filepath.Join(root, "p")); err != nil {
		t.Fatal(err)
	}
	for name, opts := range implementations() {
		done := make(chan string, 1)
		go func() {
			_, err := Of(context.Background(), root, opts)
			done <- coded.Of(err)
		}()
		select {
		case code := <-done:
			if code != CodeSpecialFile {
				t.Errorf("%s: got %q", name, code)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: blocked", name)
		}
	}
}

func TestChangesWhileReadingAreRefused(t *testing.T) {
	onlyWithModes(t)
	changes := map[string]struct {
		moment, at string
		change     func(root string) error
		path       string
	}{
		"a file that grows while it is read": {"read", "d/f", func(root string) error {
			return appendTo(filepath.Join(root, "d/f"), "more")
		}, "d/f"},
		"a file overwritten with as many bytes": {"read", "d/f", func(root string) error {
			return os.WriteFile(filepath.Join(root, "d/f"), []byte("other"), 0o644)
		}, "d/f"},
		"a file whose mode changes": {"read", "d/f", func(root string) error {
			return os.Chmod(filepath.Join(root, "d/f"), 0o755)
		}, "d/f"},
		"a file that is gone before it is opened": {"listed", "d", func(root string) error {
			return os.Remove(filepath.Join(root, "d/f"))
		}, "d"},
		"a file replaced by a link": {"listed", "d", func(root string) error {
			os.Remove(filepath.Join(root, "d/f"))
			return os.Symlink("../g", filepath.Join(root, "d/f"))
		}, "d"},
		"a file replaced by a FIFO": {"listed", "d", func(root string) error {
			os.Remove(filepath.Join(root, "d/f"))
			return makeFifo(filepath.Join(root, "d/f"))
		}, "d"},
		"an entry added behind the listing": {"leaving", "d", func(root string) error {
			return os.WriteFile(filepath.Join(root, "d/new"), nil, 0o644)
		}, "d"},
		"a directory replaced by a link": {"listed", "", func(root string) error {
			os.Rename(filepath.Join(root, "d"), filepath.Join(root, "e"))
			return os.Symlink("e", filepath.Join(root, "d"))
		}, ""},
	}
	for name, test := range changes {
		for impl, opts := range implementations() {
			t.Run(name+"/"+impl, func(t *testing.T) {
				root := t.TempDir()
				write(t, root, "d/f", "bytes", 0o644)
				write(t, root, "g", "g", 0o644)
				done := false
				opts.hook = func(moment, path string) {
					if moment == test.moment && path == test.at && !done {
						done = true
						if err := test.change(root); err != nil {
							t.Error(err)
						}
					}
				}
				if opts.Workers == 0 {
					opts.Workers = 2
				}
				code, path := refusalOf(t, root, opts)
				if code != CodeChanged || path != test.path {
					t.Errorf("got %s at %q, want it at %q", code, path, test.path)
				}
			})
		}
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func TestCancelledDigestEnds(t *testing.T) {
	root := t.TempDir()
	for i := range 200 {
		write(t, root, fmt.Sprintf("%d/f", i), "x", 0o644)
	}
	for name, opts := range implementations() {
		ctx, cancel := context.WithCancel(context.Background())
		opts.hook = func(moment, _ string) {
			if moment == "read" {
				cancel()
			}
		}
		if _, err := Of(ctx, root, opts); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestProgressEndsAtTheWhole(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a/b", "12345", 0o644)
	var last Progress
	tree := mustTree(t, root, Options{Progress: func(p Progress) { last = p }})
	if last != (Progress{Entries: 2, Bytes: 5}) || tree.Bytes != 5 || tree.Files != 1 || tree.Dirs != 1 {
		t.Errorf("got %+v of %+v", last, tree)
	}
}

func TestRefusalNamesNoAbsolutePath(t *testing.T) {
	root := t.TempDir()
	symlink(t, "/etc/passwd", filepath.Join(root, "a"))
	_, err := Of(context.Background(), root, Options{})
	if err == nil || strings.Contains(err.Error(), root) || strings.Contains(err.Error(), "/etc") {
		t.Errorf("got %v", err)
	}
}
