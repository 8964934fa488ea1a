//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// bundle writes a plugin that is to be installed, at version, and returns its folder.
func (h *home) bundle(t *testing.T, version string) string {
	t.Helper()
	dir := filepath.Join(h.dir, "bundle")
	server, err := os.ReadFile(need(t, built.fakeserver))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"plugin.json":            encode(t, map[string]any{"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": "jotter", "version": version, "description": "keeps notes"}),
		"mcp.json":               encode(t, map[string]any{"$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json", "mcpServers": map[string]any{"main": map[string]any{"type": "stdio", "command": "./bin/server.exe", "args": []string{"polite"}}}}),
		"notice.txt":             []byte("first line\n"),
		"skills/commit/SKILL.md": []byte("---\nname: commit\ndescription: how to commit\n---\nDo it in small steps.\n"),
		"bin/server.exe":         server,
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if name == "bin/server.exe" {
			mode = 0o755
		}
		if err := os.WriteFile(path, content, mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestPluginsInABrowser: a plugin is installed from a folder, each part of its page is
// looked at, its files are compared with those approved, its server is started and
// stopped, it is updated, put back and removed; an approval is revoked after one
// question. Nothing of it violates the policy of the page.
func TestPluginsInABrowser(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.addFake("loud", "spills")
	dir := h.bundle(t, "1.0.0")
	s := h.serve()
	h.ok("approve", "loud", "--yes", "--tools", "echo")
	h.ok("policy", "set", "--tool", "loud/main:echo", "deny")
	p := h.sitDown(t, "plugins.mjs", "BUNDLE="+dir)

	p.says("change it")
	installed := h.data("plugins", "jotter")
	for name, text := range map[string]string{"notice.txt": "other line \u202e\n", "added.txt": "new\n"} {
		if err := os.WriteFile(filepath.Join(installed, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p.goOn()
	p.says("run the loud one")
	// As it was: a version that was changed by hand is not put back.
	if err := os.WriteFile(filepath.Join(installed, "notice.txt"), []byte("first line\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(installed, "added.txt")); err != nil {
		t.Fatal(err)
	}
	if code, body := s.send("POST", "/v1/plugins/loud/main/start", ""); code != 200 {
		t.Fatalf("starting it: %d %s", code, body)
	}
	h.bundle(t, "2.0.0")
	p.goOn()
	p.says("done")
	if _, err := os.Stat(installed); !os.IsNotExist(err) {
		t.Errorf("the plugin is still there: %v", err)
	}
	s.stop()
}

// addMany puts n small plugins into ~/.agents/plugins; none of them is ever run.
func (h *home) addMany(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		name := fmt.Sprintf("plugin-%04d", i)
		h.write(name, "plugin.json", encode(t, map[string]any{
			"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": name, "version": fmt.Sprintf("1.0.%d", i),
			"description": fmt.Sprintf("one of many, number %d", i),
		}), 0o644)
		h.write(name, "mcp.json", encode(t, map[string]any{
			"$schema":    "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json",
			"mcpServers": map[string]any{"main": map[string]any{"type": "stdio", "command": "./server.sh"}},
		}), 0o644)
		h.write(name, "server.sh", []byte("#!/bin/sh\nexit 1\n"), 0o755)
	}
}

// TestAThousandPluginsInABrowser: of a thousand plugins few rows are in the page, the
// search follows every letter, and the end is reached; a plugin whose texts try
// everything is shown as text.
func TestAThousandPluginsInABrowser(t *testing.T) {
	h := newHome(t)
	h.addMany(t, 1000)
	h.addFake("hostile", "polite")
	h.write("hostile", "plugin.json", encode(t, map[string]any{
		"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": "hostile", "version": "1.0.0",
		"description": "<img src=x onerror=alert(1)> \u202e \x1b[2J <script>alert(2)</script>" + strings.Repeat("long ", 500),
		"author":      map[string]any{"name": "<b>" + strings.Repeat("x", 3000)},
		"license":     "\u202eTIM", "homepage": "javascript:alert(3)",
	}), 0o644)
	h.write("hostile", "a\u202egpj.exe", []byte("x"), 0o644)
	h.write("hostile", strings.Repeat("deep-and-long-", 14)+".txt", []byte("x"), 0o644)
	h.write("hostile", "marks.txt", []byte(strings.Repeat("\u202e\u200b", 40_000)), 0o644)
	s := h.serve()
	p := h.sitDown(t, "plugins-many.mjs")
	p.says("done")
	_ = p.cmd.Wait()
	t.Log(p.errs.String())
	s.stop()
}

// TestEveryPageAtTwiceTheSize: at 200 % of a window of 1280x800 no page scrolls
// sideways, and all that can be pressed can be brought into view and is not covered.
func TestEveryPageAtTwiceTheSize(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.addFake("fake", "polite")
	h.addFake("other", "polite")
	s := h.serve()
	h.ok("approve", "fake", "--yes", "--tools", "echo")
	h.ok("policy", "set", "--tool", "fake/main:echo", "ask")
	h.addClient("claude")
	var asked struct{ ID string }
	code, body := s.send("POST", "/v1/plugins/other/main/ask", "")
	if err := json.Unmarshal(body, &asked); err != nil || asked.ID == "" {
		t.Fatalf("asking: %d %s %v", code, body, err)
	}
	p := h.sitDown(t, "twice.mjs", "QUESTION="+asked.ID)
	p.says("done")
	s.stop()
}
