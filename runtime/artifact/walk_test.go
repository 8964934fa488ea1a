package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"sallyport/internal/coded"
)

// Sizes around the read buffer, where an end of file may be missed.
func TestEverySizeIsReadToItsEnd(t *testing.T) {
	root := t.TempDir()
	sizes := []int{0, 1, 4095, 4096, readBuffer - 1, readBuffer, readBuffer + 1, 2*readBuffer - 1, 2 * readBuffer, 2*readBuffer + 1}
	for _, size := range sizes {
		write(t, root, fmt.Sprint(size), string(bytes.Repeat([]byte("x"), size)), 0o644)
	}
	for name, opts := range implementations() {
		for _, leaf := range mustTree(t, root, opts).Leaves {
			data, err := os.ReadFile(filepath.Join(root, leaf.Path))
			if err != nil {
				t.Fatal(err)
			}
			if leaf.Size != int64(len(data)) || leaf.Sum != sha256.Sum256(data) {
				t.Errorf("%s: %s bytes give size %d and another sum", name, leaf.Path, leaf.Size)
			}
		}
	}
}

// stoppedClock is a file system on which no change of a directory shows in its
// times, as within one tick of a coarse clock.
type stoppedClock struct {
	source
	frozen map[string]identity
}

func (c stoppedClock) openDir(parent handle, name string, s *scratch) (handle, identity, error) {
	h, id, err := c.source.openDir(parent, name, s)
	c.frozen[fmt.Sprint(h)] = id
	return h, id, err
}

func (c stoppedClock) statDir(dir handle) (identity, error) {
	if id, ok := c.frozen[fmt.Sprint(dir)]; ok {
		return id, nil
	}
	return c.source.statDir(dir)
}

func TestChangeWithinOneTickIsSeenInTheListing(t *testing.T) {
	for name, src := range map[string]source{"system": systemSource(), "portable": rootSource{}} {
		root := t.TempDir()
		write(t, root, "d/f", "x", 0o644)
		opts := Options{Workers: 1, source: stoppedClock{src, map[string]identity{}}}
		opts.hook = func(moment, path string) {
			if moment == "leaving" && path == "d" {
				write(t, root, "d/g", "", 0o644)
			}
		}
		// As young as can be, whatever the machine's pace.
		touchForward(t, filepath.Join(root, "d"))
		if code, path := refusalOf(t, root, opts); code != CodeChanged || path != "d" {
			t.Errorf("%s: got %s at %q", name, code, path)
		}
	}
}

// Refused and cancelled digests leave no goroutine and no descriptor behind.
func TestNothingStaysOpen(t *testing.T) {
	defer goleak.VerifyNone(t)
	root := t.TempDir()
	for i := range 100 {
		write(t, root, fmt.Sprintf("a%d/b/c/f", i), "x", 0o644)
	}
	symlink(t, "nope", filepath.Join(root, "a50", "bad"))
	for name, opts := range implementations() {
		before := openDescriptors(t)
		if code, _ := refusalOf(t, root, opts); code != CodeSymlinkDangling {
			t.Errorf("%s: got %s", name, code)
		}
		limited := opts
		limited.Limits.Entries = 50
		if code, _ := refusalOf(t, root, limited); code != CodeTooManyEntries {
			t.Errorf("%s: got %s", name, code)
		}
		ctx, cancel := context.WithCancel(context.Background())
		opts.hook = func(moment, _ string) {
			if moment == "read" {
				cancel()
			}
		}
		if _, err := Of(ctx, root, opts); coded.Of(err) != "" || err == nil {
			t.Errorf("%s: got %v", name, err)
		}
		if after := openDescriptors(t); after > before {
			t.Errorf("%s: %d descriptors, %d before", name, after, before)
		}
	}
}

// openDescriptors counts them where the system lists them, and is 0 elsewhere.
func openDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}
