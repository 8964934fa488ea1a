package install

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/artifact"
)

func TestAFolderIsCopiedOnce(t *testing.T) {
	i := newInstaller(t)
	dir := files(t, map[string]string{"plugin.json": manifestJSON, ".hidden/a": "1", "bin/run*": "#!"})
	must(t, os.Symlink("../bin/run", filepath.Join(dir, ".hidden", "link")))
	before, err := artifact.Of(t.Context(), dir, artifact.Options{})
	must(t, err)
	steps := map[string]bool{}
	staged, err := i.Stage(t.Context(), source(t, dir), func(s Step) { steps[s.Doing] = true })
	must(t, err)
	if staged.Digest != before.Digest {
		t.Errorf("the copy has %s, the folder %s", staged.Digest, before.Digest)
	}
	must(t, os.WriteFile(filepath.Join(dir, ".hidden", "a"), []byte("2"), 0o644))
	if read(t, staged.Dir, ".hidden", "a") != "1" {
		t.Error("what is staged changes with the folder")
	}
	if staged.Origin.Kind != Folder || staged.Signature.State != "unsigned" || staged.Files != 3 || !steps["reading"] || !steps["digesting"] {
		t.Errorf("staged %+v after %v", staged.stagedRecord, steps)
	}
	again, err := i.Staged(t.Context(), staged.ID)
	must(t, err)
	if again.Digest != staged.Digest || again.Plugin.Name != "demo" || again.Origin != staged.Origin {
		t.Errorf("found again as %+v", again)
	}
	must(t, staged.Discard())
	wantEmpty(t, i.config.Staging)
	if _, err := i.Staged(t.Context(), staged.ID); coded.Of(err) != "not-staged" {
		t.Errorf("after it was discarded: %v", err)
	}
}

func TestTheUsersHomeIsNotShown(t *testing.T) {
	i := newInstaller(t)
	dir := filepath.Join(i.config.Home, "src", "demo")
	must(t, os.MkdirAll(dir, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "plugin.json"), []byte(manifestJSON), 0o644))
	staged, err := i.Stage(t.Context(), source(t, dir), nil)
	must(t, err)
	if staged.Origin.Text != "~/src/demo" {
		t.Errorf("it comes from %q", staged.Origin.Text)
	}
}

func TestLinksOfAFolder(t *testing.T) { // C48
	tests := []struct{ name, link, target, code string }{
		{"to a secret", "skills/leak.txt", "/etc/hostname", artifact.CodeSymlinkAbsolute},
		{"out of the folder", "x", "../outside", artifact.CodeSymlinkEscape},
		{"to itself", "x", "x", artifact.CodeSymlinkCycle},
		{"to nothing", "x", "nothing", artifact.CodeSymlinkDangling},
		{"as npm makes them", "node_modules/.bin/x", "../x/cli.js", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			i := newInstaller(t)
			dir := files(t, map[string]string{"plugin.json": manifestJSON, "node_modules/x/cli.js": "js", "../outside": "secret"})
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, tt.link)), 0o755))
			must(t, os.Symlink(tt.target, filepath.Join(dir, tt.link)))
			if tt.code != "" {
				if refusal := refused(t, i, source(t, dir), tt.code); refusal.Path != tt.link {
					t.Errorf("it names %q", refusal.Path)
				}
				return
			}
			staged, err := i.Stage(t.Context(), source(t, dir), nil)
			must(t, err)
			if got, _ := os.Readlink(filepath.Join(staged.Dir, tt.link)); got != tt.target {
				t.Errorf("the link leads to %q", got)
			}
		})
	}
}

func TestNamesOfAFolderThatCollide(t *testing.T) { // C54
	if runtime.GOOS != "linux" {
		return // the file system itself has one of the two
	}
	i := newInstaller(t)
	dir := files(t, map[string]string{"plugin.json": manifestJSON, "node_modules/ms/README.md": "1", "node_modules/ms/readme.md": "2", "aux.js": "x"})
	staged, err := i.Stage(t.Context(), source(t, dir), nil)
	must(t, err)
	want := []Warning{{Code: "name-not-on-windows", Path: "aux.js"}, {Code: artifact.CodeCaseCollision, Path: "node_modules/ms/README.md", Other: "node_modules/ms/readme.md"}}
	if !slices.Equal(staged.Warnings, want) {
		t.Errorf("got %+v, want %+v", staged.Warnings, want)
	}
	for name, code := range map[string]string{"de\u0301cembre": "entry-collision", "a\nb": "entry-name-invalid", `a\b`: "entry-backslash"} {
		dir := files(t, map[string]string{"plugin.json": manifestJSON, "d\u00e9cembre": "1", name: "2"})
		must(t, staged.Discard())
		refused(t, i, source(t, dir), code)
	}
	dir = files(t, map[string]string{"plugin.json": manifestJSON, "a\xff": "1"})
	refused(t, i, source(t, dir), "entry-name-invalid")
}

func TestWhatIsNoPluginIsNotStaged(t *testing.T) {
	i := newInstaller(t)
	refused(t, i, source(t, files(t, map[string]string{"README.md": "hello"})), "manifest-missing")
	refused(t, i, source(t, files(t, map[string]string{"plugin.json": "{"})), "manifest-syntax")
	refused(t, i, Source{Kind: Folder, Path: filepath.Join(t.TempDir(), "gone")}, artifact.CodeChanged)
	refused(t, i, Source{Kind: Folder, Path: i.config.Home}, "source-holds-sallyport")
	refused(t, i, Source{}, "source-unknown")
}

func TestLimitsOfAFolder(t *testing.T) {
	for code, limits := range map[string]artifact.Limits{
		"too-many-entries": {Entries: 2}, "file-too-large": {FileBytes: 4}, "tree-too-large": {TreeBytes: 10},
	} {
		i := newInstaller(t)
		i.config.Limits = limits
		dir := files(t, map[string]string{"plugin.json": manifestJSON, "a/b": "12345", "a/c": "123456"})
		refused(t, i, source(t, dir), code)
	}
}

func TestACancelledFolderLeavesNothing(t *testing.T) { // C56
	i := newInstaller(t)
	content := map[string]string{"plugin.json": manifestJSON}
	for n := range 500 {
		content[filepath.Join("node_modules", strings.Repeat("d", n%20+1), strings.Repeat("f", n/20+1))] = "text"
	}
	dir := files(t, content)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := i.Stage(ctx, source(t, dir), func(s Step) {
		if s.Doing == "reading" {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	wantEmpty(t, i.config.Staging)
	if _, err := i.Stage(ctx, source(t, dir), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAGitFolderInsideIsMentioned(t *testing.T) {
	i := newInstaller(t)
	staged, err := i.Stage(t.Context(), source(t, files(t, map[string]string{"plugin.json": manifestJSON, ".git/config": "x"})), nil)
	must(t, err)
	if !slices.Equal(staged.Warnings, []Warning{{Code: "git-inside", Path: ".git"}}) {
		t.Errorf("got %+v", staged.Warnings)
	}
}

// C47: what the manifest starts is made executable, and what it does not start is
// not.
func TestEntryPointsAreMended(t *testing.T) {
	if onWindows() {
		return // there is no such bit
	}
	i := newInstaller(t)
	servers := `{"$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json", "mcpServers": {
		"a": {"type": "stdio", "command": "./bin/a"},
		"b": {"type": "stdio", "command": "./bin/b"},
		"link": {"type": "stdio", "command": "./bin/link"},
		"missing": {"type": "stdio", "command": "./bin/missing"},
		"path": {"type": "stdio", "command": "node"}}}`
	dir := files(t, map[string]string{"plugin.json": manifestJSON, "mcp.json": servers, "bin/a": "#!", "bin/b*": "#!", "bin/c": "#!", "node": "js"})
	must(t, os.Symlink("c", filepath.Join(dir, "bin", "link")))
	staged, err := i.Stage(t.Context(), source(t, dir), nil)
	must(t, err)
	if !slices.Equal(staged.Mended, []string{"bin/a"}) {
		t.Errorf("mended are %v", staged.Mended)
	}
	for name, want := range map[string]os.FileMode{"bin/a": 0o755, "bin/b": 0o755, "bin/c": 0o644, "node": 0o644} {
		info, err := os.Stat(filepath.Join(staged.Dir, name))
		must(t, err)
		if info.Mode().Perm() != want {
			t.Errorf("%s has %v", name, info.Mode())
		}
	}
	tree, err := artifact.Of(t.Context(), staged.Dir, artifact.Options{})
	must(t, err)
	if tree.Digest != staged.Digest {
		t.Error("the digest is not of what was mended")
	}
}

// Uninstalling a bundle of that name would take the approvals and the data of what the
// operator wrote by hand.
func TestTheNameOfTheOperatorsOwnConnectorsIsNoBundles(t *testing.T) {
	i := newInstaller(t)
	dir := files(t, map[string]string{"plugin.json": strings.Replace(manifestJSON, `"demo"`, `"connectors"`, 1)})
	refused(t, i, source(t, dir), "name-invalid")
	wantEmpty(t, i.config.Staging)
}
