package plugins

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// told is how long a change may take to be told of (spec/approval.md 5.3).
const toldWithin = 2 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watching runs a watcher for a test. A small budget makes it poll trees.
func watching(t *testing.T, config Config) *Watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := New(config).Watch(ctx)
	t.Cleanup(func() {
		cancel()
		for range w.Events() {
		}
	})
	return w
}

func (w *Watcher) expect(t *testing.T, kind EventKind, name string) {
	t.Helper()
	deadline := time.After(toldWithin)
	for {
		select {
		case event := <-w.Events():
			if event.Kind == kind && (name == "" || slices.Contains(event.Changed, name)) {
				return
			}
		case <-deadline:
			t.Fatalf("no %s event for %q within %s", kind, name, toldWithin)
		}
	}
}

// quiet fails on an event within a time that is long beside the debounce.
func (w *Watcher) quiet(t *testing.T) {
	t.Helper()
	select {
	case event := <-w.Events():
		t.Fatalf("an event without a change: %+v", event)
	case <-time.After(800 * time.Millisecond):
	}
}

// fastPoll keeps the tests short; TestWatchTreePolledAsByDefault has the default.
const fastPoll = 200 * time.Millisecond

// ways are the ways of noticing: told by the system alone (no poll comes within
// the test), and looking alone. With mustLook the first may look, too.
func ways(t *testing.T, mustLook bool, test func(t *testing.T, config Config)) {
	alone := time.Hour
	if mustLook || !notifies {
		alone = fastPoll
	}
	t.Run("told", func(t *testing.T) { t.Parallel(); test(t, Config{Poll: alone}) })
	t.Run("polled", func(t *testing.T) { t.Parallel(); test(t, Config{Poll: fastPoll, WatchBudget: 1}) })
}

func TestWatchTreePolledAsByDefault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir+"/a/file", "1")
	w := watching(t, Config{WatchBudget: 1})
	w.WatchTree(dir)
	writeFile(t, dir+"/a/file", "2")
	w.expect(t, TreeChanged, "")
}

func TestWatchTree(t *testing.T) {
	changes := map[string]func(t *testing.T, dir string){
		"a changed byte":      func(t *testing.T, d string) { writeFile(t, d+"/a/b/file", "other") },
		"a new file":          func(t *testing.T, d string) { writeFile(t, d+"/a/b/new", "") },
		"a new deep folder":   func(t *testing.T, d string) { writeFile(t, d+"/x/y/z/new", "") },
		"a removed file":      func(t *testing.T, d string) { must(t, os.Remove(d+"/a/b/file")) },
		"a mode":              func(t *testing.T, d string) { must(t, os.Chmod(d+"/a/b/file", 0o755)) },
		"a link's target":     func(t *testing.T, d string) { must(t, os.Remove(d+"/link")); link(t, "a/b", d+"/link") },
		"an empty folder":     func(t *testing.T, d string) { must(t, os.Mkdir(d+"/a/empty", 0o755)) },
		"a renamed folder":    func(t *testing.T, d string) { must(t, os.Rename(d+"/a/b", d+"/a/c")) },
		"the tree removed":    func(t *testing.T, d string) { must(t, os.RemoveAll(d)) },
		"the tree moved away": func(t *testing.T, d string) { must(t, os.Rename(d, d+"-away")) },
		"an editor's save": func(t *testing.T, d string) {
			writeFile(t, d+"/a/b/.file.swp", "other")
			must(t, os.Rename(d+"/a/b/.file.swp", d+"/a/b/file"))
		},
		"another tree in its place": func(t *testing.T, d string) {
			writeFile(t, d+"-new/a/b/file", "first")
			must(t, os.Rename(d, d+"-away"))
			must(t, os.Rename(d+"-new", d))
		},
		"a folder above replaced": func(t *testing.T, d string) {
			up := filepath.Dir(d)
			writeFile(t, up+"-new/tree/a/b/file", "first")
			must(t, os.Rename(up, up+"-away"))
			must(t, os.Rename(up+"-new", up))
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ways(t, name == "a folder above replaced", func(t *testing.T, config Config) {
				dir := filepath.Join(t.TempDir(), "up", "tree")
				writeFile(t, dir+"/a/b/file", "first")
				link(t, "a", dir+"/link")
				w := watching(t, config)
				w.WatchTree(dir)
				change(t, dir)
				w.expect(t, TreeChanged, "")
			})
		})
	}
}

func TestWatchTreeAgainAfterItsFoldersWereMadeAnew(t *testing.T) {
	ways(t, true, func(t *testing.T, config Config) {
		dir := filepath.Join(t.TempDir(), "tree")
		writeFile(t, dir+"/a/file", "1")
		w := watching(t, config)
		w.WatchTree(dir)
		for i := range 2 {
			must(t, os.RemoveAll(dir))
			writeFile(t, dir+"/a/file", "1")
			w.expect(t, TreeChanged, "")
			drain(w)
			writeFile(t, dir+"/a/file", fmt.Sprint("changed", i))
			w.expect(t, TreeChanged, "")
			drain(w)
		}
	})
}

// drain takes the events of what was done so far.
func drain(w *Watcher) {
	for {
		select {
		case <-w.Events():
		case <-time.After(800 * time.Millisecond):
			return
		}
	}
}

func TestUnwatchTree(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tree")
	writeFile(t, dir+"/file", "1")
	w := watching(t, Config{})
	w.WatchTree(dir)
	w.UnwatchTree(dir)
	writeFile(t, dir+"/file", "2")
	w.quiet(t)
}

func TestWatchIsQuietWhenNothingChanges(t *testing.T) {
	ways(t, true, func(t *testing.T, config Config) {
		dir := t.TempDir()
		writePlugin(t, dir+"/p/x", "demo")
		config.Folders = []Folder{{Path: dir + "/p", Label: "p", Kind: Many}, {Path: dir + "/none", Label: "none"}}
		w := watching(t, config)
		w.WatchTree(dir + "/p/x")
		if _, err := os.ReadFile(dir + "/p/x/plugin.json"); err != nil {
			t.Fatal(err)
		}
		w.quiet(t)
	})
}

// Case C22 d: a file that is written 50 times a second makes no storm.
func TestWatchPutsManyChangesTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePlugin(t, dir+"/x", "demo")
	w := watching(t, Config{Folders: []Folder{{Path: dir, Label: "p", Kind: Many}}})
	events, end := 0, time.After(2*time.Second)
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for writing := true; writing; {
		select {
		case <-pace.C:
			writePlugin(t, dir+"/x", "demo")
		case <-w.Events():
			events++
		case <-end:
			writing = false
		}
	}
	if events < 1 || events > 6 {
		t.Fatalf("%d events for 100 writes in 2 s, want 1 to 6", events)
	}
}

func TestWatchFolders(t *testing.T) {
	changes := map[string]func(t *testing.T, dir string) (changed string){
		"a new plugin": func(t *testing.T, d string) string { writePlugin(t, d+"/new", "new"); return "new" },
		"a plugin that goes": func(t *testing.T, d string) string {
			must(t, os.RemoveAll(d+"/x"))
			return "x"
		},
		"a manifest": func(t *testing.T, d string) string { writePlugin(t, d+"/x", "other"); return "x" },
		"a skill": func(t *testing.T, d string) string {
			writeFile(t, d+"/x/skills/s/SKILL.md", "x")
			return "x"
		},
		"a file behind a link in the plugin": func(t *testing.T, d string) string {
			writeFile(t, d+"/behind/conf/real.json", "{}")
			return "behind"
		},
		"a linked plugin's manifest": func(t *testing.T, d string) string {
			writePlugin(t, filepath.Dir(d)+"/dev/tool", "other")
			return "linked"
		},
		"the folder made anew": func(t *testing.T, d string) string {
			must(t, os.RemoveAll(d))
			writePlugin(t, d+"/second", "second")
			return "second"
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ways(t, name == "the folder made anew", func(t *testing.T, config Config) {
				dir := t.TempDir()
				folder := dir + "/plugins"
				writePlugin(t, folder+"/x", "demo")
				writePlugin(t, dir+"/dev/tool", "tool")
				link(t, dir+"/dev/tool", folder+"/linked")
				writePlugin(t, folder+"/behind", "behind")
				must(t, os.MkdirAll(folder+"/behind/conf", 0o755))
				must(t, os.Rename(folder+"/behind/mcp.json", folder+"/behind/conf/real.json"))
				link(t, "conf/real.json", folder+"/behind/mcp.json")
				config.Folders = []Folder{{Path: folder, Label: "p", Kind: Many}}
				w := watching(t, config)
				w.WatchTree(dir + "/dev") // the watcher has taken its first look
				w.expectName(t, change(t, folder))
			})
		})
	}
}

func (w *Watcher) expectName(t *testing.T, name string) {
	t.Helper()
	w.expect(t, FolderChanged, name)
}

func TestWatchFolderThatDoesNotExistYet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := watching(t, Config{Poll: fastPoll, Folders: []Folder{{Path: dir + "/later/plugins", Label: "p"}}})
	w.WatchTree(dir)
	writePlugin(t, dir+"/later/plugins/x", "demo")
	w.expectName(t, "x")
	drain(w)
	writePlugin(t, dir+"/later/plugins/y", "second")
	w.expectName(t, "y")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A folder inside a tree that is made anew is another folder of the same name:
// its watch must be, too.
func TestWatchTreeWhoseInnerFolderIsMadeAnew(t *testing.T) {
	ways(t, false, func(t *testing.T, config Config) {
		dir := t.TempDir()
		writeFile(t, dir+"/a/b/file", "1")
		w := watching(t, config)
		w.WatchTree(dir)
		must(t, os.RemoveAll(dir+"/a"))
		writeFile(t, dir+"/a/b/file", "1")
		w.expect(t, TreeChanged, "")
		drain(w)
		writeFile(t, dir+"/a/b/file", "changed again")
		w.expect(t, TreeChanged, "")
		drain(w)
		must(t, os.Rename(dir+"/a", dir+"/old"))
		must(t, os.RemoveAll(dir+"/old"))
		writeFile(t, dir+"/a/b/file", "1")
		w.expect(t, TreeChanged, "")
		drain(w)
		writeFile(t, dir+"/a/b/new", "")
		w.expect(t, TreeChanged, "")
		drain(w)
	})
}
