package clients

import "slices"

// Scope says for whom a file counts.
type Scope string

// The scopes.
const (
	User    Scope = "user"
	Project Scope = "project"
	Profile Scope = "profile"
)

// Client is one agent program.
type Client struct {
	// Name is what people type, and what Sallyport calls it as a client of its own.
	Name, Title string
	// Keeps is what to know about a program that writes its file by itself; "" where it
	// only reads it.
	Keeps  string
	places []place
	syntax syntax
	entry  func(Launch) value // how one entry is written
}

// place is one kind of file of a client.
type place struct {
	scope Scope
	base  base
	path  string // with / between names, and * for any name
	os    string // "" is every system
	// format is how it is written and shapes are where the servers are in it. The first
	// shape is the one that is written.
	format format
	shapes []shape
	// instead is a file, by the same base, that the program would no longer read if this
	// one were made.
	instead string
	// extra is a file that holds servers only by the way: without any it is not listed.
	extra bool
}

type format string

const (
	isJSON format = "json" // with comments and trailing commas, which all are read with
	isTOML format = "toml"
	isYAML format = "yaml"
)

// Launch is what an entry starts.
type Launch struct {
	Command string
	Args    []string
}

// Clients returns every client that is known, sorted by name.
func Clients() []Client {
	all := []Client{
		{
			Name: "claude-code", Title: "Claude Code", syntax: syntax{braces: true}, entry: typed,
			Keeps: "Claude Code writes this file while it runs: quit it first, or the change may be lost",
			places: []place{
				{scope: User, base: inClaude, path: ".claude.json", format: isJSON, shapes: []shape{mcpServers, projects}},
				{scope: Project, base: inProject, path: ".mcp.json", format: isJSON, shapes: []shape{mcpServers}},
			},
		},
		{
			Name: "claude-desktop", Title: "Claude Desktop", entry: plain,
			Keeps: "Claude Desktop reads the file when it starts and may write it when it ends: quit it first",
			places: []place{
				{scope: User, base: inLocal, path: "Packages/Claude_*/LocalCache/Roaming/Claude/claude_desktop_config.json", os: "windows", format: isJSON, shapes: []shape{mcpServers}},
				{scope: User, base: inUserData, path: "Claude/claude_desktop_config.json", format: isJSON, shapes: []shape{mcpServers}},
			},
		},
		{
			Name: "codex", Title: "Codex", entry: plain,
			places: []place{
				{scope: User, base: inCodex, path: "config.toml", format: isTOML, shapes: []shape{codex}},
				{scope: Project, base: inProject, path: ".codex/config.toml", format: isTOML, shapes: []shape{codex}},
			},
		},
		{
			Name: "continue", Title: "Continue", syntax: syntax{mustache: true}, entry: plain,
			places: []place{
				{scope: User, base: inHome, path: ".continue/config.yaml", instead: ".continue/config.json", format: isYAML, shapes: []shape{serverList}},
				{scope: User, base: inHome, path: ".continue/config.json", format: isJSON, shapes: []shape{serverList, oldContinue}, extra: true},
				{scope: User, base: inHome, path: ".continue/mcpServers/*.yaml", format: isYAML, shapes: []shape{serverList}},
				{scope: User, base: inHome, path: ".continue/mcpServers/*.json", format: isJSON, shapes: []shape{mcpServers}},
				{scope: Project, base: inProject, path: ".continue/mcpServers/sallyport.yaml", format: isYAML, shapes: []shape{serverList}, extra: true},
				{scope: Project, base: inProject, path: ".continue/mcpServers/*.yaml", format: isYAML, shapes: []shape{serverList}},
				{scope: Project, base: inProject, path: ".continue/mcpServers/*.json", format: isJSON, shapes: []shape{mcpServers}},
			},
		},
		{
			Name: "cursor", Title: "Cursor", syntax: editorSyntax, entry: plain,
			places: []place{
				{scope: User, base: inHome, path: ".cursor/mcp.json", format: isJSON, shapes: []shape{mcpServers}},
				{scope: Project, base: inProject, path: ".cursor/mcp.json", format: isJSON, shapes: []shape{mcpServers}},
			},
		},
		{
			Name: "gemini", Title: "Gemini CLI", syntax: syntax{braces: true, dollar: true}, entry: plain,
			places: []place{
				{scope: User, base: inHome, path: ".gemini/settings.json", format: isJSON, shapes: []shape{gemini}},
				{scope: Project, base: inProject, path: ".gemini/settings.json", format: isJSON, shapes: []shape{gemini}},
			},
		},
		{
			Name: "goose", Title: "Goose", entry: gooseEntry,
			Keeps: "Goose writes this file when its settings change: close it first",
			places: []place{
				{scope: User, base: inUserData, path: "Block/goose/config/config.yaml", os: "windows", format: isYAML, shapes: []shape{goose}},
				{scope: User, base: inConfig, path: "goose/config.yaml", os: "linux", format: isYAML, shapes: []shape{goose}},
				{scope: User, base: inConfig, path: "goose/config.yaml", os: "darwin", format: isYAML, shapes: []shape{goose}},
			},
		},
		{
			Name: "lm-studio", Title: "LM Studio", syntax: editorSyntax, entry: plain,
			places: []place{
				{scope: User, base: inHome, path: ".lmstudio/mcp.json", format: isJSON, shapes: []shape{mcpServers}},
				{scope: User, base: inHome, path: ".cache/lm-studio/mcp.json", format: isJSON, shapes: []shape{mcpServers}},
			},
		},
		{
			Name: "opencode", Title: "OpenCode", syntax: syntax{curly: true}, entry: openCodeEntry,
			places: []place{
				{scope: User, base: inConfig, path: "opencode/opencode.json", format: isJSON, shapes: []shape{openCode, openCodeServers}},
				{scope: User, base: inConfig, path: "opencode/opencode.jsonc", format: isJSON, shapes: []shape{openCode, openCodeServers}},
				{scope: Project, base: inProject, path: "opencode.json", format: isJSON, shapes: []shape{openCode, openCodeServers}},
				{scope: Project, base: inProject, path: "opencode.jsonc", format: isJSON, shapes: []shape{openCode, openCodeServers}},
				{scope: Project, base: inProject, path: ".opencode/opencode.json", format: isJSON, shapes: []shape{openCode, openCodeServers}},
				{scope: Project, base: inProject, path: ".opencode/opencode.jsonc", format: isJSON, shapes: []shape{openCode, openCodeServers}},
			},
		},
		vsCode("vscode", "VS Code", "Code", workspace...),
		vsCode("vscode-insiders", "VS Code Insiders", "Code - Insiders"),
		{
			Name: "windsurf", Title: "Windsurf", syntax: editorSyntax, entry: plain,
			places: []place{
				{scope: User, base: inHome, path: ".codeium/windsurf/mcp_config.json", format: isJSON, shapes: []shape{mcpServers}},
			},
		},
		{
			Name: "zed", Title: "Zed", entry: zedEntry,
			places: []place{
				{scope: User, base: inUserData, path: "Zed/settings.json", os: "windows", format: isJSON, shapes: []shape{zed}},
				{scope: User, base: inConfig, path: "zed/settings.json", os: "linux", format: isJSON, shapes: []shape{zed}},
				{scope: User, base: inConfig, path: "zed/settings.json", os: "darwin", format: isJSON, shapes: []shape{zed}},
				{scope: Project, base: inProject, path: ".zed/settings.json", format: isJSON, shapes: []shape{zed}},
			},
		},
	}
	return all
}

// editorSyntax is what VS Code and those after its pattern replace.
var editorSyntax = syntax{editor: true}

// workspace is the files of a project, which every edition of VS Code shares; they
// are listed once.
var workspace = []place{
	{scope: Project, base: inProject, path: ".vscode/mcp.json", format: isJSON, shapes: []shape{vsServers}},
	{scope: Project, base: inProject, path: ".vscode/settings.json", format: isJSON, shapes: []shape{vsSettings, vsSettingsFlat}, extra: true},
}

func vsCode(name, title, folder string, more ...place) Client {
	return Client{
		Name: name, Title: title, syntax: editorSyntax, entry: typed,
		places: append([]place{
			{scope: User, base: inUserData, path: folder + "/User/mcp.json", format: isJSON, shapes: []shape{vsServers}},
			{scope: Profile, base: inUserData, path: folder + "/User/profiles/*/mcp.json", format: isJSON, shapes: []shape{vsServers}},
			{scope: User, base: inUserData, path: folder + "/User/settings.json", format: isJSON, shapes: []shape{vsSettings, vsSettingsFlat}, extra: true},
		}, more...),
	}
}

// ByName returns the client of a name.
func ByName(name string) (Client, bool) {
	all := Clients()
	i := slices.IndexFunc(all, func(c Client) bool { return c.Name == name })
	if i < 0 {
		return Client{}, false
	}
	return all[i], true
}

// value is something to be written: text, a list, or an object in order.
type value struct {
	text    string
	list    []value
	members []pair
	kind    kind
}

type pair struct {
	name  string
	value value
}

func textOf(s string) value { return value{kind: isText, text: s} }

func listOf(texts ...string) value {
	v := value{kind: isList}
	for _, t := range texts {
		v.list = append(v.list, textOf(t))
	}
	return v
}

func plain(l Launch) value {
	return value{kind: isObject, members: []pair{{"command", textOf(l.Command)}, {"args", listOf(l.Args...)}}}
}

func typed(l Launch) value {
	v := plain(l)
	v.members = append([]pair{{"type", textOf("stdio")}}, v.members...)
	return v
}

func zedEntry(l Launch) value {
	v := plain(l)
	v.members = append([]pair{{"source", textOf("custom")}}, v.members...)
	return v
}

func openCodeEntry(l Launch) value {
	return value{kind: isObject, members: []pair{
		{"type", textOf("local")}, {"command", listOf(append([]string{l.Command}, l.Args...)...)}, {"enabled", value{kind: isBool, text: "true"}},
	}}
}

func gooseEntry(l Launch) value {
	return value{kind: isObject, members: []pair{
		{"enabled", value{kind: isBool, text: "true"}}, {"type", textOf("stdio")}, {"name", textOf(EntryName)},
		{"cmd", textOf(l.Command)}, {"args", listOf(l.Args...)}, {"timeout", value{kind: isNumber, text: "300"}},
	}}
}

// EntryName is what Sallyport's own entry is called in a client's file.
const EntryName = "sallyport"
