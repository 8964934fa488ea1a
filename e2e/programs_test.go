//go:build linux

package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/keyringtest"
	"sallyport/internal/npmtest"
	"sallyport/runtime/clients"
)

// programToken is written out in the programs' configurations, and may be nowhere
// else afterwards but in the keyring.
const programToken = "ab" + "c9fK2mQ7xR4tV8wZ1bN5cJ3hL6pD0sYa"

// addPrograms gives a home a year of MCP servers in five agent programs, as their
// documentation shows them: real servers from npm, each written in another way.
func (h *home) addPrograms() (servers map[string]string) {
	h.t.Helper()
	servers = map[string]string{}
	for name, entry := range map[string]string{
		"filesystem": "server-filesystem", "memory": "server-memory", "everything": "server-everything",
	} {
		folder := filepath.Join(h.dir, "mcp", name)
		h.copyTree(npmtest.Install(h.t, filepath.Join("testdata", "plugins", name))+"/.", folder)
		servers[name] = filepath.Join(folder, "node_modules", "@modelcontextprotocol", entry, "dist", "index.js")
	}
	for _, folder := range []string{"Documents", "notes"} {
		if err := os.MkdirAll(filepath.Join(h.dir, folder), 0o700); err != nil {
			h.t.Fatal(err)
		}
	}
	for _, file := range []struct {
		name, text string
		mode       fs.FileMode
	}{
		{".config/Claude/claude_desktop_config.json", fmt.Sprintf(`{
  "globalShortcut": "",
  "mcpServers": {
    "files": {
      "command": "node",
      "args": [%q, "~/Documents"]
    }
  }
}`, servers["filesystem"]), 0o644},
		{".claude.json", fmt.Sprintf(`{"numStartups":12,"tipsHistory":{"x":3},"mcpServers":{"everything":{"type":"stdio","command":"node","args":[%q],"env":{"DEMO_API_KEY":%q}}},"projects":{"/nowhere":{"allowedTools":[],"mcpServers":{}}},"oauthAccount":{"x":"kept"}}`,
			servers["everything"], programToken), 0o600},
		{".cursor/mcp.json", strings.ReplaceAll(fmt.Sprintf("\ufeff{\n\t// servers of mine\n\t\"mcpServers\": {\n\t\t/* shared with Claude */\n\t\t\"docs\": {\n\t\t\t\"command\": \"node\",\n\t\t\t\"args\": [%q, \"~/Documents\"], // read only\n\t\t},\n\t\t\"memory\": {\"command\": \"node\", \"args\": [%q], \"env\": {\"MEMORY_FILE_PATH\": \"${userHome}/notes/memory.json\"}},\n\t},\n}\n",
			servers["filesystem"], servers["memory"]), "\n", "\r\n"), 0o644},
		{".codex/config.toml", fmt.Sprintf("# Codex\nmodel = \"gpt-5\"\n\n[mcp_servers.everything] # all of it\ncommand = \"node\"\nargs = [\n  %q, # the server\n]\nenv = { DEMO_API_KEY = %q }\n\n[tui]\nnotifications = true\n",
			servers["everything"], programToken), 0o600},
		{".config/goose/config.yaml", fmt.Sprintf("GOOSE_MODEL: gpt-4o # mine\nextensions:\n  developer:\n    bundled: true\n    enabled: true\n    name: developer\n    type: builtin\n  notes:\n    enabled: true\n    type: stdio\n    name: notes\n    cmd: node\n    args:\n      - %s\n      - %s\n    timeout: 300\n",
			servers["filesystem"], filepath.Join(h.dir, "notes")), 0o600},
	} {
		path := filepath.Join(h.dir, file.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			h.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(file.text), file.mode); err != nil {
			h.t.Fatal(err)
		}
		if err := os.Chmod(path, file.mode); err != nil {
			h.t.Fatal(err)
		}
	}
	return servers
}

// addCursor gives a home the configuration that the guide's page takes for granted.
func (h *home) addCursor() {
	h.t.Helper()
	path := filepath.Join(h.dir, ".cursor", "mcp.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	text := fmt.Sprintf("{\n  // mine\n  \"mcpServers\": {\n    \"weather\": {\"command\": \"node\", \"args\": [\"/srv/weather.js\"], \"env\": {\"WEATHER_API_KEY\": %q}}\n  }\n}\n", programToken)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// programFiles is every file of the five programs: bytes and mode, and with stamps
// its inode and time of writing too.
func (h *home) programFiles(stamps bool) string {
	h.t.Helper()
	var all strings.Builder
	for _, name := range []string{".config/Claude/claude_desktop_config.json", ".claude.json", ".cursor/mcp.json", ".codex/config.toml", ".config/goose/config.yaml"} {
		path := filepath.Join(h.dir, name)
		raw, err := os.ReadFile(path)
		if err != nil {
			h.t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			h.t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s %s %q\n", name, info.Mode(), raw)
		if stamps {
			fmt.Fprintln(&all, info.Sys().(*syscall.Stat_t).Ino, info.ModTime().UnixNano())
		}
	}
	return all.String()
}

// A newcomer with a year of MCP servers in five agent programs: import, approve,
// connect, work through the entries that were written, undo. In the end every file
// of theirs is as it was, byte for byte.
func TestFiveProgramsComeUnderProtectionAndBack(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.in(keyringtest.Unlocked(t))
	h.addPrograms()
	original, untouched := h.programFiles(false), h.programFiles(true)

	var looked struct {
		Files []struct{ Client string }
	}
	h.read(&looked, "import")
	if len(looked.Files) != 5 {
		t.Errorf("found %+v", looked)
	}
	var imported struct {
		Results []struct {
			Client, Name, Connector, SameAs string
			Kept                            []string
			Problem                         *struct{ Message string }
		}
	}
	h.read(&imported, "import", "--all", "--secrets", "keyring")
	connectors := map[string]string{}
	for _, r := range imported.Results {
		if r.Problem != nil {
			t.Fatalf("%s:%s: %s", r.Client, r.Name, r.Problem.Message)
		}
		connectors[r.Client+":"+r.Name] = r.Connector
	}
	for name, want := range map[string]string{
		"claude-code:everything": "connectors/everything", "codex:everything": "connectors/everything", "claude-desktop:files": "connectors/files",
		"cursor:docs": "connectors/files", "cursor:memory": "connectors/memory", "goose:notes": "connectors/notes",
	} {
		if connectors[name] != want {
			t.Errorf("%s is %q", name, connectors[name])
		}
	}
	if h.programFiles(true) != untouched {
		t.Fatal("importing touched a file of another program")
	}
	h.nowhereElse(programToken)
	for _, name := range []string{"everything", "files", "memory", "notes"} {
		id := "connectors/" + name
		if got := h.connector(id); got.State != "approval_required" {
			t.Errorf("%s before anybody was asked: %+v", id, got)
		}
		h.ok("approve", id, "--yes", "--all-tools")
	}
	programs := []string{"claude-desktop", "claude-code", "cursor", "codex", "goose"}
	for _, program := range programs {
		h.ok("connect", program, "--remove-imported", "--yes")
	}
	h.serve()
	h.writtenEntriesWork(t, programs)
	for _, program := range programs {
		h.ok("connect", program, "--undo", "--yes")
	}
	if now := h.programFiles(false); now != original {
		t.Errorf("after the undo:\n%s\nwas:\n%s", now, original)
	}
}

// writtenEntriesWork starts what each program would start now, and works with it.
func (h *home) writtenEntriesWork(t *testing.T, programs []string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, "Documents", "hello.txt"), []byte("a real file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, file := range clients.Read(clients.System{OS: "linux", Home: h.dir}) {
		if len(file.Entries) != 1 || file.Entries[0].Name != clients.EntryName {
			t.Errorf("%s still holds %+v", file.File, file.Entries)
			continue
		}
		entry := file.Entries[0]
		cmd := exec.Command(entry.Command, entry.Args...)
		cmd.Env, cmd.Dir = h.env, "/"
		agent := connectSDK(t, &sdk.CommandTransport{Command: cmd}, "")
		tools := agent.tools(t)
		name := ""
		for tool := range tools {
			if strings.Contains(tool, "files") && strings.HasSuffix(tool, "read_text_file") {
				name = tool
			}
		}
		if name == "" {
			t.Fatalf("%s offers %v", file.Client, tools)
		}
		result := agent.call(t, name, map[string]any{"path": filepath.Join(h.dir, "Documents", "hello.txt")})
		if text, ok := result.Content[0].(*sdk.TextContent); result.IsError || !ok || !strings.Contains(text.Text, "a real file") {
			t.Errorf("%s: %+v", file.Client, result)
		}
		seen[file.Client] = true
		agent.Close()
	}
	for _, program := range programs {
		if !seen[program] {
			t.Errorf("%s was not tried", program)
		}
	}
}

// nowhereElse looks for a credential in everything that Sallyport keeps.
func (h *home) nowhereElse(credential string) {
	h.t.Helper()
	for _, dir := range []string{h.data(), h.state(), filepath.Join(h.dir, ".config", "sallyport")} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			raw, err := os.ReadFile(path)
			if err == nil && strings.Contains(string(raw), credential) {
				h.t.Errorf("%s holds the credential", path)
			}
			return err
		})
		if err != nil {
			h.t.Fatal(err)
		}
	}
}
