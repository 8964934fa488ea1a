package filestamp

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

func of(t *testing.T, path string) Stamp {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		return Of(nil)
	}
	return Of(info)
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAFileThatIsTheSameHasTheSameStamp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if of(t, path) != (Stamp{}) {
		t.Error("a missing file has a stamp")
	}
	put(t, path, "one")
	if first := of(t, path); first == (Stamp{}) || first != of(t, path) {
		t.Error("nothing was changed and the stamp was")
	}
}

// A disguise is what an installer that keeps times does, or somebody who hides.
func TestAChangeInDisguiseHasAnotherStamp(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows tells no change time (system_windows.go)")
	}
	written := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	disguise := func(path string) {
		if err := os.Chtimes(path, written, written); err != nil {
			t.Fatal(err)
		}
	}
	for what, change := range map[string]func(path string){
		"written in place": func(path string) { put(t, path, "two"); disguise(path) },
		"replaced": func(path string) {
			put(t, path+".new", "two")
			disguise(path + ".new")
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		path := filepath.Join(t.TempDir(), "file")
		put(t, path, "one")
		disguise(path)
		before := of(t, path)
		for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
			change(path)
			if of(t, path) != before {
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("%s: the stamp is the same", what)
				break
			}
		}
	}
}
