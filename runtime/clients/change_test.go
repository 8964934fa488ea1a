package clients

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"sallyport/internal/coded"
)

var testLaunch = Launch{Command: "/opt/sallyport", Args: []string{"mcp", "--client", "x"}}

func mustPlan(t *testing.T, client string, system System, without ...string) *Change {
	t.Helper()
	c, _ := ByName(client)
	change, err := c.Plan(system, "", testLaunch, without...)
	if err != nil {
		t.Fatal(err)
	}
	return change
}

func mustApply(t *testing.T, change *Change, backups string) Record {
	t.Helper()
	record, err := change.Apply(backups, time.Now(), func(Record) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// tree is everything below a folder, with modes, to be compared whole.
func tree(t *testing.T, root string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&all, strings.TrimPrefix(path, root), info.Mode())
		if d.Type().IsRegular() {
			raw, err := os.ReadFile(path)
			fmt.Fprintf(&all, "%q\n", raw)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// TestConnectAndUndoEveryClient: on every system and in every encoding the entry is
// there after, what is removed is gone, and the undo leaves every byte as it was.
func TestConnectAndUndoEveryClient(t *testing.T) {
	for _, f := range fixtures() {
		for _, goos := range []string{"linux", "darwin", "windows"} {
			path := f.path(goos)
			if path == "" || f.scope != User || strings.Contains(path, "/settings.json") && f.client == "vscode" || f.client == "continue" && path != ".continue/config.yaml" {
				continue
			}
			for _, raw := range [][]byte{[]byte(f.text), []byte("\ufeff" + strings.ReplaceAll(f.text, "\n", "\r\n")), utf16Bytes(binary.BigEndian, true, f.text)} {
				home, backups := t.TempDir(), t.TempDir()
				put(t, filepath.Join(home, path), raw)
				if err := os.Chmod(filepath.Join(home, path), 0o640); err != nil {
					t.Fatal(err)
				}
				before := tree(t, home)
				system := System{OS: goos, Home: home}
				change := mustPlan(t, f.client, system, "files")
				if tree(t, home) != before {
					t.Fatalf("%s: planning changed something", f.client)
				}
				record := mustApply(t, change, backups)
				var names []string
				for _, e := range Read(system)[0].Entries {
					names = append(names, e.Name)
				}
				if got := strings.Join(names, " "); !strings.Contains(got, EntryName) || strings.Contains(got, "files") || !f.noAway && !strings.Contains(got, "away") {
					t.Errorf("%s %s: it holds %s", f.client, path, got)
				}
				if !strings.Contains(change.Diff, "+") || !strings.Contains(change.Diff, "~/"+path) || record.State() != Unchanged {
					t.Errorf("%s: state %s, difference\n%s", f.client, record.State(), change.Diff)
				}
				undo, err := PlanUndo(record, backups)
				if err != nil || !undo.Exact {
					t.Fatalf("%s: %+v %v", f.client, undo, err)
				}
				if err := undo.Apply(); err != nil {
					t.Fatal(err)
				}
				if after := tree(t, home); after != before {
					t.Errorf("%s on %s:\n%s\nbecame\n%s", f.client, goos, before, after)
				}
			}
		}
	}
}

// TestAFileThatWasNotThere is made with its folders, and the undo takes all away.
func TestAFileThatWasNotThere(t *testing.T) {
	for _, c := range Clients() {
		home, backups := t.TempDir(), t.TempDir()
		system := System{OS: runtime.GOOS, Home: home}
		before := tree(t, home)
		record := mustApply(t, mustPlan(t, c.Name, system), backups)
		found := Read(system)
		if len(found) != 1 || len(found[0].Entries) != 1 || found[0].Entries[0].Name != EntryName || found[0].Entries[0].Problem != nil || found[0].Client != c.Name {
			t.Fatalf("%s: %+v", c.Name, found)
		}
		undo, err := PlanUndo(record, backups)
		if err != nil {
			t.Fatal(err)
		}
		if err := undo.Apply(); err != nil || tree(t, home) != before {
			t.Errorf("%s: %v, left:\n%s", c.Name, err, tree(t, home))
		}
	}
}

// TestUndoOfAFileThatWasEditedSince takes out our entry, puts the removed ones back
// and keeps what others wrote.
func TestUndoOfAFileThatWasEditedSince(t *testing.T) {
	for client, row := range map[string]struct{ path, before, more, after string }{
		"cursor": {
			".cursor/mcp.json", "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}, // mine\n    \"b\": {\"command\": \"y\"}\n  }\n}\n", "\n// later\n",
			"{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"},\n    // mine\n    \"b\": {\"command\": \"y\"}\n  }\n}\n\n// later\n",
		},
		"codex": {
			".codex/config.toml", "[mcp_servers.a]\ncommand = \"x\"\n\n[mcp_servers.b]\ncommand = \"y\"\n", "\n[more]\nk = 1\n",
			"\n[mcp_servers.b]\ncommand = \"y\"\n\n[more]\nk = 1\n\n[mcp_servers.a]\ncommand = \"x\"\n",
		},
		"goose": {
			".config/goose/config.yaml", "extensions:\n  a:\n    cmd: x\n  b:\n    cmd: y\n", "more: 1\n",
			"extensions:\n  a:\n    cmd: x\n  b:\n    cmd: y\nmore: 1\n",
		},
	} {
		home, backups := t.TempDir(), t.TempDir()
		file := filepath.Join(home, row.path)
		put(t, file, []byte(row.before))
		record := mustApply(t, mustPlan(t, client, System{OS: "linux", Home: home}, "a"), backups)
		raw, _ := os.ReadFile(file)
		put(t, file, append(raw, row.more...))
		if got := record.State(); got != FileEdited {
			t.Errorf("%s: the state is %s", client, got)
		}
		undo, err := PlanUndo(record, backups)
		if err != nil || undo.Exact {
			t.Fatalf("%s: %+v, %v", client, undo, err)
		}
		if err := undo.Apply(); err != nil {
			t.Fatal(err)
		}
		if now, _ := os.ReadFile(file); string(now) != row.after {
			t.Errorf("%s became\n%s\nnot\n%s", client, now, row.after)
		}
	}
}

// TestWhatHasBecomeOfOurEntry.
func TestWhatHasBecomeOfOurEntry(t *testing.T) {
	home, backups := t.TempDir(), t.TempDir()
	file := filepath.Join(home, ".cursor", "mcp.json")
	record := mustApply(t, mustPlan(t, "cursor", System{OS: "linux", Home: home}), backups)
	written, _ := os.ReadFile(file)
	for _, row := range []struct {
		text string
		want State
	}{
		{string(written), Unchanged},
		{string(written) + "// c\n", FileEdited},
		{strings.Replace(string(written), "/opt/sallyport", "/tmp/evil", 1), EntryEdited},
		{`{"mcpServers": {}}`, EntryMissing},
		{`{"mcpServers": {`, Unreadable},
	} {
		put(t, file, []byte(row.text))
		if got := record.State(); got != row.want {
			t.Errorf("%s: %s", row.want, got)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := record.State(); got != EntryMissing {
		t.Errorf("without the file it is %s", got)
	}
	if _, err := PlanUndo(record, backups); coded.Of(err) != "client-file-gone" {
		t.Errorf("undo: %v", err)
	}
}

// TestWritesThatAreRefused, one reason at a time; nothing is changed and no path of
// the user's is told.
func TestWritesThatAreRefused(t *testing.T) {
	const file = ".cursor/mcp.json"
	for _, row := range []struct {
		what, code string
		before     func(t *testing.T, home string)
		between    func(t *testing.T, home string)
	}{
		{what: "a file that somebody changed between looking and writing", code: "changed-meanwhile",
			between: func(t *testing.T, home string) {
				put(t, filepath.Join(home, file), []byte(`{"mcpServers": {"new": {}}}`))
			}},
		{what: "a file that somebody made meanwhile", code: "changed-meanwhile",
			before:  func(t *testing.T, home string) { _ = os.Remove(filepath.Join(home, file)) },
			between: func(t *testing.T, home string) { put(t, filepath.Join(home, file), []byte(`{}`)) }},
		{what: "a file that somebody took away meanwhile", code: "changed-meanwhile",
			between: func(t *testing.T, home string) { _ = os.Remove(filepath.Join(home, file)) }},
		{what: "a file that is read-only", code: "client-file-read-only",
			before: func(t *testing.T, home string) { _ = os.Chmod(filepath.Join(home, file), 0o400) }},
		{what: "a link that leads out of the home folder", code: "client-link-outside",
			before: func(t *testing.T, home string) {
				outside := filepath.Join(t.TempDir(), "mcp.json")
				put(t, outside, []byte(`{}`))
				relink(t, outside, filepath.Join(home, file))
			}},
		{what: "a folder that leads out of the home folder", code: "client-link-outside",
			before: func(t *testing.T, home string) {
				_ = os.RemoveAll(filepath.Join(home, ".cursor"))
				relink(t, t.TempDir(), filepath.Join(home, ".cursor"))
			}},
		{what: "a link that leads to nothing", code: "client-link-outside",
			before: func(t *testing.T, home string) { relink(t, filepath.Join(home, "nothing"), filepath.Join(home, file)) }},
		{what: "a folder of the name", code: "client-file-unreadable",
			before: func(t *testing.T, home string) {
				_ = os.Remove(filepath.Join(home, file))
				_ = os.Mkdir(filepath.Join(home, file), 0o700)
			}},
		{what: "a file that cannot be understood", code: "client-file-unsafe",
			before: func(t *testing.T, home string) { put(t, filepath.Join(home, file), []byte(`{"mcpServers": `)) }},
		{what: "text in no encoding", code: "client-file-unreadable",
			before: func(t *testing.T, home string) { put(t, filepath.Join(home, file), []byte{'{', 0xff, '}'}) }},
	} {
		home := t.TempDir()
		put(t, filepath.Join(home, file), []byte(`{"mcpServers": {}}`))
		if row.before != nil {
			row.before(t, home)
		}
		c, _ := ByName("cursor")
		change, err := c.Plan(System{OS: "linux", Home: home}, "", testLaunch)
		var before string
		if err == nil {
			if row.between != nil {
				row.between(t, home)
			}
			before = tree(t, home)
			_, err = change.Apply(t.TempDir(), time.Now(), func(Record) error { return nil })
			if tree(t, home) != before {
				t.Errorf("%s: something was changed", row.what)
			}
		}
		var refusal *coded.Error
		if !errors.As(err, &refusal) || refusal.Code != row.code {
			t.Errorf("%s: %v", row.what, err)
			continue
		}
		if strings.Contains(refusal.Sentence+refusal.Next, home) {
			t.Errorf("%s: the path is told: %v", row.what, refusal)
		}
	}
}

func relink(t *testing.T, to, path string) {
	t.Helper()
	_ = os.Remove(path)
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

// TestALinkWithinHomeStays: the file behind it is written (dotfiles that are kept in
// a repository).
func TestALinkWithinHomeStays(t *testing.T) {
	home := t.TempDir()
	put(t, filepath.Join(home, "dotfiles", "mcp.json"), []byte("{}\n"))
	if err := os.Mkdir(filepath.Join(home, ".cursor"), 0o700); err != nil {
		t.Fatal(err)
	}
	relink(t, "../dotfiles/mcp.json", filepath.Join(home, ".cursor", "mcp.json"))
	before, backups := tree(t, home), t.TempDir()
	record := mustApply(t, mustPlan(t, "cursor", System{OS: "linux", Home: home}), backups)
	if info, err := os.Lstat(filepath.Join(home, ".cursor", "mcp.json")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Error("the link is gone")
	}
	if raw, _ := os.ReadFile(filepath.Join(home, "dotfiles", "mcp.json")); !strings.Contains(string(raw), EntryName) {
		t.Errorf("behind the link stands %s", raw)
	}
	undo, err := PlanUndo(record, backups)
	if err != nil {
		t.Fatal(err)
	}
	if err := undo.Apply(); err != nil || tree(t, home) != before {
		t.Errorf("undone it is\n%s: %v", tree(t, home), err)
	}
}

// TestAProject: a file of one project is written, where the client has one.
func TestAProject(t *testing.T) {
	home := t.TempDir()
	project := filepath.Join(home, "shop")
	if err := os.Mkdir(project, 0o700); err != nil {
		t.Fatal(err)
	}
	system := System{OS: "linux", Home: home}
	for client, file := range map[string]string{
		"cursor": ".cursor/mcp.json", "claude-code": ".mcp.json", "vscode": ".vscode/mcp.json", "codex": ".codex/config.toml", "gemini": ".gemini/settings.json",
		"zed": ".zed/settings.json", "opencode": "opencode.json", "continue": ".continue/mcpServers/sallyport.yaml", "claude-desktop": "", "windsurf": "", "goose": "", "lm-studio": "",
	} {
		c, _ := ByName(client)
		change, err := c.Plan(system, project, testLaunch)
		if file == "" {
			if coded.Of(err) != "client-no-project" {
				t.Errorf("%s: %v", client, err)
			}
			continue
		}
		if err != nil || change.File != "~/shop/"+file {
			t.Errorf("%s: %+v, %v", client, change, err)
			continue
		}
		backups := t.TempDir()
		record := mustApply(t, change, backups)
		if record.State() != Unchanged {
			t.Errorf("%s: %s", client, record.State())
		}
		undo, err := PlanUndo(record, backups)
		if err != nil {
			t.Fatal(err)
		}
		if err := undo.Apply(); err != nil {
			t.Error(err)
		}
	}
	if left, _ := os.ReadDir(project); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestThePackagedClaudeDesktop: where Windows keeps the files of a packaged program,
// its file is made there and not where it would never be read.
func TestThePackagedClaudeDesktop(t *testing.T) {
	home := t.TempDir()
	put(t, filepath.Join(home, "AppData/Roaming/Claude/claude_desktop_config.json"), []byte("{}"))
	folder := "AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude"
	system := System{OS: "windows", Home: home}
	if got := mustPlan(t, "claude-desktop", system).File; got != "~/AppData/Roaming/Claude/claude_desktop_config.json" {
		t.Errorf("without the package %s is written", got)
	}
	put(t, filepath.Join(home, folder, "other"), nil)
	if got := mustPlan(t, "claude-desktop", system).File; got != "~/"+folder+"/claude_desktop_config.json" {
		t.Errorf("with the package %s is written", got)
	}
}

// TestWhereANewFileIsMade: where the program keeps files already, and never where it
// would take the place of one that the program reads.
func TestWhereANewFileIsMade(t *testing.T) {
	home := t.TempDir()
	system := System{OS: "linux", Home: home}
	put(t, filepath.Join(home, ".cache/lm-studio/other"), nil)
	if got := mustPlan(t, "lm-studio", system).File; got != "~/.cache/lm-studio/mcp.json" {
		t.Errorf("%s is written", got)
	}
	put(t, filepath.Join(home, ".continue/config.json"), []byte(`{"models": []}`))
	c, _ := ByName("continue")
	if _, err := c.Plan(system, "", testLaunch); coded.Of(err) != "client-file-unsafe" || strings.Contains(err.Error(), home) {
		t.Errorf("beside an older file: %v", err)
	}
}

// TestABackupThatIsNotWhatItWas is not put back.
func TestABackupThatIsNotWhatItWas(t *testing.T) {
	home, backups := t.TempDir(), t.TempDir()
	put(t, filepath.Join(home, ".cursor/mcp.json"), []byte("{}\n"))
	record := mustApply(t, mustPlan(t, "cursor", System{OS: "linux", Home: home}), backups)
	put(t, filepath.Join(backups, record.Backup), []byte("{ }\n"))
	if _, err := PlanUndo(record, backups); coded.Of(err) != "backup-unusable" {
		t.Errorf("undo: %v", err)
	}
}
