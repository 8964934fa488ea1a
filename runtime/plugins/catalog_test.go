package plugins

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/permissions"
)

func writePlugin(t testing.TB, dir, name string, more ...string) {
	t.Helper()
	manifest := fmt.Sprintf(`{"$schema": %q, "name": %q, "version": "1.0"%s}`, pluginSchema, name, strings.Join(more, ""))
	writeFile(t, filepath.Join(dir, manifestFile), manifest)
	writeFile(t, filepath.Join(dir, serversFile), fmt.Sprintf(
		`{"$schema": %q, "mcpServers": {"main": {"type": "stdio", "command": "node", "env": {"A": "1", "B": "2"}},
		"far": {"type": "streamable-http", "url": "https://x.example", "headers": {"X-A": "1"}}}}`, mcpSchema))
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func scan(t testing.TB, c *Catalog) *Listing {
	t.Helper()
	listing, err := c.Scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return listing
}

// summary is one line a plugin: source, name, reason.
func summary(l *Listing) string {
	var lines []string
	for _, p := range l.Plugins {
		lines = append(lines, strings.TrimSpace(p.Source+" "+p.Name+" "+codeOf(p.Invalid)))
	}
	for _, p := range l.Problems {
		lines = append(lines, p.Path+" ! "+p.Code)
	}
	return strings.Join(lines, "\n")
}

func TestScan(t *testing.T) {
	tests := []struct {
		name    string
		folders func(t *testing.T, dir string) []Folder
		want    string
	}{
		{"plugins come in the order of folders and names", func(t *testing.T, dir string) []Folder {
			writePlugin(t, dir+"/one/b", "b")
			writePlugin(t, dir+"/one/a", "z")
			writePlugin(t, dir+"/two/c", "a")
			return []Folder{{Path: dir + "/one", Label: "~/one"}, {Path: dir + "/two", Label: "two"}}
		}, "~/one/a z\n~/one/b b\ntwo/c a"},
		{"the first of two plugins with one name has it", func(t *testing.T, dir string) []Folder {
			writePlugin(t, dir+"/one/x", "demo")
			writePlugin(t, dir+"/two/y", "demo")
			return []Folder{{Path: dir + "/one", Label: "one"}, {Path: dir + "/two", Label: "two"}}
		}, "one/x demo\ntwo/y demo name-taken"},
		{"a folder reached twice shadows itself", func(t *testing.T, dir string) []Folder {
			writePlugin(t, dir+"/one/x", "demo")
			link(t, dir+"/one", dir+"/again")
			return []Folder{{Path: dir + "/one", Label: "one"}, {Path: dir + "/again", Label: "again"}}
		}, "one/x demo\nagain/x demo name-taken"},
		{"a rejected plugin takes no name", func(t *testing.T, dir string) []Folder {
			writeFile(t, dir+"/one/demo/plugin.json", "{")
			writePlugin(t, dir+"/two/demo", "demo")
			return []Folder{{Path: dir + "/one", Label: "one"}, {Path: dir + "/two", Label: "two"}}
		}, "one/demo demo manifest-syntax\ntwo/demo demo"},
		{"a folder that does not exist yet is nothing", func(_ *testing.T, dir string) []Folder {
			return []Folder{{Path: dir + "/none", Label: "none"}}
		}, ""},
		{"a folder that is a file is mentioned", func(t *testing.T, dir string) []Folder {
			writeFile(t, dir+"/file", "x")
			return []Folder{{Path: dir + "/file", Label: "~/file"}}
		}, "~/file ! folder-unreadable"},
		{"a linked folder and linked plugins are resolved", func(t *testing.T, dir string) []Folder {
			writePlugin(t, dir+"/dev/tool", "tool")
			link(t, dir+"/dev/tool", dir+"/real/linked")
			link(t, dir+"/real", dir+"/plugins")
			return []Folder{{Path: dir + "/plugins", Label: "~/.agents/plugins"}}
		}, "~/.agents/plugins/linked tool"},
		{"a link to nowhere, a folder without manifest, files and hidden folders", func(t *testing.T, dir string) []Folder {
			link(t, dir+"/gone", dir+"/p/dangling")
			writeFile(t, dir+"/p/data/x", "x")
			writeFile(t, dir+"/p/readme.md", "x")
			writePlugin(t, dir+"/p/.hidden", "hidden")
			return []Folder{{Path: dir + "/p", Label: "p"}}
		}, "p/dangling ! folder-unreadable\np/data ! no-manifest"},
		{"a configured folder may be a plugin", func(t *testing.T, dir string) []Folder {
			writePlugin(t, dir+"/work/tool", "tool")
			return []Folder{{Path: dir + "/work/tool", Label: "~/work/tool"}}
		}, "~/work/tool tool"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := New(Config{Folders: test.folders(t, t.TempDir())})
			for range 2 {
				if got := summary(scan(t, c)); got != test.want {
					t.Fatalf("got\n%s\nwant\n%s", got, test.want)
				}
			}
		})
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func TestScanNamesBothSourcesOfATakenName(t *testing.T) {
	dir := t.TempDir()
	writePlugin(t, dir+"/one/x", "demo")
	writePlugin(t, dir+"/two/y", "demo")
	l := scan(t, New(Config{Folders: []Folder{{Path: dir + "/one", Label: "one"}, {Path: dir + "/two", Label: "two"}}}))
	second := l.Plugins[1]
	if s := second.Invalid.Sentence; !strings.Contains(s, "one/x") || !strings.Contains(s, "two/y") {
		t.Fatalf("sentence %q", s)
	}
	if len(l.Connectors()) != 2 {
		t.Fatalf("connectors %v", l.Connectors())
	}
	c, ok := l.Connector(ID{"demo", "main"})
	if !ok || c.Source != "one/x" || c.Invalid != nil {
		t.Fatalf("got %+v", c)
	}
	if codeOf(second.Connectors[0].Invalid) != "name-taken" {
		t.Fatalf("the shadowed connector is %v", second.Connectors[0].Invalid)
	}
}

func TestScanReadsAgainWhatChanged(t *testing.T) {
	old := time.Now().Add(-time.Hour)
	tests := []struct {
		name   string
		change func(t *testing.T, dir string)
		want   string
	}{
		{"a manifest", func(t *testing.T, dir string) { writePlugin(t, dir, "other") }, "p/x other"},
		{"a manifest that goes", func(t *testing.T, dir string) { _ = os.Remove(dir + "/plugin.json") }, "p/x ! no-manifest"},
		{"a plugin put in its place", func(t *testing.T, dir string) {
			writePlugin(t, dir+"-new", "other")
			_ = os.Rename(dir, t.TempDir()+"/away")
			if err := os.Rename(dir+"-new", dir); err != nil {
				t.Fatal(err)
			}
		}, "p/x other"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			writePlugin(t, dir+"/x", "first")
			for _, name := range []string{manifestFile, serversFile} {
				_ = os.Chtimes(dir+"/x/"+name, old, old)
			}
			c := New(Config{Folders: []Folder{{Path: dir, Label: "p", Kind: Many}}})
			scan(t, c)
			test.change(t, dir+"/x")
			if got := summary(scan(t, c)); got != test.want {
				t.Fatalf("got %q, want %q", got, test.want)
			}
		})
	}
	t.Run("what was written just now, with its times set back", func(t *testing.T) {
		// Same size, same times, same inode: only the racy rule tells.
		dir := t.TempDir()
		writePlugin(t, dir+"/x", "first")
		c := New(Config{Folders: []Folder{{Path: dir, Label: "p", Kind: Many}}})
		scan(t, c)
		info, _ := os.Stat(dir + "/x/plugin.json")
		writePlugin(t, dir+"/x", "other")
		_ = os.Chtimes(dir+"/x/plugin.json", info.ModTime(), info.ModTime())
		if got := summary(scan(t, c)); got != "p/x other" {
			t.Fatalf("got %q", got)
		}
	})
}

func TestOverlay(t *testing.T) {
	tests := []struct {
		name    string
		id      string
		overlay Overlay
		check   func(c Connector) bool
		invalid bool
	}{
		{"env replaces and adds, marked as the operator's", "demo/main", Overlay{Env: map[string]string{"B": "secret:X", "C": "3"}}, func(c Connector) bool {
			return fmt.Sprint(c.Launch.Env) == "[{A 1 false} {B secret:X true} {C 3 true}]"
		}, false},
		{"headers replace in any case", "demo/far", Overlay{Headers: map[string]string{"x-a": "secret:Y"}}, func(c Connector) bool {
			return fmt.Sprint(c.Launch.Headers) == "[{x-a secret:Y true}]"
		}, false},
		{"inherit, maxFrame and noise", "demo/main", Overlay{Inherit: []string{"network"}, MaxFrame: 1 << 20, StdoutNoise: "skip"}, func(c Connector) bool {
			return fmt.Sprint(c.Launch.Inherit) == "[network]" && c.Options.MaxFrame == 1<<20 && c.Options.StdoutNoise == "skip"
		}, false},
		{"permissions get narrower", "demo/main", Overlay{Permissions: &permissions.Set{Tools: []string{"read_*"}}}, func(c Connector) bool {
			return !c.Requested.AllowsTool("write") && c.Requested.AllowsFS(permissions.PluginData)
		}, false},
		{"permissions never get wider", "demo/main", Overlay{Permissions: &permissions.Set{Secrets: []string{"X"}}}, nil, true},
		{"maxFrame has a limit", "demo/main", Overlay{MaxFrame: MaxFrameLimit + 1}, nil, true},
		{"env is for stdio", "demo/far", Overlay{Env: map[string]string{"A": "1"}}, nil, true},
		{"headers are not for stdio", "demo/main", Overlay{Headers: map[string]string{"A": "1"}}, nil, true},
		{"PLUGIN_ROOT is not the operator's either", "demo/main", Overlay{Env: map[string]string{"PLUGIN_ROOT": "/"}}, nil, true},
		{"a bad header value", "demo/far", Overlay{Headers: map[string]string{"A": "x\ny"}}, nil, true},
		{"an entry that could not be read", "demo/main", Overlay{Err: os.ErrInvalid}, nil, true},
		{"no inherit-all", "demo/main", Overlay{Inherit: []string{"*"}}, nil, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			writePlugin(t, dir+"/x", "demo")
			l := scan(t, New(Config{Folders: []Folder{{Path: dir, Label: "p"}}, Overlay: map[string]Overlay{test.id: test.overlay}}))
			id, _ := ParseID(test.id)
			c, ok := l.Connector(id)
			if !ok || (c.Invalid != nil) != test.invalid {
				t.Fatalf("got %+v, invalid %v", c, c.Invalid)
			}
			if test.invalid && (codeOf(c.Invalid) != "overlay-invalid" || len(l.Plugins[0].Problems) != 1) {
				t.Fatalf("invalid with %v, problems %v", c.Invalid, l.Plugins[0].Problems)
			}
			if test.check != nil && !test.check(c) {
				t.Fatalf("got %+v", c)
			}
		})
	}
}

func TestParseID(t *testing.T) {
	for text, want := range map[string]ID{"demo/main": {"demo", "main"}, "demo/a/b": {"demo", "a/b"}, "a.b/数据库": {"a.b", "数据库"}, "demo": {}, "demo/": {}, "/x": {}, "De/x": {}} {
		if got, err := ParseID(text); got != want || (err != nil) != (want == ID{}) {
			t.Errorf("ParseID(%q) = %v, %v", text, got, err)
		}
	}
}

func TestOverlayForNobodyIsMentioned(t *testing.T) {
	dir := t.TempDir()
	writePlugin(t, dir+"/x", "demo")
	l := scan(t, New(Config{Folders: []Folder{{Path: dir, Label: "p"}}, Overlay: map[string]Overlay{"demo/mian": {}, "demo/main": {}}}))
	if len(l.Problems) != 1 || l.Problems[0].Code != "overlay-unused" || !strings.Contains(l.Problems[0].Sentence, "mian") {
		t.Fatalf("got %v", l.Problems)
	}
}

func TestProblemsAreBounded(t *testing.T) {
	fields := strings.Repeat(`, "x": 1`, 60_000)
	for name, test := range map[string]struct{ manifest, invalid string }{
		"many unknown fields":          {`{"$schema": "` + pluginSchema + `", "name": "demo"` + fields + "}", ""},
		"a fatal one after many":       {`{"$schema": "` + pluginSchema + `", "name": "demo"` + fields + `, "version": 1}`, "field-invalid"},
		"a name that is missing after": {`{"$schema": "` + pluginSchema + `"` + fields + "}", "name-invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeFile(t, dir+"/plugin.json", test.manifest)
			started := time.Now()
			p, err := Load(t.Context(), dir)
			if err != nil || codeOf(p.Invalid) != test.invalid || len(p.Problems) > maxProblems+2 {
				t.Fatalf("invalid %v, %d problems, %v", p.Invalid, len(p.Problems), err)
			}
			if took := time.Since(started); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestServersAreBounded(t *testing.T) {
	dir := t.TempDir()
	writePlugin(t, dir, "demo")
	var entries []string
	for i := range maxServers + 1 {
		entries = append(entries, fmt.Sprintf(`"s%d": {"type":"stdio","command":"x"}`, i))
	}
	writeFile(t, dir+"/mcp.json", `{"$schema": "`+mcpSchema+`", "mcpServers": {`+strings.Join(entries, ",")+"}}")
	p, err := Load(t.Context(), dir)
	if err != nil || len(p.Connectors) != 0 || len(p.Problems) != 1 || p.Problems[0].Code != "mcp-invalid" {
		t.Fatalf("got %d connectors, %v, %v", len(p.Connectors), p.Problems, err)
	}
}

func TestParseOverlays(t *testing.T) {
	overlays, err := ParseOverlays([]byte(`{
		"a/good": {"env": {"A": "secret:B"}, "maxFrame": 1024, "permissions": {"tools": []}, "budget": {"processes": 4}},
		"a/text": "x", "a/unknown": {"environment": {}}, "a/case": {"Env": {}}, "a/twice": {"env": {}, "env": {}},
		"a/number": {"env": {"PORT": 3000}}, "a/inside": {"permissions": {"network": []}}}`))
	if err != nil || len(overlays) != 7 {
		t.Fatalf("got %v, %v", overlays, err)
	}
	for id, o := range overlays {
		if (o.Err == nil) != (id == "a/good") {
			t.Errorf("%s has the error %v", id, o.Err)
		}
	}
	good := overlays["a/good"]
	if good.Env["A"] != "secret:B" || good.MaxFrame != 1024 || good.Permissions.Tools == nil || good.Permissions.FS != nil || good.Budget.Processes != 4 {
		t.Errorf("got %+v", good)
	}
	for _, text := range []string{"", "[]", "null", `{"a": {}, "a": {}}`, "{} {}"} {
		if _, err := ParseOverlays([]byte(text)); coded.Of(err) != "overlay-invalid" {
			t.Errorf("%q gives %v", text, err)
		}
	}
}
