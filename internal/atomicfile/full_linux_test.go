package atomicfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// The same with a disk that is really full; mounting one takes root. The broken
// file above covers it for everybody else.
func TestAFullDiskLeavesTheOldFile(t *testing.T) { // C77
	folder := t.TempDir()
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "size=1m"); err != nil {
		t.Logf("no tmpfs here (%v)", err)
		return
	}
	defer unix.Unmount(folder, unix.MNT_DETACH)
	old := bytes.Repeat([]byte("old "), 5_000)
	path := filepath.Join(folder, "state.json")
	for _, free := range []int64{0, 1, 4096} {
		must(t, Write(path, old, 0o600))
		fillUp(t, filepath.Join(folder, "ballast"), free)
		err := Write(path, bytes.Repeat([]byte("new "), 5_000), 0o600)
		if !errors.Is(err, unix.ENOSPC) {
			t.Errorf("with %d bytes free: %v", free, err)
		}
		wantFile(t, path, string(old))
		must(t, os.Remove(filepath.Join(folder, "ballast")))
		wantOnly(t, path)
	}
}

func fillUp(t *testing.T, path string, free int64) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	for {
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			break
		}
	}
	info, err := f.Stat()
	must(t, err)
	must(t, f.Truncate(info.Size()-free))
}
