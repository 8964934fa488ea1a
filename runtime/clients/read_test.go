package clients

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
)

// fixture is a client's file as its public documentation shows it, with one server
// "files" (node /srv/files.js, FILES_LOG=quiet) and one server "away" at an address.
type fixture struct {
	client, file string
	// linux, darwin and windows are the file's places; "" is file on each.
	linux, darwin, windows string
	text                   string
	scope                  Scope
	noAway                 bool // the client takes commands only
}

func fixtures() []fixture {
	classic := `{"mcpServers": {
  "files": {"command": "node", "args": ["/srv/files.js"], "env": {"FILES_LOG": "quiet"}},
  "away": {"url": "https://mcp.example.com/mcp", "headers": {"X-Team": "red"}}
}}`
	vs := `{
  // what the editor asks for
  "inputs": [{"type": "promptString", "id": "key", "description": "A key", "password": true}],
  "servers": {
    "files": {"type": "stdio", "command": "node", "args": ["/srv/files.js"], "env": {"FILES_LOG": "quiet"}},
    "away": {"type": "http", "url": "https://mcp.example.com/mcp", "headers": {"X-Team": "red"}},
  },
}`
	return []fixture{
		{client: "claude-desktop", linux: ".config/Claude/claude_desktop_config.json", darwin: "Library/Application Support/Claude/claude_desktop_config.json",
			windows: "AppData/Roaming/Claude/claude_desktop_config.json", text: classic, scope: User},
		{client: "claude-desktop", windows: "AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json", text: classic, scope: User},
		{client: "claude-code", file: ".claude.json", text: `{"numStartups": 3, "mcpServers": {
  "files": {"type": "stdio", "command": "node", "args": ["/srv/files.js"], "env": {"FILES_LOG": "quiet"}},
  "away": {"type": "http", "url": "https://mcp.example.com/mcp", "headers": {"X-Team": "red"}}}, "projects": {}}`, scope: User},
		{client: "cursor", file: ".cursor/mcp.json", text: classic, scope: User},
		{client: "vscode", linux: ".config/Code/User/mcp.json", darwin: "Library/Application Support/Code/User/mcp.json", windows: "AppData/Roaming/Code/User/mcp.json", text: vs, scope: User},
		{client: "vscode", linux: ".config/Code/User/profiles/-4a5b/mcp.json", darwin: "Library/Application Support/Code/User/profiles/-4a5b/mcp.json",
			windows: "AppData/Roaming/Code/User/profiles/-4a5b/mcp.json", text: vs, scope: Profile},
		{client: "vscode", linux: ".config/Code/User/settings.json", darwin: "Library/Application Support/Code/User/settings.json", windows: "AppData/Roaming/Code/User/settings.json",
			text: `{"editor.fontSize": 14, "mcp": ` + vs + `}`, scope: User},
		{client: "vscode-insiders", linux: ".config/Code - Insiders/User/mcp.json", darwin: "Library/Application Support/Code - Insiders/User/mcp.json",
			windows: "AppData/Roaming/Code - Insiders/User/mcp.json", text: vs, scope: User},
		{client: "windsurf", file: ".codeium/windsurf/mcp_config.json", text: strings.Replace(classic, `"url"`, `"serverUrl"`, 1), scope: User},
		{client: "codex", file: ".codex/config.toml", text: `model = "o4"

[mcp_servers.files]
command = "node"
args = ["/srv/files.js"]
env = { FILES_LOG = "quiet" }

[mcp_servers.away]
url = "https://mcp.example.com/mcp"
http_headers = { "X-Team" = "red" }
`, scope: User},
		{client: "gemini", file: ".gemini/settings.json", text: strings.Replace(classic, `"url"`, `"httpUrl"`, 1), scope: User},
		{client: "zed", linux: ".config/zed/settings.json", darwin: ".config/zed/settings.json", windows: "AppData/Roaming/Zed/settings.json", text: `// Zed settings
{
  "theme": "One Dark",
  "context_servers": {
    "files": {"source": "custom", "command": "node", "args": ["/srv/files.js"], "env": {"FILES_LOG": "quiet"}},
    "away": {"url": "https://mcp.example.com/mcp", "headers": {"X-Team": "red"}},
  },
}`, scope: User},
		{client: "zed", linux: ".config/zed/settings.json", darwin: ".config/zed/settings.json", windows: "AppData/Roaming/Zed/settings.json",
			text: `{"context_servers": {"files": {"source": "custom", "command": {"path": "node", "args": ["/srv/files.js"], "env": {"FILES_LOG": "quiet"}}}}}`, scope: User, noAway: true},
		{client: "lm-studio", file: ".lmstudio/mcp.json", text: classic, scope: User},
		{client: "lm-studio", file: ".cache/lm-studio/mcp.json", text: classic, scope: User},
		{client: "goose", linux: ".config/goose/config.yaml", darwin: ".config/goose/config.yaml", windows: "AppData/Roaming/Block/goose/config/config.yaml", text: `GOOSE_MODEL: gpt-4o
extensions:
  developer:
    enabled: true
    type: builtin
    name: developer
  files:
    enabled: true
    type: stdio
    name: files
    cmd: node
    args:
      - /srv/files.js
    envs:
      FILES_LOG: quiet
    timeout: 300
  away:
    enabled: true
    type: streamable_http
    name: away
    uri: https://mcp.example.com/mcp
    headers:
      X-Team: red
`, scope: User},
		{client: "opencode", file: ".config/opencode/opencode.json", text: `{"$schema": "https://opencode.ai/config.json", "mcp": {
  "files": {"type": "local", "command": ["node", "/srv/files.js"], "environment": {"FILES_LOG": "quiet"}, "enabled": true},
  "away": {"type": "remote", "url": "https://mcp.example.com/mcp", "headers": {"X-Team": "red"}}}}`, scope: User},
		{client: "opencode", file: ".config/opencode/opencode.jsonc", text: `{"mcp": {"servers": {
  "files": {"type": "local", "command": ["node", "/srv/files.js"], "environment": {"FILES_LOG": "quiet"}},
  "away": {"type": "remote", "url": "https://mcp.example.com/mcp", "headers": {"X-Team": "red"}}}}} // newer`, scope: User},
		{client: "continue", file: ".continue/config.yaml", text: `name: Mine
version: 0.0.1
schema: v1
mcpServers:
  - name: files
    command: node
    args:
      - /srv/files.js
    env:
      FILES_LOG: quiet
  - name: away
    type: streamable-http
    url: https://mcp.example.com/mcp
    requestOptions:
      headers:
        X-Team: red
`, scope: User},
		{client: "continue", file: ".continue/config.json", text: `{"experimental": {"modelContextProtocolServers": [
  {"name": "files", "transport": {"type": "stdio", "command": "node", "args": ["/srv/files.js"], "env": {"FILES_LOG": "quiet"}}}]}}`, scope: User, noAway: true},
		{client: "continue", file: ".continue/mcpServers/mine.yaml", text: "name: m\nversion: 0.0.1\nschema: v1\nmcpServers:\n- name: files\n  command: node\n  args: [/srv/files.js]\n  env: {FILES_LOG: quiet}\n", scope: User, noAway: true},
		{client: "continue", file: ".continue/mcpServers/mine.json", text: classic, scope: User},
		{client: "cursor", file: "project/.cursor/mcp.json", text: classic, scope: Project},
		{client: "claude-code", file: "project/.mcp.json", text: classic, scope: Project},
		{client: "vscode", file: "project/.vscode/mcp.json", text: vs, scope: Project},
		{client: "vscode", file: "project/.vscode/settings.json", text: `{"mcp": ` + vs + `}`, scope: Project},
		{client: "codex", file: "project/.codex/config.toml", text: "[mcp_servers]\nfiles = {command = \"node\", args = [\"/srv/files.js\"], env = {FILES_LOG = \"quiet\"}}\n", scope: Project, noAway: true},
		{client: "gemini", file: "project/.gemini/settings.json", text: strings.Replace(classic, `"url"`, `"httpUrl"`, 1), scope: Project},
		{client: "zed", file: "project/.zed/settings.json", text: strings.Replace(classic, "mcpServers", "context_servers", 1), scope: Project},
		{client: "opencode", file: "project/opencode.jsonc", text: `{"mcp": {"files": {"type": "local", "command": ["node", "/srv/files.js"], "environment": {"FILES_LOG": "quiet"}}}}`, scope: Project, noAway: true},
		{client: "opencode", file: "project/.opencode/opencode.json", text: `{"mcp": {"files": {"type": "local", "command": ["node", "/srv/files.js"], "environment": {"FILES_LOG": "quiet"}}}}`, scope: Project, noAway: true},
		{client: "continue", file: "project/.continue/mcpServers/x.yaml", text: "mcpServers:\n  - {name: files, command: node, args: [/srv/files.js], env: {FILES_LOG: quiet}}\n", scope: Project, noAway: true},
	}
}

func (f fixture) path(goos string) string {
	if f.file != "" {
		return f.file
	}
	return map[string]string{"linux": f.linux, "darwin": f.darwin, "windows": f.windows}[goos]
}

func put(t testing.TB, path string, raw []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

func utf16Bytes(order binary.ByteOrder, mark bool, text string) (raw []byte) {
	if mark {
		text = "\ufeff" + text
	}
	for _, unit := range utf16.Encode([]rune(text)) {
		two := make([]byte, 2)
		order.PutUint16(two, unit)
		raw = append(raw, two...)
	}
	return raw
}

// TestEveryClientOnEverySystem: each file that the public documentation of a client
// names is found and read, in every way in which text is written.
func TestEveryClientOnEverySystem(t *testing.T) {
	written := map[string]func(string) []byte{
		"UTF-8":                   func(s string) []byte { return []byte(s) },
		"UTF-8 with a mark":       func(s string) []byte { return []byte("\ufeff" + s) },
		"UTF-16LE":                func(s string) []byte { return utf16Bytes(binary.LittleEndian, true, s) },
		"UTF-16BE":                func(s string) []byte { return utf16Bytes(binary.BigEndian, true, s) },
		"UTF-16LE without a mark": func(s string) []byte { return utf16Bytes(binary.LittleEndian, false, s) },
		"lines ended by CRLF":     func(s string) []byte { return []byte(strings.ReplaceAll(s, "\n", "\r\n")) },
	}
	covered := map[string]bool{}
	for _, f := range fixtures() {
		for _, goos := range []string{"linux", "darwin", "windows"} {
			if f.path(goos) == "" {
				continue
			}
			covered[f.client+" "+goos] = true
			for how, encode := range written {
				t.Run(fmt.Sprintf("%s %s %s %s", f.client, goos, f.path(goos), how), func(t *testing.T) {
					home := t.TempDir()
					put(t, filepath.Join(home, f.path(goos)), encode(f.text))
					found := Read(System{OS: goos, Home: home}, filepath.Join(home, "project"))
					if len(found) != 1 {
						t.Fatalf("found %+v", found)
					}
					f.check(t, found[0], goos)
				})
			}
		}
	}
	for _, c := range Clients() {
		for _, goos := range []string{"linux", "darwin", "windows"} {
			if !covered[c.Name+" "+goos] {
				t.Errorf("%s on %s has no fixture", c.Name, goos)
			}
		}
	}
}

func (f fixture) check(t *testing.T, got Found, goos string) {
	t.Helper()
	if got.Client != f.client || got.Scope != f.scope || got.File != "~/"+f.path(goos) || got.Problem != nil || got.Recognised == "" {
		t.Errorf("found %+v", got)
	}
	want := 2
	if f.noAway {
		want = 1
	}
	if len(got.Entries) != want {
		t.Fatalf("%d entries: %+v", len(got.Entries), got.Entries)
	}
	files := got.Entries[0]
	if files.Name != "files" || files.Transport != Stdio || files.Command != "node" || !slices.Equal(files.Args, []string{"/srv/files.js"}) ||
		!slices.Equal(files.Env, []Pair{{"FILES_LOG", "quiet"}}) || files.Problem != nil || files.Place.Line == 0 {
		t.Errorf("files is %+v", files)
	}
	if f.noAway {
		return
	}
	away := got.Entries[1]
	if away.Name != "away" || away.Transport != StreamableHTTP || away.URL != "https://mcp.example.com/mcp" ||
		!slices.Equal(away.Headers, []Pair{{"X-Team", "red"}}) || away.Problem != nil {
		t.Errorf("away is %+v", away)
	}
}

// TestProjectsOfClaudeCode: the user's file holds servers of single projects too.
func TestProjectsOfClaudeCode(t *testing.T) {
	home := t.TempDir()
	project := filepath.Join(home, "code", "shop")
	put(t, filepath.Join(home, ".claude.json"), fmt.Appendf(nil, `{"mcpServers": {"all": {"command": "a"}}, "projects": {
  %q: {"mcpServers": {"one": {"command": "b"}}}, "/elsewhere": {"mcpServers": {}}}}`, project))
	found := Read(System{OS: "linux", Home: home})
	if len(found) != 2 || found[0].Scope != User || found[0].Entries[0].Name != "all" {
		t.Fatalf("found %+v", found)
	}
	if p := found[1]; p.Scope != Project || p.Project != "~/code/shop" || len(p.Entries) != 1 || p.Entries[0].Name != "one" {
		t.Errorf("the project is %+v", p)
	}
}

// TestVariablesOfTheSystemMoveFiles: what the environment says about places counts.
func TestVariablesOfTheSystemMoveFiles(t *testing.T) {
	home := t.TempDir()
	at := func(name string) string { return filepath.Join(home, name) }
	system := NewSystem("linux", home, []string{"XDG_CONFIG_HOME=" + at("cfg"), "CODEX_HOME=" + at("cdx"), "CLAUDE_CONFIG_DIR=" + at("cld"), "APPDATA=relative"})
	put(t, at("cfg/Code/User/mcp.json"), []byte(`{"servers": {"a": {"command": "x"}}}`))
	put(t, at("cdx/config.toml"), []byte("[mcp_servers.b]\ncommand = 'x'\n"))
	put(t, at("cld/.claude.json"), []byte(`{"mcpServers": {"c": {"command": "x"}}}`))
	var names []string
	for _, f := range Read(system) {
		for _, e := range f.Entries {
			names = append(names, f.Client+":"+e.Name)
		}
	}
	if !slices.Equal(names, []string{"claude-code:c", "codex:b", "vscode:a"}) || system.Roaming != "" {
		t.Errorf("found %v", names)
	}
}

// TestOneBadEntryHurtsNobodyElse (C29): each has its own reason and place.
func TestOneBadEntryHurtsNobodyElse(t *testing.T) {
	for _, row := range []struct{ what, text, says string }{
		{"no command", `{"args": ["y"]}`, "neither a command nor an address"},
		{"text", `"oops"`, "it is text and not an object"},
		{"a number as command", `{"command": 1}`, "command is a number"},
		{"null", `null`, "it is null"},
		{"a number in env", `{"command": "x", "env": {"PORT": 3000}}`, `the value of "PORT" is a number and not text`},
		{"a number in args", `{"command": "x", "args": [1]}`, "an argument is a number"},
		{"args as text", `{"command": "x", "args": "-y"}`, "what should be a list of text is text"},
		{"an empty command", `{"command": " "}`, "command is empty"},
		{"a name twice in it", `{"command": "x", "command": "y"}`, `"command" stands twice`},
		{"a NUL", `{"command": "x\u0000env:A\u0000"}`, "NUL"},
		{"command and url", `{"command": "x", "url": "https://a.example"}`, "a command and an address"},
		{"stdio with url", `{"type": "stdio", "url": "https://a.example"}`, "its type is for a command"},
		{"http with command", `{"type": "http", "command": "x"}`, "its type is for an address"},
		{"websocket", `{"type": "websocket", "url": "https://a.example"}`, `"websocket"`},
		{"two addresses", `{"url": "https://a.example", "serverUrl": "https://b.example"}`, "two addresses"},
		{"a file of variables", `{"command": "x", "envFile": ".env"}`, "variables from a file"},
	} {
		found := Parse(System{OS: "linux"}, "m.json", []byte("{\"mcpServers\": {\n  \"good\": {\"command\": \"x\"},\n  \"bad\": "+row.text+"\n}}"))
		if len(found) != 1 || len(found[0].Entries) != 2 || found[0].Entries[0].Problem != nil {
			t.Fatalf("%s: %+v", row.what, found)
		}
		bad := found[0].Entries[1]
		if bad.Problem == nil || !strings.Contains(bad.Problem.Sentence, row.says) || !strings.Contains(bad.Problem.Sentence, "line 3, column 3") {
			t.Errorf("%s: %v", row.what, bad.Problem)
		}
	}
}

// TestTransportWords (C33).
func TestTransportWords(t *testing.T) {
	for entry, want := range map[string]Transport{
		`{"url": "https://x.example/mcp"}`:                                         StreamableHTTP,
		`{"type": "http", "url": "https://x.example/mcp"}`:                         StreamableHTTP,
		`{"type": "HTTP", "url": "https://x.example/mcp"}`:                         StreamableHTTP,
		`{"type": "streamable-http", "url": "https://x.example/mcp"}`:              StreamableHTTP,
		`{"type": "streamableHttp", "url": "https://x.example/mcp"}`:               StreamableHTTP,
		`{"type": "streamable_http", "uri": "https://x.example/mcp"}`:              StreamableHTTP,
		`{"type": "sse", "url": "https://x.example/mcp"}`:                          SSE,
		`{"baseUrl": "https://x.example/mcp"}`:                                     StreamableHTTP,
		`{"transport": {"type": "sse", "url": "https://x.example/mcp"}}`:           SSE,
		`{"transport": "sse", "url": "https://x.example/mcp"}`:                     SSE,
		`{"type": "stdio", "command": "x"}`:                                        Stdio,
		`{"type": "local", "command": ["x", "y"]}`:                                 Stdio,
		`{"command": "x", "url": null, "type": null, "args": null, "env": null}`:   Stdio,
		`{"command": "x", "url": "", "disabled": true, "alwaysAllow": ["a", "b"]}`: Stdio,
	} {
		found := Parse(System{OS: "linux"}, "m.json", []byte(`{"mcpServers": {"x": `+entry+`}}`))
		if e := found[0].Entries[0]; e.Transport != want || e.Problem != nil {
			t.Errorf("%s is %q: %v", entry, e.Transport, e.Problem)
		}
	}
	home := t.TempDir()
	put(t, filepath.Join(home, ".gemini/settings.json"), []byte(`{"mcpServers": {"a": {"url": "https://x.example/sse"}, "b": {"httpUrl": "https://x.example/mcp"}}}`))
	got := Read(System{OS: "linux", Home: home})[0].Entries
	if got[0].Transport != SSE || got[1].Transport != StreamableHTTP {
		t.Errorf("Gemini's url is %q and its httpUrl %q", got[0].Transport, got[1].Transport)
	}
}

// TestWhichShape (C30): the documented ones are recognised, and what is none is said
// to be none.
func TestWhichShape(t *testing.T) {
	for _, row := range []struct {
		name, text, recognised string
		entries                int
		code                   string
	}{
		{"flat.json", `{"context7": {"command": "npx"}}`, "servers by name", 1, ""},
		{"a.json", `{"mcpServers": {"a": {"command": "x"}}}`, "mcpServers", 1, ""},
		{"a.json", `{"servers": {"a": {"command": "x"}}, "inputs": []}`, "VS Code mcp.json", 1, ""},
		{"a.json", `{"mcp": {"servers": {"a": {"command": "x"}}}}`, "VS Code settings", 1, ""},
		{"a.json", `{"mcp": {"x": {"type": "local", "command": ["npx", "-y", "p"], "environment": {}}}}`, "OpenCode", 1, ""},
		{"a.yaml", "mcpServers:\n- name: a\n  command: x\n", "Continue", 1, ""},
		{"a.yaml", "extensions:\n  a: {type: stdio, cmd: x}\n", "Goose", 1, ""},
		{"a.toml", "[mcp_servers.a]\ncommand = 'x'\n", "Codex", 1, ""},
		{"a.json", `{"context_servers": {"a": {"command": "x"}}}`, "Zed", 1, ""},
		{"a.json", `{"mcpServers": {}}`, "mcpServers", 0, ""},
		{"a.json", ``, "mcpServers", 0, ""},
		{"a.json", `{"name": "p", "command": "p", "args": []}`, "", 0, "not-an-mcp-configuration"},
		{"a.json", `[]`, "", 0, "not-an-mcp-configuration"},
		{"a.json", `"text"`, "", 0, "not-an-mcp-configuration"},
		{"a.json", `{"MCPSERVERS": {"a": {"command": "x"}}}`, "mcpServers", 0, "client-file-invalid"},
		{"a.json", `{"mcpServers": {}, "mcpServers": {}}`, "mcpServers", 0, "client-file-invalid"},
		{"a.json", `{"mcpServers": "none"}`, "mcpServers", 0, "client-file-invalid"},
	} {
		found := Parse(System{OS: "linux"}, row.name, []byte(row.text))
		code := ""
		if found[0].Problem != nil {
			code = found[0].Problem.Code
		}
		if len(found) != 1 || !strings.Contains(found[0].Recognised, row.recognised) || len(found[0].Entries) != row.entries || code != row.code {
			t.Errorf("%s %s: %+v", row.name, row.text, found)
		}
	}
}

// TestWhatCannotBeUnderstoodIsNamed (C27): with line and column, and never as no
// servers.
func TestWhatCannotBeUnderstoodIsNamed(t *testing.T) {
	for _, row := range []struct {
		name, says string
		raw        []byte
	}{
		{"a.json", "line 2, column 7", []byte("{\n  \"a\" 1}")},
		{"a.json", "line", []byte(`{"mcpServers": {"a": {"command": "x"}`)},
		{"a.json", "nested too deeply", []byte(strings.Repeat("[", 100_000))},
		{"a.json", "nested too deeply", []byte(strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300))},
		{"a.toml", "line 2", []byte("a = 1\nb = = 2\n")},
		{"a.toml", "TOML", []byte("[mcp_servers.a]\n[mcp_servers.a]\n")},
		{"a.yaml", "line", []byte("a: [1\nb: 2\n")},
		{"a.yaml", "unique names", []byte("extensions:\n  a: {cmd: x}\n  a: {cmd: y}\n")},
		{"a.yaml", "nested", []byte(strings.Repeat("[", 500))},
		{"a.yaml", "more than one", []byte("a: 1\n---\nb: 2\n")},
		{"a.json", "neither UTF-8 nor UTF-16", []byte{'{', 0xff, 0xfe, '}'}},
		{"a.json", "NUL", []byte("{}\x00\x00x")},
	} {
		found := Parse(System{OS: "linux"}, row.name, row.raw)
		if len(found) != 1 || found[0].Problem == nil || found[0].Problem.Code != "client-file-invalid" || !strings.Contains(found[0].Problem.Sentence, row.says) {
			t.Errorf("%s %.40q: %v", row.name, row.raw, found[0].Problem)
		}
	}
	if found := Parse(System{}, "a.json", make([]byte, maxFile+1)); found[0].Problem == nil || found[0].Problem.Code != "client-file-unreadable" {
		t.Errorf("a file over the limit: %v", found[0].Problem)
	}
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, ".cursor", "mcp.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if found := Read(System{OS: "linux", Home: home}); len(found) != 1 || found[0].Problem == nil || strings.Contains(found[0].Problem.Sentence, home) {
		t.Errorf("a folder of the name: %+v", found)
	}
}

// TestWideFilesCostLittle: what somebody could make large is refused before it is
// looked through again and again.
func TestWideFilesCostLittle(t *testing.T) {
	many := func(format string, n int) string {
		var out strings.Builder
		for i := range n {
			fmt.Fprintf(&out, format, i)
		}
		return out.String()
	}
	for _, row := range []struct{ name, text string }{
		{"servers", `{"mcpServers": {` + many(`"s%d": {"command": "x"},`, 100_000) + `}}`},
		{"names in one", `{"mcpServers": {"a": {"command": "x", "env": {` + many(`"V%d": "",`, 200_000) + `}}}}`},
		{"arguments", `{"mcpServers": {"a": {"command": "x", "args": [` + many(`"%d",`, 200_000) + `]}}}`},
		{"other settings", `{` + many(`"o%d": {},`, 200_000) + `"mcpServers": {}}`},
	} {
		begun := time.Now()
		Parse(System{OS: "linux"}, "a.json", []byte(row.text))
		if took := time.Since(begun); took > 20*time.Second { // ordinarily well below one
			t.Errorf("%s took %s", row.name, took)
		}
	}
	for _, text := range []string{many("[t%d]\n", 100_000), many("k%d = 1\n", 100_000), strings.Repeat("#", maxTOML+1)} {
		if found := Parse(System{OS: "linux"}, "a.toml", []byte(text)); found[0].Problem == nil {
			t.Errorf("%.20q is read", text)
		}
	}
}

// TestCommentsAndTrailingCommas (C27): // within text is text.
func TestCommentsAndTrailingCommas(t *testing.T) {
	text := "{\"mcpServers\":{ // off: \"x\":{}\n /* \"y\": {} */ \"a\":{\"url\":\"https://x.example//mcp\",},}}"
	found := Parse(System{}, "a.json", []byte(text))
	if len(found[0].Entries) != 1 || found[0].Entries[0].URL != "https://x.example//mcp" {
		t.Errorf("%+v", found)
	}
}

// TestNamesStayAsTheyAre (C36), and one that stands twice is refused (C35).
func TestNamesStayAsTheyAre(t *testing.T) {
	names := []string{"my server", "my_server", "café", "cafè", "数据库", "寸止", "a/b", "..", strings.Repeat("n", 200), "trailing "}
	var members []string
	for _, name := range names {
		members = append(members, quoted(name)+`: {"command": "x"}`)
	}
	found := Parse(System{}, "a.json", []byte(`{"mcpServers": {`+strings.Join(members, ",")+`}}`))
	for i, e := range found[0].Entries {
		if e.Name != names[i] || e.Problem != nil {
			t.Errorf("%q is %+v", names[i], e)
		}
	}
	for name, text := range map[string]string{"a.json": `{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}`, "a.yaml": "mcpServers:\n- {name: a, command: x}\n- {name: a, command: y}\n"} {
		for _, e := range Parse(System{}, name, []byte(text))[0].Entries {
			if e.Problem == nil || e.Problem.Code != "client-entry-repeated" {
				t.Errorf("%s: %+v", name, e)
			}
		}
	}
}
