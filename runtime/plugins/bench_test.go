package plugins

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sallyport/internal/filestamp"
)

// manyPlugins writes plugins as they are found in the field, an hour old: a
// manifest, two servers, a skill and a few other files.
func manyPlugins(tb testing.TB, count int) (folder string) {
	tb.Helper()
	folder = tb.TempDir()
	old := time.Now().Add(-time.Hour)
	for i := range count {
		dir := filepath.Join(folder, fmt.Sprintf("plugin-%04d", i))
		writePlugin(tb, dir, fmt.Sprintf("plugin-%04d", i), `, "description": "Does something useful"`)
		writeFile(tb, dir+"/skills/one/SKILL.md", "---\nname: one\ndescription: Does one thing.\n---\n")
		writeFile(tb, dir+"/server.mjs", "process.stdin.resume()\n")
		for _, name := range []string{manifestFile, serversFile, "skills/one/SKILL.md", "skills/one", "skills", "."} {
			if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return folder
}

// BenchmarkScan1000 lists 1,000 plugins: read anew, unchanged, and against the
// least that an unchanged scan could do, an lstat of every entry looked at.
func BenchmarkScan1000(b *testing.B) {
	folder := manyPlugins(b, 1000)
	config := Config{Folders: []Folder{{Path: folder, Label: "p", Kind: Many}}}
	waitUntilNotRacy(b, folder)
	warm := New(config)
	var unchanged, floor time.Duration
	b.Run("anew", func(b *testing.B) {
		for b.Loop() {
			scan(b, New(config))
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		scan(b, warm)
		for b.Loop() {
			if l := scan(b, warm); len(l.Plugins) != 1000 {
				b.Fatal(len(l.Plugins))
			}
		}
		unchanged = b.Elapsed() / time.Duration(b.N)
	})
	b.Run("lstat", func(b *testing.B) {
		for b.Loop() {
			for dir, entry := range warm.cache {
				for name := range entry.touched {
					_, _ = os.Lstat(filepath.Join(dir, name))
				}
			}
		}
		floor = b.Elapsed() / time.Duration(b.N)
		b.ReportMetric(float64(unchanged)/float64(floor), "unchanged/lstat")
	})
}

// waitUntilNotRacy waits until what was written has change times old enough to
// be trusted by the cache.
func waitUntilNotRacy(tb testing.TB, folder string) {
	tb.Helper()
	info, err := os.Lstat(filepath.Join(folder, "plugin-0999", manifestFile))
	if err != nil {
		tb.Fatal(err)
	}
	for filestamp.Of(info).Racy(time.Now()) {
		time.Sleep(50 * time.Millisecond)
	}
}

// 1,000 unchanged plugins list in under a second.
func TestScanOfAThousandUnchangedPlugins(t *testing.T) {
	folder := manyPlugins(t, 1000)
	waitUntilNotRacy(t, folder)
	c := New(Config{Folders: []Folder{{Path: folder, Label: "p", Kind: Many}}})
	scan(t, c)
	before := c.cache[mustResolve(t, folder+"/plugin-0000")].plugin
	started := time.Now()
	l := scan(t, c)
	if took := time.Since(started); took > time.Second {
		t.Errorf("the second scan took %s", took)
	}
	if len(l.Plugins) != 1000 || len(l.Connectors()) != 2000 {
		t.Fatalf("%d plugins, %d connectors", len(l.Plugins), len(l.Connectors()))
	}
	if after := c.cache[mustResolve(t, folder+"/plugin-0000")].plugin; after != before {
		t.Error("an unchanged plugin was read again")
	}
}

func mustResolve(t *testing.T, dir string) string {
	t.Helper()
	resolved, err := resolveDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}
