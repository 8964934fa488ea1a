package approvals

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"sallyport/runtime/env"
)

// A program that was written at the moment it was hashed may be written once more
// without its stamp showing it.
func TestAProgramWrittenJustNowIsNotRemembered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	search, found := env.Search{Command: path}, env.Executable{Found: path, Real: real}
	written := time.Now()
	for _, row := range []struct {
		what       string
		begun      time.Time
		remembered bool
	}{
		{"before it was written", written.Add(-time.Minute), false},
		{"at the same moment", written, false},
		{"a while later", written.Add(time.Minute), true},
	} {
		var memo programMemo
		memo.put(search, found, row.begun)
		if _, ok := memo.get(search); ok != row.remembered {
			t.Errorf("hashed %s: remembered is %v", row.what, ok)
		}
	}
	var memo programMemo
	memo.put(search, found, written.Add(time.Minute))
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexit\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, ok := memo.get(search); ok {
		t.Error("another program is taken for the one that was hashed")
	}
}
