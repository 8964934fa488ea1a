package artifact

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"sallyport/internal/coded"
)

// cached is a tree, its cache, and how many files the last call read.
type cached struct {
	root  string
	cache *Cache
	reads int
}

func newCached(t *testing.T) *cached {
	t.Helper()
	c := &cached{root: plainTree(t)}
	opts := Options{Workers: 1, hook: func(moment, _ string) {
		if moment == "read" {
			c.reads++
		}
	}}
	var err error
	if c.cache, err = OpenCache(CacheConfig{KeepSmall: true, Dir: filepath.Join(t.TempDir(), "cache"), Options: opts}); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cached) tree(t *testing.T) *Tree {
	t.Helper()
	c.reads = 0
	tree, err := c.cache.Tree(context.Background(), c.root)
	if err != nil {
		t.Fatal(err)
	}
	if want := mustDigest(t, c.root); tree.Digest != want {
		t.Fatalf("cache gives %s, the tree is %s", tree.Digest, want)
	}
	return tree
}

// settle asks until the tree is old enough to be trusted. It returns false where
// the file system is one that is never trusted.
func (c *cached) settle(t *testing.T) bool {
	t.Helper()
	if !cacheable(c.root) {
		c.tree(t)
		if c.tree(t); c.reads != 2 {
			t.Errorf("%d files were read on a file system without trust", c.reads)
		}
		return false
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(clockGrain / 4) {
		if c.tree(t); c.reads == 0 {
			return true
		}
		if time.Now().After(deadline) {
			t.Fatal("the cache never settled")
		}
	}
}

func TestUnchangedTreeIsNotReadAgain(t *testing.T) {
	c := newCached(t)
	if !c.settle(t) {
		return
	}
	want := mustTree(t, c.root, Options{})
	got := c.tree(t)
	if c.reads != 0 || got.Files != want.Files || got.Bytes != want.Bytes || len(Compare(got.Leaves, want.Leaves)) > 0 {
		t.Errorf("read %d files, got %+v, want %+v", c.reads, got, want)
	}
}

func TestChangesAreSeenThroughTheCache(t *testing.T) {
	at := func(c *cached, p string) string { return filepath.Join(c.root, p) }
	changes := map[string]func(c *cached) error{
		"a byte, with the old time put back": func(c *cached) error {
			info, err := os.Stat(at(c, "lib/a.js"))
			if err != nil {
				return err
			}
			if err := os.WriteFile(at(c, "lib/a.js"), []byte("TWO"), 0o644); err != nil {
				return err
			}
			return os.Chtimes(at(c, "lib/a.js"), info.ModTime(), info.ModTime())
		},
		"a new file":  func(c *cached) error { return os.WriteFile(at(c, "lib/new"), nil, 0o644) },
		"a lost file": func(c *cached) error { return os.Remove(at(c, "lib/b.js")) },
		"a mode":      func(c *cached) error { return os.Chmod(at(c, "lib/b.js"), 0o755) },
		"two swapped": func(c *cached) error {
			os.Rename(at(c, "lib/b.js"), at(c, "t"))
			os.Rename(at(c, "lib/a.js"), at(c, "lib/b.js"))
			return os.Rename(at(c, "t"), at(c, "lib/a.js"))
		},
		"a file replaced by another of the same name": func(c *cached) error {
			os.WriteFile(at(c, "t"), []byte("TWO"), 0o644)
			return os.Rename(at(c, "t"), at(c, "lib/a.js"))
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			onlyWithModes(t)
			c := newCached(t)
			c.settle(t)
			before := c.tree(t).Digest
			if err := change(c); err != nil {
				t.Fatal(err)
			}
			if c.tree(t).Digest == before { // and c.tree compares with a full digest
				t.Error("not seen")
			}
			c.settle(t)
		})
	}
}

func TestDamagedCacheFileIsIgnored(t *testing.T) {
	damages := map[string]func(b []byte) []byte{
		"a sum in it": func(b []byte) []byte { b[len(b)-10] ^= 1; return b },
		"its magic":   func(b []byte) []byte { b[0] ^= 1; return b },
		"cut short":   func(b []byte) []byte { return b[:len(b)/2] },
		"empty":       func([]byte) []byte { return nil },
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			c := newCached(t)
			if !c.settle(t) {
				return
			}
			root, err := resolveRoot(c.root)
			if err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(c.cache.file(root))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(c.cache.file(root), damage(data), 0o600); err != nil {
				t.Fatal(err)
			}
			if c.tree(t); c.reads != 2 {
				t.Errorf("%d files read, want both", c.reads)
			}
			if c.tree(t); c.reads != 0 {
				t.Error("not mended")
			}
		})
	}
}

func TestCacheOfAnotherTreeIsIgnored(t *testing.T) {
	one, two := newCached(t), newCached(t)
	if !one.settle(t) {
		return
	}
	a, _ := resolveRoot(one.root)
	b, _ := resolveRoot(two.root)
	data, err := os.ReadFile(one.cache.file(a))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(two.cache.file(b), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if two.tree(t); two.reads != 2 {
		t.Errorf("%d files read, want both", two.reads)
	}
}

func TestForgottenTreeIsReadAgain(t *testing.T) {
	c := newCached(t)
	if !c.settle(t) {
		return
	}
	if err := c.cache.Forget(c.root); err != nil {
		t.Fatal(err)
	}
	if c.tree(t); c.reads != 2 {
		t.Errorf("%d files read, want both", c.reads)
	}
}

func TestCollectForgetsTreesThatAreGone(t *testing.T) {
	c := newCached(t)
	if !c.settle(t) {
		return
	}
	write(t, c.cache.config.Dir, tempPrefix+"killed", "half", 0o600)
	if err := c.cache.Collect([]string{c.root}); err != nil {
		t.Fatal(err)
	}
	if c.tree(t); c.reads != 0 {
		t.Error("forgot a tree that is still there")
	}
	if err := c.cache.Collect(nil); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(c.cache.config.Dir); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// The racy case of git's index: an entry changed at or behind the moment the
// digest began might change again without its times moving.
func TestYoungEntriesAreNotTrusted(t *testing.T) {
	w := &walk{root: &node{id: identity{dev: 1}}}
	r := &reuse{t0: 100}
	tests := []struct {
		name    string
		id      identity
		trusted bool
	}{
		{"older", identity{dev: 1, mtime: 99, ctime: 99}, true},
		{"mtime at t0", identity{dev: 1, mtime: 100, ctime: 99}, false},
		{"ctime at t0", identity{dev: 1, mtime: 99, ctime: 100}, false},
		{"mtime in the future", identity{dev: 1, mtime: 1 << 60, ctime: 99}, false},
		{"on another file system", identity{dev: 2, mtime: 99, ctime: 99}, false},
	}
	for _, test := range tests {
		if got := r.settled(w, test.id); got != test.trusted {
			t.Errorf("%s: trusted is %v", test.name, got)
		}
	}
	if (&reuse{}).settled(w, identity{dev: 1}) {
		t.Error("trusted without a moment t0")
	}
}

func TestRefusalsComeThroughTheCache(t *testing.T) {
	c := newCached(t)
	c.settle(t)
	symlink(t, "nope", filepath.Join(c.root, "bad"))
	if _, err := c.cache.Tree(context.Background(), c.root); coded.Of(err) != CodeSymlinkDangling {
		t.Errorf("got %v", err)
	}
	if _, err := c.cache.Tree(context.Background(), c.root+"-missing"); coded.Of(err) != CodeNotADirectory {
		t.Errorf("got %v", err)
	}
}

func TestMemoryFileSystemsAreNotTrusted(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("/dev/shm is Linux's")
	}
	if _, err := os.Stat("/dev/shm"); err == nil && cacheable("/dev/shm") {
		t.Error("tmpfs is trusted")
	}
	if cacheable("/proc") {
		t.Error("procfs is trusted")
	}
}

func TestASmallTreeIsDigestedAndNotCached(t *testing.T) {
	dir, caches := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	cache, err := OpenCache(CacheConfig{Dir: caches})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		tree, err := cache.Tree(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if want, err := Of(t.Context(), dir, Options{}); err != nil || tree.Digest != want.Digest {
			t.Fatalf("the cache says %s, not %s (%v)", tree.Digest, want.Digest, err)
		}
	}
	if files, err := os.ReadDir(caches); err != nil || len(files) != 0 {
		t.Errorf("the cache keeps %d files (%v)", len(files), err)
	}
}
