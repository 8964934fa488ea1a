//go:build linux

package e2e

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// snapshotted is a path in the one snapshot that there is.
func (f *fort) snapshotted(name string) string {
	f.t.Helper()
	var found []string
	err := filepath.WalkDir(f.data("snapshots"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Base(path) == name {
			found = append(found, path)
		}
		return err
	})
	if err != nil || len(found) != 1 {
		f.t.Fatalf("%s is in %d snapshots: %v", name, len(found), err)
	}
	return found[0]
}

// tamper changes a file of a snapshot, which is read-only, and hides it as well as a
// program of the same user can.
func (f *fort) tamper(path, old, now string) {
	f.t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		f.t.Fatal(err)
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		f.t.Fatal(err)
	}
	text := bytes.Replace(f.content(path), []byte(old), []byte(now), 1)
	f.mode(filepath.Dir(path), 0o700)
	f.mode(path, 0o600)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.mode(path, info.Mode())
	f.mode(filepath.Dir(path), dir.Mode())
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		f.t.Fatal(err)
	}
}

func TestASnapshotThatWasTamperedWith(t *testing.T) {
	f := newFort(t)
	f.addServer("fake", "polite", set("command", "./script"))
	f.write("fake", "script", []byte("#!/bin/sh\ntrue >\"$PLUGIN_DATA/good\"\nexec \"$PLUGIN_ROOT/fakeserver\" \"$@\"\n"), 0o755)
	f.approve("fake")
	good, evil := f.data("plugin-data", "fake", "good"), f.data("plugin-data", "fake", "evil")
	f.remove(good)

	f.tamper(f.snapshotted("script"), "/good", "/evil")
	f.ok("call", "fake", "go") // from the approved bytes, which the source still has
	f.absent(evil)
	f.remove(good)
	if text := f.content(f.snapshotted("script")); !bytes.Contains(text, []byte("/good")) {
		t.Errorf("the snapshot is still\n%s", text)
	}

	f.tamper(f.snapshotted("script"), "/good", "/evil")
	f.write("fake", "script", bytes.Replace(f.content(f.plugin("fake", "script")), []byte("/good"), []byte("/evil"), 1), 0o755)
	f.refused("artifact-changed", "call", "fake", "go")
	f.absent(evil)
	f.absent(good)

	// The source as it was approved again, under a sidecar that was started meanwhile.
	s := f.serve()
	f.refused("artifact-changed", "call", "fake", "go")
	f.write("fake", "script", bytes.Replace(f.content(f.plugin("fake", "script")), []byte("/evil"), []byte("/good"), 1), 0o755)
	waitFor(t, "it may run again", 5*time.Second, func() bool { return f.run("call", "fake", "go").code == 0 })
	f.absent(evil)
	s.stop()
}

// A snapshot that is gone is made again, and only from the approved bytes.
func TestASnapshotThatIsGone(t *testing.T) {
	f := approvedFort(t)
	removeAll(t, f.data("snapshots"))
	f.ok("call", "fake", "go")
	removeAll(t, f.data("snapshots"))
	f.write("fake", "notes.txt", []byte("evil"), 0o644)
	f.refused("artifact-changed", "call", "fake", "go")
	if n := f.starts("fake"); n != 3 {
		t.Errorf("it was started %d times", n)
	}
}

// A link in the place of a snapshot, or of the folder of all, leads nowhere.
func TestALinkInThePlaceOfASnapshot(t *testing.T) {
	f := newFort(t)
	f.addServer("fake", "polite", set("command", "./script"))
	script := "#!/bin/sh\ntrue >\"$PLUGIN_DATA/good\"\nexec \"$PLUGIN_ROOT/fakeserver\" \"$@\"\n"
	f.write("fake", "script", []byte(script), 0o755)
	f.approve("fake")
	snapshot := filepath.Dir(f.snapshotted("script"))
	aside := filepath.Join(f.dir, "aside")
	f.mode(filepath.Dir(snapshot), 0o700)
	f.mode(snapshot, 0o700)
	if err := os.Rename(snapshot, aside); err != nil {
		t.Fatal(err)
	}
	f.tamper(filepath.Join(aside, "script"), "/good", "/evil")
	if err := os.Symlink(aside, snapshot); err != nil {
		t.Fatal(err)
	}
	f.run("call", "fake", "go")
	f.absent(f.data("plugin-data", "fake", "evil"))
}

func TestABundleThatGoesAndComesBack(t *testing.T) {
	f := newFort(t)
	f.addServer("fake", "polite")
	s := f.serve()
	f.approve("fake")
	agent := s.overHTTP("claude")
	agent.wantOK("fake__main__go")
	pid := f.pid("fake/main")
	aside := filepath.Join(f.dir, "aside")
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	move(f.plugin("fake"), aside)
	eventually(t, noticeWithin, "the running server is gone", func() bool { return !alive(pid) })
	agent.wantRefused("fake__main__go", "connector-unknown")
	f.wantStanding("fake/main", "invalid", "connector-unknown")
	starts := f.starts("fake")

	if err := os.WriteFile(filepath.Join(aside, "notes.txt"), []byte("evil"), 0o644); err != nil {
		t.Fatal(err)
	}
	move(aside, f.plugin("fake"))
	waitFor(t, "it is there again", 5*time.Second, func() bool { return f.connector("fake/main").Reason == "artifact-changed" })
	agent.wantRefused("fake__main__go", "artifact-changed")
	if n := f.starts("fake"); n != starts {
		t.Errorf("it was started %d times, %d before", n, starts)
	}
	f.write("fake", "notes.txt", []byte("nobody names this file\n"), 0o644)
	waitFor(t, "it runs again without a question", 5*time.Second, func() bool {
		_, err := agent.call("fake__main__go", nil)
		return err == nil
	})
}

// A server that is renamed is another connector: the old name runs nothing and the
// new one was never approved.
func TestAServerThatIsRenamed(t *testing.T) {
	f := newFort(t)
	f.addServer("fake", "polite")
	s := f.serve()
	f.approve("fake")
	agent := s.overHTTP("claude")
	pid := f.pid("fake/main")
	starts := f.starts("fake")
	text := bytes.Replace(f.content(f.plugin("fake", "mcp.json")), []byte(`"main"`), []byte(`"other"`), 1)
	f.write("fake", "mcp.json", text, 0o644)
	eventually(t, noticeWithin, "the running server is gone", func() bool { return !alive(pid) })
	agent.wantRefused("fake__main__go", "connector-unknown")
	f.wantStanding("fake/main", "invalid", "connector-unknown")
	f.refused("never-approved", "call", "fake/other", "go")
	f.wantStanding("fake/other", "approval_required", "never-approved")
	if n := f.starts("fake"); n != starts {
		t.Errorf("it was started %d times, %d before", n, starts)
	}
}

func (f *fort) absent(path string) {
	f.t.Helper()
	if _, err := os.Lstat(path); err == nil {
		f.t.Errorf("%s is there", filepath.Base(path))
	}
}
