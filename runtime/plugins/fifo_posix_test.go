//go:build !windows

package plugins

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func makeFIFO(name string) func(*testing.T, string) {
	return func(t *testing.T, root string) {
		path := filepath.Join(root, filepath.FromSlash(name))
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		_ = os.Remove(path)
		if err := syscall.Mkfifo(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
