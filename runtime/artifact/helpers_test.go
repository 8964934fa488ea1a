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

// write makes a file with exactly this mode, and the directories above it.
func write(t testing.TB, root, path, contents string, mode uint32) {
	t.Helper()
	full := filepath.Join(root, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(contents), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := chmodExact(full, mode); err != nil {
		t.Fatal(err)
	}
}

func symlink(t testing.TB, text, path string) {
	t.Helper()
	if err := os.Symlink(text, path); err != nil {
		t.Fatal(err)
	}
}

func mustTree(t testing.TB, dir string, opts Options) *Tree {
	t.Helper()
	tree, err := Of(context.Background(), dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func mustDigest(t testing.TB, dir string) Digest {
	t.Helper()
	return mustTree(t, dir, Options{}).Digest
}

// refusalOf returns the code and path with which a digest is refused.
func refusalOf(t testing.TB, dir string, opts Options) (code, path string) {
	t.Helper()
	_, err := Of(context.Background(), dir, opts)
	if err == nil {
		t.Fatal("digest was not refused")
	}
	return coded.Of(err), pathOf(err)
}

func onlyWithModes(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no mode bits on Windows")
	}
}

// touchForward gives path a time that lies ahead.
func touchForward(t testing.TB, path string) {
	t.Helper()
	ahead := time.Now().Add(time.Hour)
	if err := os.Chtimes(path, ahead, ahead); err != nil {
		t.Fatal(err)
	}
}
