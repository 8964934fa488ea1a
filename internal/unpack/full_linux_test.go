package unpack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/coded"
)

// Mounting a small disk takes root; everybody else has the refusals above.
func TestAFullDiskIsSaidAndLeavesNothing(t *testing.T) {
	parent := parentOf(t)
	if err := unix.Mount("tmpfs", parent, "tmpfs", 0, "size=1m"); err != nil {
		t.Logf("no tmpfs here (%v)", err)
		return
	}
	defer unix.Unmount(parent, unix.MNT_DETACH)
	content := strings.Repeat("0123456789abcdef", 40_000)
	a := archive{parts: []part{{name: "a/x", content: content, stored: true}, {name: "a/y", content: content, stored: true}}}
	_, err := unzip(t, parent, a.bytes(), Options{})
	if coded.Of(err) != "disk-full" || strings.Contains(err.Error(), parent) {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(parent); len(left) != 0 {
		t.Errorf("%s was left behind", filepath.Base(left[0].Name()))
	}
}
