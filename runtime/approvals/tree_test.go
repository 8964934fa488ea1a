package approvals_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/approvals/approvalstest"
	"sallyport/runtime/plugins"
)

func entries(t *testing.T, r *approvalstest.Rig) map[string]approvals.TreeEntry {
	t.Helper()
	tree, err := r.Gate.Tree(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]approvals.TreeEntry{}
	last := ""
	for _, e := range tree.Entries {
		if e.Path <= last {
			t.Errorf("%q stands after %q", e.Path, last)
		}
		by[e.Path], last = e, e.Path
	}
	return by
}

// TestTheFilesOfABundleAndWhatChangedOfThem: before an approval nothing is changed;
// afterwards each way in which a file can differ is said, one that is gone keeps its
// place, and both copies can be read.
func TestTheFilesOfABundleAndWhatChangedOfThem(t *testing.T) {
	r := approvalstest.New(t)
	r.Bundle("node", "server.js")
	r.Write("bin/tool", "#!/bin/sh\n", 0o755)
	r.Write("notice.txt", "first\n", 0o644)
	r.Write("gone.txt", "was here\n", 0o644)
	before := entries(t, r)
	if e := before["bin/tool"]; e.Kind != "file" || !e.Executable || e.Size != 10 || len(e.Sum) != 64 || e.Change != "" {
		t.Errorf("got %+v", e)
	}
	if e := before["bin"]; e.Kind != "folder" {
		t.Errorf("got %+v", e)
	}
	r.Approve(approvalstest.OfferOf("read_notes"), "read_notes")
	r.Write("notice.txt", "second \u202e\n", 0o644)
	r.Write("new.txt", "new\n", 0o644)
	if err := os.Remove(filepath.Join(r.Dir, "demo", "gone.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(r.Dir, "demo", "bin", "tool"), 0o644); err != nil {
		t.Fatal(err)
	}
	now := entries(t, r)
	for path, want := range map[string]string{"notice.txt": "modified", "new.txt": "added", "gone.txt": "removed", "bin/tool": "mode-changed", "plugin.json": ""} {
		if e, there := now[path]; !there || e.Change != want {
			t.Errorf("%s is %+v, not %q", path, e, want)
		}
	}
	for _, row := range []struct{ path, which, text string }{
		{"notice.txt", approvals.CopyNow, "second \u202e\n"}, {"notice.txt", approvals.CopyApproved, "first\n"},
		{"gone.txt", approvals.CopyApproved, "was here\n"}, {"new.txt", approvals.CopyNow, "new\n"},
	} {
		f, err := r.Gate.TreeFile(t.Context(), r.ID, row.path, row.which)
		if err != nil || f.Text != row.text || f.Left != "" {
			t.Errorf("%s, %s: %+v %v", row.path, row.which, f, err)
		}
	}
}

// TestOnlyWhatIsListedCanBeRead: a path is looked up in the list and never followed.
func TestOnlyWhatIsListedCanBeRead(t *testing.T) {
	r := approvalstest.New(t)
	r.Bundle("node", "server.js")
	r.Write("dir/inside.txt", "in\n", 0o644)
	r.WriteOutside("secret.txt", "outside\n", 0o644)
	if err := os.Symlink("inside.txt", filepath.Join(r.Dir, "demo", "dir", "link")); err != nil {
		t.Fatal(err)
	}
	r.Approve(approvalstest.OfferOf("read_notes"), "read_notes")
	for _, path := range []string{
		"", ".", "..", "../secret.txt", "dir/../../secret.txt", "dir", "dir/link", "/etc/passwd", filepath.Join(r.Dir, "secret.txt"),
		"dir/./inside.txt", "dir//inside.txt", "dir\\inside.txt", "inside.txt", "dir/inside.txt\x00", "DIR/INSIDE.TXT",
	} {
		for _, which := range []string{approvals.CopyNow, approvals.CopyApproved} {
			f, err := r.Gate.TreeFile(t.Context(), r.ID, path, which)
			if coded.Of(err) != "file-unknown" || f.Text != "" {
				t.Errorf("%q, %s: %+v %v", path, which, f, err)
			}
			if err != nil && strings.Contains(err.Error(), r.Dir) {
				t.Errorf("%q: the refusal shows a path: %v", path, err)
			}
		}
	}
	if _, err := r.Gate.TreeFile(t.Context(), r.ID, "dir/inside.txt", "other"); coded.Of(err) != "bad-request" {
		t.Errorf("another copy: %v", err)
	}
}

// TestWhatHasNoTextHasSizeAndDigest: no file costs more than its bound, and bytes that
// are no text are not shown as one.
func TestWhatHasNoTextHasSizeAndDigest(t *testing.T) {
	r := approvalstest.New(t)
	r.Bundle("node", "server.js")
	r.Write("binary", "a\x00b", 0o644)
	r.Write("latin1", "caf\xe9", 0o644)
	r.Write("large.txt", strings.Repeat("a", 256<<10+1), 0o644)
	r.Write("fits.txt", strings.Repeat("a", 256<<10), 0o644)
	for path, left := range map[string]string{"binary": "binary", "latin1": "binary", "large.txt": "too-large", "fits.txt": ""} {
		f, err := r.Gate.TreeFile(t.Context(), r.ID, path, approvals.CopyNow)
		if err != nil || f.Left != left || left != "" && f.Text != "" || f.Size == 0 || len(f.Sum) != 64 {
			t.Errorf("%s: left %q, %d bytes of text, %v", path, f.Left, len(f.Text), err)
		}
	}
	if _, err := r.Gate.TreeFile(t.Context(), r.ID, "binary", approvals.CopyApproved); coded.Of(err) != "file-unknown" {
		t.Errorf("a copy that nobody approved: %v", err)
	}
}

// TestACopyHidesWhatItDeclaresItself: a credential that is written out in the approved
// copy stays hidden after an update and after a removal, when nobody else knows it; and
// in a package whose credential nobody replaced yet.
func TestACopyHidesWhatItDeclaresItself(t *testing.T) {
	r := approvalstest.New(t)
	const password = `pass"w\ord-of-notes`
	declare := func(vars map[string]string) {
		r.WriteJSON("mcp.json", map[string]any{
			"$schema":    "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json",
			"mcpServers": map[string]any{"main": map[string]any{"type": "stdio", "command": "node", "args": []string{}, "env": vars}},
		})
	}
	r.Bundle("node")
	declare(map[string]string{"TOKEN": aToken, "STORE_PASSWORD": password, "MODE": "fast"})
	r.Write("notes.txt", "try "+aToken+" or "+password+" in fast\n", 0o644)
	hides := func(when, which, path string) {
		t.Helper()
		f, err := r.Gate.TreeFile(t.Context(), r.ID, path, which)
		if err != nil || !strings.Contains(f.Text, "(hidden)") || !strings.Contains(f.Text, "fast") ||
			strings.Contains(f.Text, aToken) || strings.Contains(f.Text, "ord-of-notes") {
			t.Errorf("%s, %s of %s: %+v %v", when, which, path, f, err)
		}
	}
	hides("before anything is replaced", approvals.CopyNow, "mcp.json")
	r.Edit(func(c *plugins.Connector) {
		c.Launch.Replaced, c.Launch.Env = c.Launch.Env, []plugins.Value{{Name: "TOKEN", Value: "secret:NOTES", FromOperator: true}}
		c.Requested.Secrets = []string{"NOTES"}
	})
	r.Approve(offer, "read_notes")
	for _, path := range []string{"mcp.json", "notes.txt"} {
		hides("approved", approvals.CopyNow, path)
		hides("approved", approvals.CopyApproved, path)
	}
	declare(map[string]string{"MODE": "fast"})
	r.Write("notes.txt", "fast\n", 0o644)
	for _, path := range []string{"mcp.json", "notes.txt"} {
		hides("updated", approvals.CopyApproved, path)
	}
	diff, err := r.Gate.Diff(t.Context(), r.ID)
	said, _ := json.Marshal(diff)
	if err != nil || !strings.Contains(string(said), "(hidden)") || strings.Contains(string(said), aToken) || strings.Contains(string(said), "ord-of-notes") {
		t.Errorf("the difference: %s, %v", said, err)
	}
	if err := os.RemoveAll(r.Root); err != nil {
		t.Fatal(err)
	}
	hides("removed", approvals.CopyApproved, "mcp.json")
}
