//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/npmtest"
)

// One real npm server in every format that needs no packing, and as a connector of
// one's own by the whole path of node: approved, called, and its file lies where the
// format's own words put it.
func TestARealServerInEveryFormat(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	installed := npmtest.Install(t, filepath.Join("testdata", "plugins", "memory"))
	const script = "node_modules/@modelcontextprotocol/server-memory/dist/index.js"
	h.copyTree(installed+"/.", h.plugin("for-claude"))
	h.file(h.plugin("for-claude", ".claude-plugin", "plugin.json"), `{
  "name": "for-claude", "version": "1.0.0", "hooks": "./hooks.json",
  "mcpServers": {"memory": {"type": "stdio", "command": "node", "args": ["${CLAUDE_PLUGIN_ROOT}/`+script+`"],
    "env": {"MEMORY_FILE_PATH": "${CLAUDE_PLUGIN_DATA}/memory.jsonl"}}}
}`)
	h.copyTree(installed+"/.", h.plugin("for-codex"))
	h.file(h.plugin("for-codex", ".codex-plugin", "plugin.json"), `{"name": "for-codex", "version": "1.0.0", "mcpServers": "./.mcp.json", "interface": {"displayName": "Memory"}}`)
	h.file(h.plugin("for-codex", ".mcp.json"), `{"mcpServers": {"memory": {"command": "node", "args": ["./`+script+`"], "env": {"MEMORY_FILE_PATH": "${PLUGIN_DATA}/memory.jsonl"}}}}`)
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	h.ok("connectors", "add", "memory", "--env", "MEMORY_FILE_PATH=${PLUGIN_DATA}/memory.jsonl", "--", node, filepath.Join(installed, script))

	for id, file := range map[string]string{
		"for-claude/memory": h.data("plugin-data", "for-claude", "memory.jsonl"),
		"for-codex/memory":  h.data("plugin-data", "for-codex", "memory.jsonl"),
		"connectors/memory": h.data("plugin-data", "connectors", "memory", "memory.jsonl"),
	} {
		if got := h.connector(id); got.State != "approval_required" || got.Reason != "never-approved" {
			t.Errorf("%s before anybody was asked: %+v", id, got)
		}
		h.ok("approve", id, "--yes", "--all-tools")
		h.ok("call", id, "create_entities", "--args", `{"entities":[{"name":"Ada","entityType":"person","observations":["wrote notes"]}]}`)
		if out := h.ok("call", id, "read_graph"); !strings.Contains(out, "wrote notes") {
			t.Errorf("%s answers %s", id, out)
		}
		if raw, err := os.ReadFile(file); err != nil || !strings.Contains(string(raw), "Ada") {
			t.Errorf("%s keeps %q %v", id, raw, err)
		}
	}
	if out := h.ok("plugins", "show", "for-claude"); !strings.Contains(out, "not run by Sallyport") {
		t.Errorf("what is for Claude Code alone is not said:\n%s", out)
	}
}

func (h *home) file(path, text string) {
	h.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}
