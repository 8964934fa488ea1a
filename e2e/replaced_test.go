//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// An update takes the program away from under a sidecar that runs (C68, C73): it
// goes on, and what it starts is started by what it is itself, not by whatever lies
// there now.
func TestServersStartAfterTheProgramWasReplaced(t *testing.T) {
	old := filepath.Join(t.TempDir(), "sallyport")
	bytes, err := os.ReadFile(program(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, bytes, 0o755); err != nil {
		t.Fatal(err)
	}
	h := newHomeOf(t, old)
	h.addFake("fake", "polite")
	s := h.serve()
	if err := os.Remove(old); err != nil {
		t.Fatal(err)
	}
	h.bin = program(t)
	h.ok("approve", "fake", "--yes", "--tools", "echo,pid")
	if err := os.WriteFile(old, []byte("#!/bin/sh\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	h.ok("disable", "fake")
	h.ok("enable", "fake")
	h.ok("call", "fake", "pid")
	s.stop()
}
