package clients

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWhatAClientReplaces (C32): each form is filled in, becomes a reference, or is
// refused by its name; what the client does not replace stays as it is.
func TestWhatAClientReplaces(t *testing.T) {
	secret := func(name string) string { return "secret " + name }
	for _, row := range []struct {
		client, field, text string
		want, also          string // also: "env NAME" or "secret NAME"
		refused             string
	}{
		{client: "cursor", field: "env", text: "Bearer ${env:TOKEN}!", want: "Bearer ${env:TOKEN}!", also: "env TOKEN"},
		{client: "vscode", field: "env", text: "${input:my key}", want: "${secret:my_key}", also: secret("my_key")},
		{client: "vscode", field: "arg", text: "--key=${input:k}", refused: "argument 1 refers to ${input:k}"},
		{client: "vscode", field: "arg", text: "${userHome}${/}x${pathSeparator}y", want: "/home/u/x/y"},
		{client: "vscode", field: "arg", text: "${workspaceFolder}/x", refused: "${workspaceFolder}"},
		{client: "vscode", field: "arg", text: "${config:some.setting}", refused: "${config:some.setting}"},
		{client: "windsurf", field: "env", text: "${env:A}${env:B}", want: "${env:A}${env:B}", also: "env A"},
		{client: "claude-code", field: "env", text: "${TOKEN:-none}", want: "${TOKEN:-none}", also: "env TOKEN"},
		{client: "claude-code", field: "arg", text: "${HOME}/x", want: "/home/u/x"},
		{client: "cursor", field: "command", text: "${env:HOME}/bin/x", want: "/home/u/bin/x"},
		{client: "claude-code", field: "arg", text: "${USERPROFILE}/x", refused: "${USERPROFILE}"},
		{client: "claude-code", field: "arg", text: "--key=${KEY}", refused: "${KEY}"},
		{client: "claude-code", field: "env", text: "${a b}", refused: "${a b}"},
		{client: "claude-code", field: "env", text: "${A:-${B}}", refused: "${A:-${B}"},
		{client: "gemini", field: "env", text: "$TOKEN", want: "${env:TOKEN}", also: "env TOKEN"},
		{client: "gemini", field: "env", text: "%TOKEN%", want: "${env:TOKEN}", also: "env TOKEN"},
		{client: "opencode", field: "env", text: "{env:TOKEN}", want: "${env:TOKEN}", also: "env TOKEN"},
		{client: "opencode", field: "env", text: "{file:~/.key}", refused: "{file:~/.key}"},
		{client: "continue", field: "env", text: "${{ secrets.KEY }}", want: "${secret:KEY}", also: secret("KEY")},
		{client: "continue", field: "env", text: "${{ inputs.KEY }}", refused: "${{ inputs.KEY }}"},
		{client: "claude-desktop", field: "arg", text: "${HOME}/$x/%y%/{env:Z}", want: "${HOME}/$x/%y%/{env:Z}"},
		{client: "claude-desktop", field: "env", text: "$TOKEN %A% {env:B}", want: "$TOKEN %A% {env:B}"},
		{client: "claude-desktop", field: "env", text: "${HOME}", refused: "plain text there"},
		{client: "claude-desktop", field: "env", text: "secret:X", refused: "would be a reference here"},
		{client: "claude-desktop", field: "arg", text: "~/notes", want: filepath.FromSlash("/home/u/notes")},
		{client: "claude-desktop", field: "arg", text: "a~/notes", want: "a~/notes"},
		{client: "claude-desktop", field: "command", text: "~/bin/x", want: filepath.FromSlash("/home/u/bin/x")},
	} {
		client, _ := ByName(row.client)
		e := Entry{Name: "x", Transport: Stdio, Command: "c", Place: Place{1, 1}}
		switch row.field {
		case "env":
			e.Env = []Pair{{"V", row.text}}
		case "arg":
			e.Args = []string{row.text}
		default:
			e.Command = row.text
		}
		got, refused := Found{syntax: client.syntax, system: System{OS: "linux", Home: "/home/u"}}.Convert(e)
		if (refused != nil) != (row.refused != "") || refused != nil && !strings.Contains(refused.Sentence, row.refused) {
			t.Errorf("%s %s: refused with %v", row.client, row.text, refused)
			continue
		}
		if refused != nil {
			continue
		}
		now := got.Command
		if row.field == "env" {
			now = got.Env[0].Value
		} else if row.field == "arg" {
			now = got.Args[0]
		}
		kind, name, _ := strings.Cut(row.also, " ")
		if now != row.want || (kind == "env") != slices.Contains(got.Inherit, name) || (kind == "secret") != slices.Contains(got.Secrets, name) {
			t.Errorf("%s %s: %q, inherit %v, secrets %v", row.client, row.text, now, got.Inherit, got.Secrets)
		}
	}
}

// TestWhatAProjectFillsIn: a server of a project knows its folder.
func TestWhatAProjectFillsIn(t *testing.T) {
	client, _ := ByName("vscode")
	f := Found{syntax: client.syntax, system: System{OS: "linux", Home: "/home/u"}, project: "/home/u/shop"}
	got, refused := f.Convert(Entry{Name: "x", Transport: Stdio, Command: "${workspaceFolder}/run", Args: []string{"${workspaceFolderBasename}"}})
	if refused != nil || got.Command != "/home/u/shop/run" || got.Args[0] != "shop" || got.Cwd != filepath.FromSlash("/home/u/shop") {
		t.Errorf("%+v, %v", got, refused)
	}
}

// TestNamesInPlaceOfValues: Codex and Goose hand variables on by name.
func TestNamesInPlaceOfValues(t *testing.T) {
	found := Parse(System{OS: "linux"}, "c.toml", []byte(`[mcp_servers.a]
url = "https://x.example/mcp"
bearer_token_env_var = "A_TOKEN"
env_http_headers = { "X-Key" = "A_KEY" }
[mcp_servers.b]
command = "b"
env_vars = ["LANG_B"]
enabled = false
`))[0]
	a, refused := found.Convert(found.Entries[0])
	if refused != nil || !slices.Equal(a.Headers, []Pair{{"Authorization", "Bearer ${env:A_TOKEN}"}, {"X-Key", "${env:A_KEY}"}}) || !slices.Equal(a.Inherit, []string{"A_TOKEN", "A_KEY"}) {
		t.Errorf("%+v, %v", a, refused)
	}
	b, _ := found.Convert(found.Entries[1])
	if !slices.Equal(b.Inherit, []string{"LANG_B"}) || !found.Entries[1].Disabled {
		t.Errorf("%+v", b)
	}
	goose := Parse(System{OS: "linux"}, "g.yaml", []byte("extensions:\n  a:\n    type: stdio\n    cmd: x\n    env_keys: [A_KEY]\n"))[0]
	g, _ := goose.Convert(goose.Entries[0])
	if !slices.Equal(g.Env, []Pair{{"A_KEY", "secret:A_KEY"}}) || !slices.Equal(g.Secrets, []string{"A_KEY"}) {
		t.Errorf("%+v", g)
	}
}
