//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whoever opens the headless program's bundle types nothing and has no terminal: the
// place of the program says what is meant. Finder is the one part that is not here.
func TestDoubleClickOnABundleOpensThePages(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(program(t))
	if err != nil {
		t.Fatal(err)
	}
	h := newHome(t)
	h.bin = filepath.Join(h.dir, "My Apps", "Sallyport.app", "Contents", "MacOS", "sallyport")
	if err := os.MkdirAll(filepath.Dir(h.bin), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.bin, whole, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.endSidecars)
	got := h.run()
	if got.code != 0 || !strings.Contains(got.stdout, "http://127.0.0.1:") && !strings.Contains(got.stdout, "the browser shows") {
		t.Fatalf("a start without arguments in a bundle: %+v", got)
	}
	if running := h.sidecars(); len(running) != 1 {
		t.Errorf("these sidecars run: %v", running)
	}
	h.ok("health")

	h.bin = program(t)
	if got := h.run(); got.code != 0 || !strings.Contains(got.stdout, "Usage:") {
		t.Errorf("outside of a bundle it is help: %+v", got)
	}
	h.bin = filepath.Join(h.dir, "My Apps", "Sallyport.app", "Contents", "MacOS", "sallyport")
}
