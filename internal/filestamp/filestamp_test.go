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

func TestAStampIsRacyUntilATickLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	put(t, path, "one")
	written := time.Now()
	stamp := of(t, path)
	for after, want := range map[time.Duration]bool{-time.Hour: true, 0: true, tick - time.Second: true, tick + time.Second: false, time.Hour: false} {
		if stamp.Racy(written.Add(after)) != want {
			t.Errorf("%s after it was written, racy is %v", after, !want)
		}
	}
	if (Stamp{}).Racy(written) {
		t.Error("what is not there is racy")
	}
	long := written.Add(-time.Hour)
	if err := os.Chtimes(path, long, long); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && !of(t, path).Racy(written) {
		t.Error("a write time that was set back hides the change time")
	}
	if err := os.Chtimes(path, long, written.Add(24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if !of(t, path).Racy(written.Add(time.Hour)) {
		t.Error("a time in the future is trusted")
	}
}

func TestPartsOfAStamp(t *testing.T) {
	dir := t.TempDir()
	before := of(t, dir)
	put(t, filepath.Join(dir, "file"), "one")
	then := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := os.Chtimes(dir, then, then); err != nil {
		t.Fatal(err)
	}
	after := of(t, dir)
	if after == before || after.Timeless() != before.Timeless() || after.Node() != before.Node() {
		t.Error("a new entry changes more or less than size and times")
	}
	if runtime.GOOS == "windows" {
		return // no modes and no file numbers there
	}
	if err := os.Chmod(dir, 0o710); err != nil {
		t.Fatal(err)
	}
	if now := of(t, dir); now.Timeless() == before.Timeless() || now.Node() != before.Node() {
		t.Error("a mode is not of the entry, or is of the node")
	}
	if of(t, t.TempDir()).Node() == before.Node() || !before.Node().Exists() || of(t, dir+"/none").Exists() {
		t.Error("another directory is the same node")
	}
}
