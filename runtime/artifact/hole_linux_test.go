package artifact

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A store through a shared mapping whose page is dirty already moves no time: no
// stat cache can see it. The full digest does, which is why a start needs one.
func TestStoreThroughASharedMappingIsSeenByAFullDigest(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a", "0000", 0o644)
	f, err := os.OpenFile(filepath.Join(root, "a"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page, err := unix.Mmap(int(f.Fd()), 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(page)
	page[0] = '1'
	before := mustDigest(t, root)
	stat, _ := f.Stat()
	page[0] = '2'
	again, _ := f.Stat()
	if identityOf(stat) != identityOf(again) {
		t.Log("this file system shows the store in the times")
	}
	for name, opts := range implementations() {
		if got := mustTree(t, root, opts).Digest; got == before {
			t.Errorf("%s: not seen", name)
		}
	}
}

// The cache narrows the hole: it syncs before it digests, so that the page is
// clean and the next store moves ctime.
func TestStoreAfterTheCacheWasMadeIsSeen(t *testing.T) {
	c := newCached(t)
	if !c.settle(t) {
		return
	}
	f, err := os.OpenFile(filepath.Join(c.root, "lib/a.js"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page, err := unix.Mmap(int(f.Fd()), 0, 3, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(page)
	page[0] = '1'
	c.settle(t)
	page[0] = '2'
	if tree, err := c.cache.Tree(context.Background(), c.root); err != nil || tree.Digest != mustDigest(t, c.root) {
		t.Errorf("not seen (%v)", err)
	}
}
