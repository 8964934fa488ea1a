package plugins

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// loadFiles reads a plugin made of these files.
func loadFiles(t testing.TB, files map[string]string) *Plugin {
	t.Helper()
	root := filepath.Join(t.TempDir(), "folder")
	for name, text := range files {
		writeFile(t, filepath.Join(root, filepath.FromSlash(name)), text)
	}
	p, _ := load(root, "x/folder")
	if p.Root == "" {
		t.Fatal("the folder cannot be opened")
	}
	return p
}

// told is everything that a listing says about a plugin, one thing a line.
func told(p *Plugin) string {
	var b strings.Builder
	if p.Invalid != nil {
		fmt.Fprintf(&b, "rejected %s\n", p.Invalid.Code)
	} else {
		fmt.Fprintf(&b, "%s %s\n", p.Format, p.Name)
	}
	for _, c := range p.Connectors {
		state := "ok"
		if c.Invalid != nil {
			state = c.Invalid.Code
		}
		fmt.Fprintf(&b, "server %s %s %s\n", c.ID.Server, c.Transport, state)
	}
	for _, s := range p.Skills {
		fmt.Fprintf(&b, "skill %s\n", s.Path)
	}
	for _, problem := range p.Problems {
		where := problem.Path
		if problem.Line > 0 {
			where = fmt.Sprintf("%s:%d:%d", where, problem.Line, problem.Column)
		}
		fmt.Fprintf(&b, "%s %s\n", problem.Code, where)
	}
	return strings.TrimSpace(b.String())
}

const nodeEntry = `{"command":"node","args":["server.js"]}`

// cases.md C31: where the servers of a plugin stand, in every form.
func TestWhereServersStand(t *testing.T) {
	claude := func(rest string) string { return `{"name":"p"` + rest + `}` }
	for _, row := range []struct {
		what  string
		files map[string]string
		want  string
	}{
		{"an inline object", map[string]string{".claude-plugin/plugin.json": claude(`,"mcpServers":{"a":` + nodeEntry + `}`)},
			"claude-code p\nserver a stdio ok"},
		{"the path ./.mcp.json", map[string]string{".claude-plugin/plugin.json": claude(`,"mcpServers":"./.mcp.json"`), ".mcp.json": `{"mcpServers":{"a":` + nodeEntry + `}}`},
			"claude-code p\nserver a stdio ok"},
		{"the path .mcp.json", map[string]string{".claude-plugin/plugin.json": claude(`,"mcpServers":".mcp.json"`), ".mcp.json": `{"mcpServers":{"a":` + nodeEntry + `}}`},
			"claude-code p\nserver a stdio ok"},
		{"the plugin's root by its placeholder", map[string]string{".claude-plugin/plugin.json": claude(`,"mcpServers":"${CLAUDE_PLUGIN_ROOT}/x/servers.json"`), "x/servers.json": `{"mcpServers":{"a":` + nodeEntry + `}}`},
			"claude-code p\nserver a stdio ok"},
		{"a list of paths", map[string]string{".claude-plugin/plugin.json": claude(`,"mcpServers":["./one.json","two.json"]`), "one.json": `{"mcpServers":{"a":` + nodeEntry + `}}`, "two.json": `{"b":` + nodeEntry + `}`},
			"claude-code p\nserver a stdio ok\nserver b stdio ok"},
		{"a list of a path and servers", map[string]string{".claude-plugin/plugin.json": claude(`,"mcpServers":["./one.json",{"b":` + nodeEntry + `}]`), "one.json": `{"mcpServers":{"a":` + nodeEntry + `}}`},
			"claude-code p\nserver a stdio ok\nserver b stdio ok"},
		{"absent, with a root .mcp.json", map[string]string{".claude-plugin/plugin.json": claude(``), ".mcp.json": `{"mcpServers":{"a":` + nodeEntry + `}}`},
			"claude-code p\nserver a stdio ok"},
		{"both, with different servers", map[string]string{".claude-plugin/plugin.json": claude(`,"mcpServers":{"a":` + nodeEntry + `}`), ".mcp.json": `{"mcpServers":{"b":` + nodeEntry + `}}`},
			"claude-code p\nserver a stdio ok\nserver b stdio ok"},
		{"both, with one name", map[string]string{".claude-plugin/plugin.json": claude(`,"mcpServers":{"a":` + nodeEntry + `}`), ".mcp.json": `{"mcpServers":{"a":{"command":"other"}}}`},
			"claude-code p\nserver a stdio ok\nserver-second .mcp.json"},
		{"a path to nothing", map[string]string{".claude-plugin/plugin.json": claude(`,"mcpServers":"./servers.json"`)},
			"claude-code p\nservers-missing .claude-plugin/plugin.json:1:26"},
		{"a path that leads out", map[string]string{".claude-plugin/plugin.json": claude(`,"mcpServers":["../x.json","/etc/x.json","C:\\x.json","x/../../y.json"]`)},
			"claude-code p\npath-outside .claude-plugin/plugin.json:1:27\npath-outside .claude-plugin/plugin.json:1:39\npath-outside .claude-plugin/plugin.json:1:53\npath-outside .claude-plugin/plugin.json:1:66"},
		{"a number", map[string]string{".claude-plugin/plugin.json": claude(`,"mcpServers":3`)},
			"claude-code p\nmcp-invalid .claude-plugin/plugin.json:1:26"},
		{"only in .claude-plugin/mcp.json", map[string]string{".claude-plugin/plugin.json": claude(``), ".claude-plugin/mcp.json": `{"mcpServers":{"a":` + nodeEntry + `}}`},
			"claude-code p\nserver a stdio ok\nservers-elsewhere .claude-plugin/mcp.json"},
		{"in a file without the dot", map[string]string{".claude-plugin/plugin.json": claude(``), "mcp.json": `{"mcpServers":{"a":` + nodeEntry + `}}`},
			"claude-code p\nserver a stdio ok\nservers-elsewhere mcp.json"},
		{"in a file without the dot, beside others", map[string]string{".claude-plugin/plugin.json": claude(``), "mcp.json": `{"mcpServers":{"b":` + nodeEntry + `}}`, ".mcp.json": `{"mcpServers":{"a":` + nodeEntry + `}}`},
			"claude-code p\nserver a stdio ok\nservers-not-read mcp.json"},
		{"an empty .mcp.json and the servers elsewhere", map[string]string{".claude-plugin/plugin.json": claude(``), ".mcp.json": `{"mcpServers":{}}`, ".claude-plugin/mcp.json": `{"mcpServers":{"a":` + nodeEntry + `}}`},
			"claude-code p\nserver a stdio ok\nno-servers .mcp.json:1:15\nservers-elsewhere .claude-plugin/mcp.json"},
		{"nowhere", map[string]string{".claude-plugin/plugin.json": claude(``)},
			"claude-code p\nno-servers .claude-plugin/plugin.json"},
		{"an empty object", map[string]string{".claude-plugin/plugin.json": claude(`,"mcpServers":{}`)},
			"claude-code p\nno-servers .claude-plugin/plugin.json:1:26"},
		{"Codex: a path", map[string]string{".codex-plugin/plugin.json": claude(`,"mcpServers":"./.mcp.json","interface":{"displayName":"Pretty"}`), ".mcp.json": `{"mcp_servers":{"a":` + nodeEntry + `}}`},
			"codex p\nserver a stdio ok\nmcp-shape-other .mcp.json:1:16"},
		{"Codex: an object", map[string]string{".codex-plugin/plugin.json": claude(`,"mcpServers":{"a":` + nodeEntry + `}`)},
			"codex p\nserver a stdio ok"},
		{"Codex: absent, with a root .mcp.json", map[string]string{".codex-plugin/plugin.json": claude(``), ".mcp.json": `{"mcpServers":{"a":` + nodeEntry + `}}`},
			"codex p\nserver a stdio ok"},
		{"Codex: an object beside a root .mcp.json that it does not read", map[string]string{".codex-plugin/plugin.json": claude(`,"mcpServers":{"a":` + nodeEntry + `}`), ".mcp.json": `{"mcpServers":{"b":` + nodeEntry + `}}`},
			"codex p\nserver a stdio ok\nservers-not-read .mcp.json"},
	} {
		t.Run(row.what, func(t *testing.T) {
			p := loadFiles(t, row.files)
			if got := told(p); got != row.want {
				t.Errorf("got\n%s\nwant\n%s", got, row.want)
			}
			checkSentences(t, p)
		})
	}
}

// checkSentences: no full stop at the end, no absolute path.
func checkSentences(t *testing.T, p *Plugin) {
	t.Helper()
	for _, problem := range p.Problems {
		if problem.Sentence == "" || strings.HasSuffix(problem.Sentence, ".") || strings.Contains(problem.Sentence, p.Root) {
			t.Errorf("the sentence %q is empty, ends in a full stop or names the root", problem.Sentence)
		}
	}
}

// C31: both are shown, the first of the table wins, and each says what is not used.
func TestTwoManifestsInOneFolder(t *testing.T) {
	agent := `{"$schema":"` + pluginSchema + `","name":"agent"}`
	claude := `{"name":"claude","version":"2","mcpServers":{"c":` + nodeEntry + `}}`
	codex := `{"name":"codex","mcpServers":{"x":` + nodeEntry + `,"y":` + nodeEntry + `}}`
	bundle := `{"manifest_version":"0.3","name":"b","version":"1","description":"d","author":{"name":"a"},
"server":{"type":"node","entry_point":"i.js","mcp_config":{"command":"node","args":["${__dirname}/i.js"]}}}`
	for _, row := range []struct {
		what  string
		files map[string]string
		want  string
		says  string
	}{
		{"Claude Code and Codex", map[string]string{claudeManifest: claude, codexManifest: codex},
			"claude-code claude\nserver c stdio ok\nmanifest-second .codex-plugin/plugin.json",
			`the folder also has a manifest for Codex, which declares "x", "y"; the one that is used is .claude-plugin/plugin.json`},
		{"Agent Plugins before both", map[string]string{manifestFile: agent, claudeManifest: claude, codexManifest: codex},
			"agent-plugins-1.0.0 agent\nmanifest-second .claude-plugin/plugin.json\nmanifest-second .codex-plugin/plugin.json",
			`the folder also has a manifest for Claude Code, which declares "c"; the one that is used is plugin.json`},
		{"a plugin.json that is for nobody here", map[string]string{manifestFile: `{"name":"someone-else"}`, claudeManifest: claude},
			"claude-code claude\nserver c stdio ok", ""},
		{"a plugin.json that is no JSON is not passed over", map[string]string{manifestFile: `{"name":`, claudeManifest: claude},
			"rejected manifest-syntax\nmanifest-syntax plugin.json:1:9\nmanifest-second .claude-plugin/plugin.json", ""},
		{"the first cannot be used", map[string]string{claudeManifest: `{}`, codexManifest: codex},
			"rejected name-invalid\nname-invalid .claude-plugin/plugin.json:1:1\nmanifest-second .codex-plugin/plugin.json", ""},
		{"the second cannot be used", map[string]string{claudeManifest: claude, codexManifest: `[]`},
			"claude-code claude\nserver c stdio ok\nmanifest-second .codex-plugin/plugin.json",
			"the folder also has a manifest for Codex, which cannot be used; the one that is used is .claude-plugin/plugin.json"},
		{"Claude Code and an MCP bundle", map[string]string{claudeManifest: claude, mcpbFile: bundle},
			"claude-code claude\nserver c stdio ok\nmanifest-second manifest.json",
			`the folder also has a manifest for MCP bundle, which declares "main"; the one that is used is .claude-plugin/plugin.json`},
		{"an MCP bundle and some other manifest.json", map[string]string{mcpbFile: `{"manifest_version":3,"name":"an extension of a browser"}`, codexManifest: codex},
			"codex codex\nserver x stdio ok\nserver y stdio ok", ""},
		{"the second declares nothing", map[string]string{claudeManifest: claude, codexManifest: `{"name":"x"}`},
			"claude-code claude\nserver c stdio ok\nmanifest-second .codex-plugin/plugin.json",
			"the folder also has a manifest for Codex, which declares no server; the one that is used is .claude-plugin/plugin.json"},
	} {
		t.Run(row.what, func(t *testing.T) {
			p := loadFiles(t, row.files)
			if got := told(p); got != row.want {
				t.Errorf("got\n%s\nwant\n%s", got, row.want)
			}
			checkSentences(t, p)
			if row.says != "" && !strings.Contains(fmt.Sprint(p.Problems), row.says) {
				t.Errorf("%v does not say %q", p.Problems, row.says)
			}
		})
	}
	p := loadFiles(t, map[string]string{claudeManifest: claude, codexManifest: codex})
	if want := []Other{{Codex, codexManifest, "codex", "", []string{"x", "y"}, false}}; fmt.Sprint(p.Others) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", p.Others, want)
	}
}

// C29: every bad entry has its own reason and place, and hides no other.
func TestOneBadEntryHidesNoOther(t *testing.T) {
	p := loadFiles(t, map[string]string{claudeManifest: `{"name":"p"}`, dotFile: `{"mcpServers":{
  "good":{"command":"x"},
  "bad":{"args":["y"]},
  "bad2":"oops",
  "bad3":{"command":1},
  "bad4":null,
  "bad5":{"command":"x","env":{"PORT":3000}},
  "bad6":{"command":"x","args":"y"},
  "bad7":{"command":"x","args":[1]},
  "bad8":{"command":"x","command":"y"},
  "bad9":{"command":"x","cwd":[]},
  "bad10":{"url":"ftp://x"},
  "bad11":{"command":"x","env":[]},
  "bad12":{"command":""}
}}`})
	want := `claude-code p
server bad  server-invalid
server bad10 streamable-http url-invalid
server bad11 stdio env-invalid
server bad12 stdio command-invalid
server bad2  server-invalid
server bad3 stdio command-invalid
server bad4  server-invalid
server bad5 stdio env-invalid
server bad6 stdio args-invalid
server bad7 stdio args-invalid
server bad8  duplicate-key
server bad9 stdio cwd-invalid
server good stdio ok
server-invalid .mcp.json:3:9
server-invalid .mcp.json:4:10
command-invalid .mcp.json:5:21
server-invalid .mcp.json:6:10
env-invalid .mcp.json:7:39
args-invalid .mcp.json:8:32
args-invalid .mcp.json:9:33
duplicate-key .mcp.json:10:25
cwd-invalid .mcp.json:11:31
url-invalid .mcp.json:12:18
env-invalid .mcp.json:13:32
command-invalid .mcp.json:14:22`
	if got := told(p); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	checkSentences(t, p)
}

// C27: comments and trailing commas are refused with their place, and a // in a text
// is none.
func TestCommentsAreRefusedWithTheirPlace(t *testing.T) {
	for _, row := range []struct{ what, text, want string }{
		{"a line comment", "{\"mcpServers\":{ // off\n}}", "mcp-syntax .mcp.json:1:17"},
		{"a block comment", "{\"mcpServers\":{\n /* off */ \"a\":" + nodeEntry + "}}", "mcp-syntax .mcp.json:2:2"},
		{"a trailing comma", "{\"mcpServers\":{\"a\":" + nodeEntry + ",\n}}", "mcp-syntax .mcp.json:1:59"},
		{"a // in a text", `{"mcpServers":{"a":{"url":"https://example.com/mcp"}}}`, "server a streamable-http ok"},
		{"UTF-16", "\xff\xfe{\x00}\x00", "mcp-syntax .mcp.json:1:1"},
		{"a byte order mark", "\ufeff{\"mcpServers\":{\"a\":" + nodeEntry + "}}", "server a stdio ok"},
	} {
		p := loadFiles(t, map[string]string{claudeManifest: `{"name":"p"}`, dotFile: row.text})
		if got, want := told(p), "claude-code p\n"+row.want; got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", row.what, got, want)
		}
	}
	p := loadFiles(t, map[string]string{codexManifest: "{\n\"name\":\"p\", // x\n}"})
	if got, want := told(p), "rejected manifest-syntax\nmanifest-syntax .codex-plugin/plugin.json:2:13"; got != want {
		t.Errorf("a manifest: got\n%s\nwant\n%s", got, want)
	}
	p = loadFiles(t, map[string]string{mcpbFile: "{\"manifest_version\":\"0.3\", // x\n}"})
	if got, want := told(p), "rejected manifest-syntax\nmanifest-syntax manifest.json:1:28"; got != want {
		t.Errorf("a bundle's manifest: got\n%s\nwant\n%s", got, want)
	}
}

// C30: a configuration is recognised by its shape, and what is none is said.
func TestShapesOfAConfiguration(t *testing.T) {
	for _, row := range []struct{ what, text, want, says string }{
		{"the usual", `{"mcpServers":{"a":` + nodeEntry + `}}`, "server a stdio ok", ""},
		{"flat", `{"context7":{"command":"npx"}}`, "server context7 stdio ok", ""},
		{"flat, with bad entries", `{"context7":{"command":"npx"},"bad":"x"}`, "server bad  server-invalid\nserver context7 stdio ok\nserver-invalid .mcp.json:1:37", ""},
		{"VS Code's mcp.json", `{"servers":{"a":` + nodeEntry + `},"inputs":[]}`, "server a stdio ok\nmcp-shape-other .mcp.json:1:12", "recognised as VS Code's mcp.json"},
		{"VS Code's settings", `{"mcp":{"servers":{"a":` + nodeEntry + `}}}`, "server a stdio ok\nmcp-shape-other .mcp.json:1:19", "recognised as VS Code's settings"},
		{"Codex's", `{"mcp_servers":{"a":` + nodeEntry + `}}`, "server a stdio ok\nmcp-shape-other .mcp.json:1:16", "recognised as Codex's mcp_servers"},
		{"OpenCode's", `{"mcp":{"x":{"type":"local","command":["npx","-y","p"],"environment":{}}}}`, "mcp-shape .mcp.json:1:1", "recognised as OpenCode's settings"},
		{"Zed's", `{"context_servers":{"x":{"command":"a"}}}`, "mcp-shape .mcp.json:1:1", "recognised as Zed's settings"},
		{"a package manifest", `{"name":"p","command":"p","args":[]}`, "mcp-shape .mcp.json:1:1\nunknown-field .mcp.json:1:2\nunknown-field .mcp.json:1:13\nunknown-field .mcp.json:1:27", "not an MCP configuration"},
		{"no server", `{"mcpServers":{}}`, "no-servers .mcp.json:1:15", "no servers in .mcp.json"},
		{"nothing", `{}`, "mcp-shape .mcp.json:1:1", "not an MCP configuration"},
		{"a list", `[]`, "mcp-shape .mcp.json:1:1", "not an MCP configuration, so there are no servers in .mcp.json"},
		{"a list of servers", `{"mcpServers":[]}`, "mcp-invalid .mcp.json:1:15", "mcpServers is a list, not an object"},
		{"in another case", `{"MCPSERVERS":{"a":` + nodeEntry + `}}`, "mcp-shape .mcp.json:1:1\nfield-case .mcp.json:1:2", `"MCPSERVERS" is not mcpServers`},
		{"twice in different case", `{"mcpServers":{"a":` + nodeEntry + `},"MCPSERVERS":{"b":` + nodeEntry + `}}`, "server a stdio ok\nfield-case .mcp.json:1:61", `"MCPSERVERS" is not mcpServers`},
		{"the same name twice", `{"mcpServers":{"a":` + nodeEntry + `},"mcpServers":{"b":` + nodeEntry + `}}`, "duplicate-key .mcp.json:1:61", "stands twice"},
		{"the same server twice", `{"mcpServers":{"a":` + nodeEntry + `,"a":{"command":"y"}}}`, "server a stdio server-duplicate\nserver-duplicate .mcp.json:1:60", "stands twice"},
		{"unknown fields", `{"mcpServers":{"a":{"command":"node","disabled":true,"envFile":".env","Args":[]}},"x":1}`,
			"server a stdio ok\nunknown-field .mcp.json:1:38\nunknown-field .mcp.json:1:54\nfield-case .mcp.json:1:71\nunknown-field .mcp.json:1:83", ""},
	} {
		t.Run(row.what, func(t *testing.T) {
			p := loadFiles(t, map[string]string{claudeManifest: `{"name":"p"}`, dotFile: row.text})
			got, want := told(p), "claude-code p\n"+row.want
			if got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			checkSentences(t, p)
			if !strings.Contains(fmt.Sprint(p.Problems), row.says) {
				t.Errorf("%v does not say %q", p.Problems, row.says)
			}
		})
	}
}

// C33: the words for a transport, and entries that contradict themselves.
func TestTransportWords(t *testing.T) {
	const u = `"url":"https://example.com/mcp"`
	for _, row := range []struct{ entry, want string }{
		{`{"command":"x"}`, "stdio ok"},
		{`{"type":"stdio","command":"x"}`, "stdio ok"},
		{`{"type":"local","command":"x"}`, "stdio ok"},
		{`{` + u + `}`, "streamable-http ok"},
		{`{"type":"http",` + u + `}`, "streamable-http ok"},
		{`{"type":"HTTP",` + u + `}`, "streamable-http ok"},
		{`{"type":"streamable-http",` + u + `}`, "streamable-http ok"},
		{`{"type":"streamableHttp",` + u + `}`, "streamable-http ok"},
		{`{"type":"streamable_http",` + u + `}`, "streamable-http ok"},
		{`{"transport":"http",` + u + `}`, "streamable-http ok"},
		{`{"transport":{"type":"http",` + u + `}}`, "streamable-http ok"},
		{`{"serverUrl":"https://example.com/mcp"}`, "streamable-http ok"},
		{`{"httpUrl":"https://example.com/mcp"}`, "streamable-http ok"},
		{`{"baseUrl":"https://example.com/mcp"}`, "streamable-http ok"},
		{`{"type":"sse",` + u + `}`, "sse ok"},
		{`{"type":"websocket","url":"wss://example.com"}`, " transport-unsupported"},
		{`{"type":"ws","url":"wss://example.com"}`, " transport-unsupported"},
		{`{"url":"wss://example.com"}`, "streamable-http url-invalid"},
		{`{"type":"carrier-pigeon",` + u + `}`, " server-type-unknown"},
		{`{"type":1,` + u + `}`, " server-type-unknown"},
		{`{"command":"x",` + u + `}`, " server-contradictory"},
		{`{"type":"stdio",` + u + `}`, " server-contradictory"},
		{`{"type":"http","command":"x"}`, " server-contradictory"},
		{`{"type":"sse","command":"x"}`, " server-contradictory"},
		{`{` + u + `,"serverUrl":"https://example.com/other"}`, " server-contradictory"},
		{`{` + u + `,"serverUrl":"https://example.com/mcp"}`, "streamable-http ok"},
		{`{"type":"stdio"}`, "stdio command-invalid"},
		{`{"type":"http"}`, "streamable-http url-invalid"},
		{`{}`, " server-invalid"},
		{`{"url":"http://example.com/mcp"}`, "streamable-http url-invalid"},
		{`{"url":"http://127.0.0.1:1/mcp"}`, "streamable-http ok"},
		{`{"url":"https://${HOST}/mcp"}`, "streamable-http ok"},
	} {
		p := loadFiles(t, map[string]string{claudeManifest: `{"name":"p","mcpServers":{"a":` + row.entry + `}}`})
		if got, _, _ := strings.Cut(strings.TrimPrefix(told(p), "claude-code p\nserver a "), "\n"); got != row.want {
			t.Errorf("%s: got %q, want %q", row.entry, got, row.want)
		}
	}
}

// C36: a name is kept as it is and never a path; what cannot be shown is refused.
func TestOddNames(t *testing.T) {
	for _, name := range []string{"my server", "my_server", "my-server", "café", "cafe\u0301", "数据库", "寸止", "a/b", "..", strings.Repeat("x", 200), "trailing ", "🦊", "~", "CON"} {
		p := loadFiles(t, map[string]string{claudeManifest: `{"name":"p","mcpServers":{"` + name + `":` + nodeEntry + `}}`})
		if len(p.Connectors) != 1 || p.Connectors[0].ID.Server != name || p.Connectors[0].Invalid != nil {
			t.Errorf("%q: %v %v", name, p.Connectors, p.Problems)
		}
		id := p.Connectors[0].ID
		if again, err := ParseID(id.String()); err != nil || again != id {
			t.Errorf("%q: the id reads back as %v %v", name, again, err)
		}
	}
	for _, name := range []string{"", strings.Repeat("x", 300), `\u0000`, `\u202e`, `\n`} {
		p := loadFiles(t, map[string]string{claudeManifest: `{"name":"p","mcpServers":{"` + name + `":` + nodeEntry + `}}`})
		if codeOf(p.Connectors[0].Invalid) != "server-name-invalid" {
			t.Errorf("%q: %v", name, p.Problems)
		}
	}
	for raw, want := range map[string]string{
		"my-plugin": "my-plugin", "My Plugin": "my-plugin", "my_plugin": "my-plugin", "a--b": "a-b", "@scope/name": "scope-name", "x..y": "x.y",
		"": "", "  ": "", "数据库": "263200d7", "..": "5ec1f7e7", "Ünï": "n", strings.Repeat("x", 100): strings.Repeat("x", 64), "../../etc": "etc",
	} {
		p := loadFiles(t, map[string]string{codexManifest: `{"name":"` + raw + `"}`})
		switch {
		case want == "" && codeOf(p.Invalid) != "name-invalid":
			t.Errorf("%q: %v", raw, p.Invalid)
		case want != "" && (p.Name != want || p.Invalid != nil || !isPluginName(p.Name)):
			t.Errorf("%q: got %q %v", raw, p.Name, p.Invalid)
		case want != "" && want != raw && (p.DisplayName != raw || p.Problems[0].Code != "name-adapted"):
			t.Errorf("%q: shown as %q, %v", raw, p.DisplayName, p.Problems)
		}
	}
}

// C24: a path that leaves the bundle is refused with the path named.
func TestPathsThatLeaveTheBundle(t *testing.T) {
	for _, row := range []struct{ entry, want string }{
		{`{"command":"${CLAUDE_PLUGIN_ROOT}/server/x"}`, "ok"},
		{`{"command":"./server/x"}`, "ok"},
		{`{"command":"server/x"}`, "ok"},
		{`{"command":"/usr/bin/env"}`, "ok"},
		{`{"command":"~/bin/x"}`, "ok"},
		{`{"command":"${HOME}/bin/x"}`, "ok"},
		{`{"command":"../x"}`, "command-invalid"},
		{`{"command":"${CLAUDE_PLUGIN_ROOT}/../x"}`, "command-invalid"},
		{`{"command":"${CLAUDE_PLUGIN_ROOT}\\..\\x"}`, "command-invalid"},
		{`{"command":"link/x"}`, "command-invalid"},
		{`{"command":"x","args":["../../dist/x.js"]}`, "args-invalid"},
		{`{"command":"x","args":["./../x.js"]}`, "args-invalid"},
		{`{"command":"x","args":["--dir=../x"]}`, "args-invalid"},
		{`{"command":"x","args":["${CLAUDE_PLUGIN_ROOT}/../x"]}`, "args-invalid"},
		{`{"command":"x","args":["${CLAUDE_PLUGIN_ROOT}/link"]}`, "args-invalid"},
		{`{"command":"x","args":["../x.js"],"cwd":"sub"}`, "ok"},
		{`{"command":"x","args":["../x.js"],"cwd":"${CLAUDE_PLUGIN_ROOT}/sub"}`, "ok"},
		{`{"command":"x","args":["../../x.js"],"cwd":"sub"}`, "args-invalid"},
		{`{"command":"x","args":["../x.js"],"cwd":"${CLAUDE_PLUGIN_DATA}"}`, "ok"},
		{`{"command":"x","args":["a..b","..."," ../x"]}`, "ok"},
		{`{"command":"x","cwd":"../x"}`, "cwd-invalid"},
		{`{"command":"x","cwd":"/srv"}`, "ok"},
	} {
		root := filepath.Join(t.TempDir(), "p")
		writeFile(t, filepath.Join(root, claudeManifest), `{"name":"p","mcpServers":{"a":`+row.entry+`}}`)
		if err := os.Symlink(t.TempDir(), filepath.Join(root, "link")); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(root, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		p, _ := load(root, "p")
		got := "ok"
		if p.Connectors[0].Invalid != nil {
			got = p.Connectors[0].Invalid.Code
		}
		if got != row.want {
			t.Errorf("%s: got %s, want %s: %v", row.entry, got, row.want, p.Problems)
		}
	}
}

func TestWhatAManifestSaysOfThePlugin(t *testing.T) {
	p := loadFiles(t, map[string]string{claudeManifest: `{"name":"My Plugin","version":"1.2","description":"d","author":"A","homepage":"h",
"repository":{"type":"git","url":"r"},"license":"MIT","keywords":["k"],"mystery":{"a":1},"Version":"2"}`})
	if p.Name != "my-plugin" || p.DisplayName != "My Plugin" || p.Version != "1.2" || p.Description != "d" || p.Author.Name != "A" ||
		p.Homepage != "h" || p.Repository != "r" || p.License != "MIT" || fmt.Sprint(p.Keywords) != "[k]" {
		t.Errorf("got %+v", p)
	}
	want := "name-adapted .claude-plugin/plugin.json:1:9\nunknown-field .claude-plugin/plugin.json:2:72\nfield-case .claude-plugin/plugin.json:2:90\nno-servers .claude-plugin/plugin.json"
	if got := told(p); got != "claude-code my-plugin\n"+want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	p = loadFiles(t, map[string]string{codexManifest: `{"name":"p","version":1,"author":{"name":"A","email":"e","url":"u"},"keywords":"k","homepage":[],"repository":1,
"interface":{"displayName":"Pretty","shortDescription":"s","developerName":"no","websiteURL":"w"}}`})
	if p.DisplayName != "Pretty" || p.Description != "s" || p.Author != (Author{"A", "e", "u"}) || p.Homepage != "w" || p.Version != "" || p.Invalid != nil {
		t.Errorf("got %+v", p)
	}
	for _, problem := range p.Problems {
		if problem.Code != "field-ignored" && problem.Code != "no-servers" {
			t.Errorf("%v", problem)
		}
	}
	for _, text := range []string{`{`, `[]`, `{}`, `{"name":1}`, `{"name":"x","name":"y"}`, `{"name":"x","mcpServers":{},"mcpServers":{}}`} {
		if p := loadFiles(t, map[string]string{codexManifest: text}); p.Invalid == nil || len(p.Problems) != 1 {
			t.Errorf("%s: %v %v", text, p.Invalid, p.Problems)
		}
	}
}

// What a plugin has for its own application is listed, never run; its skills are
// listed like those of any plugin.
func TestComponentsThatAreNotRun(t *testing.T) {
	skill := "---\nname: %s\ndescription: d\n---\n"
	p := loadFiles(t, map[string]string{
		claudeManifest: `{"name":"p","agents":"./x/","skills":["./more/","./more"]}`, "commands/go.md": "x", "hooks/hooks.json": "{}", ".lsp.json": "{}",
		"skills/one/SKILL.md": fmt.Sprintf(skill, "one"), "more/two/SKILL.md": fmt.Sprintf(skill, "two"), "more/one/SKILL.md": fmt.Sprintf(skill, "one"),
	})
	want := `claude-code p
server skills skills ok
skill skills/one/SKILL.md
skill more/two/SKILL.md
not-run .claude-plugin/plugin.json:1:22
not-run commands
not-run hooks/hooks.json
not-run .lsp.json
skill-invalid more/one/SKILL.md`
	if got := told(p); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	p = loadFiles(t, map[string]string{codexManifest: `{"name":"p","hooks":{}}`, ".app.json": "{}", "skills/one/SKILL.md": fmt.Sprintf(skill, "one")})
	want = "codex p\nserver skills skills ok\nskill skills/one/SKILL.md\nnot-run .codex-plugin/plugin.json:1:21\nnot-run .app.json"
	if got := told(p); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Permissions stand in the same place in every format.
func TestPermissionsInOtherFormats(t *testing.T) {
	for _, manifest := range []string{claudeManifest, codexManifest} {
		p := loadFiles(t, map[string]string{manifest: `{"name":"p","mcpServers":{"a":` + nodeEntry + `,"b":` + nodeEntry + `},
"extensions":{"app.sallyport":{"permissions":{"secrets":["KEY"],"tools":["read_*"]},"servers":{"a":{"inherit":["LANG2"]},"c":{}}},"other":3}}`})
		if len(p.Connectors) != 2 || fmt.Sprint(p.Connectors[1].Requested.Secrets) != "[KEY]" || fmt.Sprint(p.Connectors[0].Launch.Inherit) != "[LANG2]" ||
			len(p.Problems) != 1 || p.Problems[0].Code != "unknown-server" {
			t.Errorf("%s: %+v %v", manifest, p.Connectors, p.Problems)
		}
		p = loadFiles(t, map[string]string{manifest: `{"name":"p","mcpServers":{"a":` + nodeEntry + `},"extensions":{"app.sallyport":{"permissions":{"secret":["KEY"]}}}}`})
		if codeOf(p.Connectors[0].Invalid) != "extension-invalid" {
			t.Errorf("%s: what cannot be read may have been the limit: %v", manifest, p.Connectors[0].Invalid)
		}
	}
}

func TestCodexNamesVariables(t *testing.T) {
	p := loadFiles(t, map[string]string{codexManifest: `{"name":"p","mcpServers":{
"a":{"command":"x","env_vars":["B","A","B"],"startup_timeout_sec":20},
"b":{"url":"https://example.com/mcp","bearer_token_env_var":"TOKEN","http_headers":{"X-A":"1"},"env_http_headers":{"X-B":"VAR"}},
"c":{"url":"https://example.com/mcp","bearer_token_env_var":"not a name"},
"d":{"command":"x","env_vars":"A"}}}`})
	if c := p.Connectors[0]; fmt.Sprint(c.Launch.Inherit) != "[A B]" || c.Invalid != nil {
		t.Errorf("got %+v", c)
	}
	if c := p.Connectors[1]; fmt.Sprint(c.Launch.Headers) != "[{Authorization Bearer ${TOKEN} false} {X-A 1 false} {X-B ${VAR} false}]" ||
		fmt.Sprint(c.Requested.Secrets) != "[TOKEN VAR]" || c.Invalid != nil {
		t.Errorf("got %+v", c)
	}
	if codeOf(p.Connectors[2].Invalid) != "headers-invalid" || codeOf(p.Connectors[3].Invalid) != "env-invalid" {
		t.Errorf("got %v", p.Problems)
	}
}

func TestUserConfigOfAClaudePlugin(t *testing.T) {
	p := loadFiles(t, map[string]string{claudeManifest: `{"name":"p","mcpServers":{"a":{"command":"x","env":{"K":"${user_config.key}"}}},"userConfig":{
"key":{"type":"string","title":"Key","description":"d","sensitive":true,"required":true},
"dirs":{"type":"directory","title":"D","description":"d","multiple":true,"default":["a","b"]},
"n":{"type":"number","title":"N","description":"d","default":3},
"bad":"x","worse":{"type":"string","title":"W","sensitive":"yes"}}}`})
	var keys []string
	for _, s := range p.Connectors[0].Settings {
		keys = append(keys, fmt.Sprint(s.Key, " ", s.Sensitive, s.Required, s.Multiple, s.Default))
	}
	if got := strings.Join(keys, "; "); got != "dirs false false true [a b]; key true true false []; n false false false [3]" {
		t.Errorf("got %s", got)
	}
	if got := told(p); !strings.HasSuffix(got, "setting-invalid .claude-plugin/plugin.json:5:1\nsetting-invalid .claude-plugin/plugin.json:5:11") {
		t.Errorf("got %s", got)
	}
}

// C30: a plugin of which nothing is offered says why, with the file's name.
func TestAPluginWithoutServersSaysWhy(t *testing.T) {
	skill := "---\nname: one\ndescription: d\n---\n"
	for _, row := range []struct {
		what  string
		files map[string]string
		want  string
	}{
		{"an empty file", map[string]string{claudeManifest: `{"name":"p","x":1}`, dotFile: `{"mcpServers":{}}`}, "no-servers x/folder/.mcp.json"},
		{"a file that is missing", map[string]string{codexManifest: `{"name":"p","mcpServers":"./s.json"}`}, "servers-missing x/folder/.codex-plugin/plugin.json"},
		{"a file that is something else", map[string]string{codexManifest: `{"name":"p"}`, dotFile: `[]`}, "mcp-shape x/folder/.mcp.json"},
		{"a file that is no JSON", map[string]string{codexManifest: `{"name":"p"}`, dotFile: `{`}, "mcp-syntax x/folder/.mcp.json"},
		{"skills alone", map[string]string{claudeManifest: `{"name":"p","hooks":{}}`, "skills/one/SKILL.md": skill}, ""},
		{"a server", map[string]string{claudeManifest: `{"name":"p","mcpServers":{"a":` + nodeEntry + `}}`, "mcp.json": `{"mcpServers":{"b":` + nodeEntry + `}}`}, ""},
	} {
		var got []string
		for _, problem := range loadFiles(t, row.files).WithoutServers() {
			got = append(got, problem.Code+" "+problem.Path)
		}
		if strings.Join(got, "; ") != row.want {
			t.Errorf("%s: got %q, want %q", row.what, got, row.want)
		}
	}
}

// Whatever the bytes are: no panic, a reason for everything that is refused, and no
// server that could be started without a name.
func FuzzVendorPlugin(f *testing.F) {
	f.Add([]byte(`{"name":"p","mcpServers":{"a":`+nodeEntry+`}}`), []byte(`{"mcpServers":{"b":{"url":"https://example.com"}}}`))
	f.Add([]byte(`{"name":"p","mcpServers":["./.mcp.json",{"x":{}}],"userConfig":{"k":{"type":"string"}}}`), []byte(`{"servers":{"b":{"type":"http","command":"x"}}}`))
	f.Add([]byte(`{"name":"X Y","skills":"./s","extensions":{"app.sallyport":{}}}`), []byte(`{"mcp":{"x":{"command":["a"]}}}`))
	root := f.TempDir()
	f.Fuzz(func(t *testing.T, manifest, servers []byte) {
		for _, path := range []string{claudeManifest, codexManifest} {
			dir := filepath.Join(root, filepath.Base(filepath.Dir(path)))
			writeFile(t, filepath.Join(dir, path), string(manifest))
			writeFile(t, filepath.Join(dir, dotFile), string(servers))
			p, _ := load(dir, "x")
			if p.Invalid != nil && len(p.Problems) == 0 {
				t.Fatal("rejected without a problem")
			}
			if p.Invalid == nil && !isPluginName(p.Name) {
				t.Fatalf("the name is %q", p.Name)
			}
			for _, c := range p.Connectors {
				if c.Invalid != nil {
					continue
				}
				if c.ID.Server == "" || (c.Transport == Stdio) != (c.Launch.Command != "") || (c.Transport == Stdio) == (c.Launch.URL != "") {
					t.Fatalf("%+v is no server", c)
				}
			}
		}
	})
}

// The listing and the watcher notice the files of these formats, too, and those that
// a manifest names.
func TestFilesOfOtherFormatsAreWatched(t *testing.T) {
	manifest := func(servers string) string { return `{"name":"p","mcpServers":[` + servers + `"./conf/servers.json"]}` }
	for what, change := range map[string]func(t *testing.T, d string){
		"the manifest":         func(t *testing.T, d string) { writeFile(t, d+"/"+claudeManifest, manifest(`{"new":{"command":"x"}},`)) },
		"the root .mcp.json":   func(t *testing.T, d string) { writeFile(t, d+"/.mcp.json", `{"new":{"command":"x"}}`) },
		"a file that it names": func(t *testing.T, d string) { writeFile(t, d+"/conf/servers.json", `{"new":{"command":"x"}}`) },
		"a manifest beside it": func(t *testing.T, d string) { writeFile(t, d+"/"+codexManifest, `{"name":"q"}`) },
		"one that comes before": func(t *testing.T, d string) {
			writeFile(t, d+"/plugin.json", `{"$schema":"`+pluginSchema+`","name":"other"}`)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			ways(t, false, func(t *testing.T, config Config) {
				dir := t.TempDir() + "/plugins"
				writeFile(t, dir+"/x/"+claudeManifest, manifest(""))
				writeFile(t, dir+"/x/conf/servers.json", `{"a":{"command":"x"}}`)
				config.Folders = []Folder{{Path: dir, Label: "p", Kind: Many}}
				c := New(config)
				before := fmt.Sprint(scan(t, c).Plugins)
				ctx, cancel := context.WithCancel(context.Background())
				w := c.Watch(ctx)
				t.Cleanup(func() {
					cancel()
					for range w.Events() {
					}
				})
				w.WatchTree(dir + "/x/conf") // returns once the first looks are taken
				change(t, dir+"/x")
				w.expect(t, FolderChanged, "x")
				if fmt.Sprint(scan(t, c).Plugins) == before {
					t.Error("the listing is the old one")
				}
			})
		})
	}
}
