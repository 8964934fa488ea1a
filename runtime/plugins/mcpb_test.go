package plugins

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/coded"
)

// nowhere is a bundle without files: every path in it is missing, or leads out.
func nowhere(path string) error {
	if climbs(path) {
		return errOutside
	}
	return fs.ErrNotExist
}

// mcpbWith is a manifest with that server object and further fields.
func mcpbWith(server string, more ...string) string {
	return `{"manifest_version": "0.3", "name": "demo", "version": "1.0.0", "description": "d", "author": {"name": "A"}, "server": ` +
		server + strings.Join(append([]string{""}, more...), ", ") + `}`
}

const nodeServer = `{"type": "node", "entry_point": "server/index.js", "mcp_config": {"command": "node", "args": ["${__dirname}/server/index.js"], "env": {"B": "2", "A": "1"}}}`

func parseOn(t *testing.T, platform, text string) (mcpb, []Problem, *Problem) {
	t.Helper()
	return parseMCPB([]byte(text), platform, nowhere)
}

func TestEveryVersionOfMCPBundlesIsRead(t *testing.T) {
	for _, row := range []struct{ field, format string }{
		{`"dxt_version": "0.1"`, "mcpb-0.1"},
		{`"manifest_version": "0.1"`, "mcpb-0.1"},
		{`"manifest_version": "0.2"`, "mcpb-0.2"},
		{`"manifest_version": "0.3"`, "mcpb-0.3"},
		{`"manifest_version": "0.4"`, "mcpb-0.4"},
		{`"dxt_version": "0.1", "manifest_version": "0.2"`, "mcpb-0.2"},
	} {
		text := strings.Replace(mcpbWith(nodeServer), `"manifest_version": "0.3"`, row.field, 1)
		m, problems, wrong := parseOn(t, "linux", text)
		if wrong != nil || m.format != row.format {
			t.Errorf("%s: %s %v", row.field, m.format, wrong)
		}
		if len(problems) != 1 || problems[0].Code != "entry-point-missing" {
			t.Errorf("%s: %v", row.field, problems)
		}
		if DialectOf(m.format).Settings == "" {
			t.Errorf("%s: its placeholders are not known", m.format)
		}
	}
}

// C37.
func TestThePlatformsOwnFieldsReplaceTheOthersWhole(t *testing.T) {
	const base = `"command": "node", "args": ["a", "b"], "env": {"X": "1", "Y": "2"}`
	config := func(override string) string {
		return mcpbWith(`{"type": "node", "entry_point": "i.js", "mcp_config": {` + base + `, "platform_overrides": ` + override + `}}`)
	}
	env := []Value{{Name: "X", Value: "1"}, {Name: "Y", Value: "2"}}
	for _, row := range []struct {
		why, platform, override string
		want                    Launch
	}{
		{"only a command", "win32", `{"win32": {"command": "node.exe"}}`, Launch{Command: "node.exe", Args: []string{"a", "b"}, Env: env}},
		{"an empty list", "win32", `{"win32": {"args": []}}`, Launch{Command: "node", Args: []string{}, Env: env}},
		{"only an environment", "darwin", `{"darwin": {"env": {"Z": "3"}}}`, Launch{Command: "node", Args: []string{"a", "b"}, Env: []Value{{Name: "Z", Value: "3"}}}},
		{"an empty environment", "darwin", `{"darwin": {"env": {}}}`, Launch{Command: "node", Args: []string{"a", "b"}, Env: []Value{}}},
		{"everything", "linux", `{"linux": {"command": "bun", "args": ["c"], "env": {}}}`, Launch{Command: "bun", Args: []string{"c"}, Env: []Value{}}},
		{"another platform", "linux", `{"win32": {"command": "node.exe", "args": [], "env": {}}}`, Launch{Command: "node", Args: []string{"a", "b"}, Env: env}},
		{"nothing", "linux", `{"linux": {}}`, Launch{Command: "node", Args: []string{"a", "b"}, Env: env}},
		{"no platform", "linux", `{}`, Launch{Command: "node", Args: []string{"a", "b"}, Env: env}},
	} {
		m, _, wrong := parseOn(t, row.platform, config(row.override))
		if wrong != nil || !reflect.DeepEqual(m.launch, row.want) {
			t.Errorf("%s: %+v %v, want %+v", row.why, m.launch, wrong, row.want)
		}
	}
}

func TestCommandsOfMCPBundles(t *testing.T) {
	for _, row := range []struct{ kind, entry, command, want, code string }{
		{"node", "server/index.js", "node", "node", ""},
		{"binary", "server/my-server", "server/my-server", "./server/my-server", ""},
		{"binary", "server/my-server", "./server/my-server", "./server/my-server", ""},
		{"binary", "server/my-server", `server\\my-server.exe`, "./server/my-server.exe", ""},
		{"binary", "server/my-server", "${__dirname}/server/my-server", "./server/my-server", ""},
		{"binary", "server/my-server", "${__dirname}${/}server${pathSeparator}my-server", "./server/my-server", ""},
		{"binary", "my-server", "my-server", "./my-server", ""},
		{"node", "my-server", "my-server", "my-server", ""},
		{"python", "main.py", "/usr/bin/python3", "/usr/bin/python3", ""},
		{"python", "main.py", `C:\\Python\\python.exe`, `C:\Python\python.exe`, ""},
		{"python", "main.py", "${user_config.python}/bin/python", "${user_config.python}/bin/python", ""},
		{"node", "i.js", "", "", "command-invalid"},
		{"node", "i.js", "node index.js", "", "command-invalid"},
		{"node", "i.js", "../evil", "", "command-invalid"},
		{"node", "i.js", "${__dirname}/../evil", "", "command-invalid"},
		{"node", "i.js", "./", "", "command-invalid"},
		{"node", "i.js", `a\u0000b`, "", "command-invalid"},
	} {
		m, _, wrong := parseOn(t, "linux", mcpbWith(fmt.Sprintf(`{"type": %q, "entry_point": %q, "mcp_config": {"command": "%s"}}`, row.kind, row.entry, row.command)))
		code := ""
		if wrong != nil {
			code = wrong.Code
		}
		if code != row.code || code == "" && m.launch.Command != row.want {
			t.Errorf("%s: %q %v, want %q %s", row.command, m.launch.Command, wrong, row.want, row.code)
		}
	}
}

func TestAUvServerNeedsNoConfiguration(t *testing.T) {
	text := strings.Replace(mcpbWith(`{"type": "uv", "entry_point": "src/server.py"}`), "0.3", "0.4", 1)
	m, problems, wrong := parseOn(t, "linux", text)
	if !slices.ContainsFunc(problems, func(p Problem) bool { return p.Code == "uv-lock-missing" }) {
		t.Errorf("without a lock file: %v", problems)
	}
	want := Launch{Command: "uv", Args: []string{"run", "--directory", "${__dirname}", "src/server.py"},
		Env: []Value{{Name: "UV_PROJECT_ENVIRONMENT", Value: "${PLUGIN_DATA}/venv"}}}
	if wrong != nil || !reflect.DeepEqual(m.launch, want) {
		t.Errorf("%+v %v", m.launch, wrong)
	}
	m, problems, wrong = parseMCPB([]byte(text), "linux", func(string) error { return nil })
	if wrong != nil || len(problems) != 0 || !slices.Equal(m.launch.Args, []string{"run", "--frozen", "--directory", "${__dirname}", "src/server.py"}) {
		t.Errorf("with one: %+v %v %v", m.launch, problems, wrong)
	}
	m, _, wrong = parseOn(t, "linux", mcpbWith(`{"type": "uv", "entry_point": "src/server.py", "mcp_config": {"command": "uv", "args": ["run", "x"]}}`))
	if wrong != nil || !slices.Equal(m.launch.Args, []string{"run", "x"}) {
		t.Errorf("%+v %v", m.launch, wrong)
	}
}

// C37: what is harmless is said and ignored.
func TestMCPBundlesAreReadInSpiteOf(t *testing.T) {
	for _, row := range []struct{ why, text, code, sentence string }{
		{"an unknown field", mcpbWith(nodeServer, `"x-extra": {"a": 1}`), "unknown-field", `the field "x-extra" is unknown and ignored`},
		{"variables in the wrong place", mcpbWith(`{"type": "node", "entry_point": "i.js", "env": {"A": "1"}, "mcp_config": {"command": "node"}}`),
			"env-misplaced", "server.env is ignored: the variables belong in server.mcp_config.env"},
		{"an unknown field of the server", mcpbWith(`{"type": "node", "entry_point": "i.js", "mcp_config": {"command": "node", "cwd": "x"}}`),
			"unknown-field", `the field "cwd" of server.mcp_config is unknown and ignored`},
		{"an unknown platform", mcpbWith(`{"type": "node", "entry_point": "i.js", "mcp_config": {"command": "node", "platform_overrides": {"amiga": {}}}}`),
			"unknown-field", `platform_overrides: the platform "amiga" is unknown`},
		{"an entry point that is not there", mcpbWith(nodeServer), "entry-point-missing", "the file that server.entry_point names is not there"},
		{"a description that is none", mcpbWith(nodeServer, `"homepage": 7`), "field-ignored", "homepage is a number, and is ignored"},
		{"keywords that are none", mcpbWith(nodeServer, `"keywords": "a"`), "field-ignored", "keywords is not a list of strings, and is ignored"},
		{"a tool without a name", mcpbWith(nodeServer, `"tools": [{"name": "a"}, {}]`), "field-ignored", "an entry of tools has no name, and is ignored"},
		{"tools that are none", mcpbWith(nodeServer, `"tools": {}`), "field-ignored", "tools is an object, and is ignored"},
	} {
		_, problems, wrong := parseOn(t, "linux", row.text)
		if wrong != nil || !slices.ContainsFunc(problems, func(p Problem) bool { return p.Code == row.code && p.Sentence == row.sentence && p.Line == 1 }) {
			t.Errorf("%s: %v %v", row.why, problems, wrong)
		}
	}
	for _, quiet := range []string{
		mcpbWith(nodeServer, `"repository": "https://example.com/r"`, `"tools": [{"name": "a", "inputSchema": {"type": "object"}}]`, `"_meta": {"x": {"y": 1}}`,
			`"compatibility": {"claude_desktop": ">=9", "runtimes": {"node": ">=16"}}`, `"long_description": "l"`, `"icons": []`, `"privacy_policies": []`),
	} {
		m, problems, wrong := parseOn(t, "linux", quiet)
		if wrong != nil || len(problems) != 1 {
			t.Errorf("%v %v", problems, wrong)
		}
		if m.repository != "https://example.com/r" || !slices.Equal(m.declared.Runtimes, []string{"node >=16"}) || m.declared.Tools[0].Name != "a" {
			t.Errorf("%+v", m)
		}
	}
}

func TestMCPBundlesAreRejectedByName(t *testing.T) {
	config := func(fields string) string {
		return mcpbWith(`{"type": "node", "entry_point": "i.js", "mcp_config": {` + fields + `}}`)
	}
	setting := func(fields string) string { return mcpbWith(nodeServer, `"user_config": {"k": {`+fields+`}}`) }
	for _, row := range []struct{ why, text, code, says string }{
		{"no JSON", `{`, "manifest-syntax", ""},
		{"no object", `[]`, "manifest-invalid", ""},
		{"no version", strings.Replace(mcpbWith(nodeServer), "manifest_version", "x", 1), "manifest-version-unsupported", "missing"},
		{"a version that is not known", strings.Replace(mcpbWith(nodeServer), "0.3", "9.9", 1), "manifest-version-unsupported", `"9.9"`},
		{"a name twice", mcpbWith(nodeServer, `"name": "other"`), "duplicate-key", `"name"`},
		{"a server's field twice", config(`"command": "a", "command": "b"`), "duplicate-key", `"command"`},
		{"no name", strings.Replace(mcpbWith(nodeServer), `"demo"`, `" "`, 1), "name-invalid", ""},
		{"a version that is a number", strings.Replace(mcpbWith(nodeServer), `"1.0.0"`, `1`, 1), "field-invalid", "a number"},
		{"no server", strings.Replace(mcpbWith(nodeServer), `"server"`, `"servers"`, 1), "server-invalid", "missing"},
		{"a server type that is not known", mcpbWith(`{"type": "docker", "entry_point": "x"}`), "server-type-unknown", `"docker"`},
		{"no server type", mcpbWith(`{"entry_point": "x"}`), "server-type-unknown", ""},
		{"a node server that says nothing", mcpbWith(`{"type": "node", "entry_point": "x"}`), "mcp-config-missing", "node"},
		{"an entry point outside", mcpbWith(`{"type": "node", "entry_point": "../x", "mcp_config": {"command": "node"}}`), "path-outside", ""},
		{"no command", config(`"args": []`), "command-invalid", ""},
		{"arguments that are a text", config(`"command": "node", "args": "x"`), "args-invalid", ""},
		{"an argument that is a number", config(`"command": "node", "args": [1]`), "args-invalid", ""},
		{"a variable that is a number", config(`"command": "node", "env": {"PORT": 3000}`), "env-invalid", `"PORT"`},
		{"a variable that Sallyport sets", config(`"command": "node", "env": {"PLUGIN_ROOT": "x"}`), "env-invalid", `"PLUGIN_ROOT"`},
		{"overrides that are a list", config(`"command": "node", "platform_overrides": []`), "server-invalid", ""},
		{"an override that is a text", config(`"command": "node", "platform_overrides": {"linux": "x"}`), "server-invalid", "linux"},
		{"an override without a value", config(`"command": "node", "platform_overrides": {"linux": {"env": null}}`), "env-invalid", ""},
		{"platforms that are a text", mcpbWith(nodeServer, `"compatibility": {"platforms": "linux"}`), "compatibility-invalid", ""},
		{"settings that are a list", mcpbWith(nodeServer, `"user_config": []`), "user-config-invalid", ""},
		{"a setting's field twice", setting(`"type": "string", "sensitive": true, "sensitive": false`), "duplicate-key", `"sensitive"`},
		{"a setting of an unknown type", setting(`"type": "secret"`), "user-config-invalid", `"secret"`},
		{"a secrecy that is a text", setting(`"type": "string", "sensitive": "yes"`), "user-config-invalid", "sensitive"},
		{"a bound that is a text", setting(`"type": "number", "max": "9"`), "user-config-invalid", "max"},
		{"a default that is an object", setting(`"type": "string", "default": {}`), "user-config-invalid", "default"},
		{"a default of the wrong type", setting(`"type": "number", "default": "ten"`), "user-config-invalid", "number"},
		{"a default above the bound", setting(`"type": "number", "default": 11, "max": 10`), "user-config-invalid", "at most 10"},
		{"two defaults for one value", setting(`"type": "directory", "default": ["a", "b"]`), "user-config-invalid", "one value"},
		{"a setting that no command could name", mcpbWith(nodeServer, `"user_config": {"a=b": {"type": "string"}}`), "user-config-invalid", `"a=b"`},
	} {
		_, _, wrong := parseOn(t, "linux", row.text)
		if wrong == nil || wrong.Code != row.code || !strings.Contains(wrong.Sentence, row.says) {
			t.Errorf("%s: %v", row.why, wrong)
		}
	}
}

func TestNamesOfMCPBundlesAreIDs(t *testing.T) {
	for text, want := range map[string]string{
		"demo": "demo", "My MCP Extension": "my-mcp-extension", "my_server": "my-server", "@scope/name": "scope-name", "a.b": "a.b",
		"--x--": "x", "café": "caf-850f7dc4", "cafè": "caf-08dcdafd", "数据库": "263200d7", "..": "5ec1f7e7",
	} {
		got := mcpbName(text)
		if got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{strings.Repeat("long-", 40), "\u202e", "寸止", "a b", "-", "😀"} {
		if name := mcpbName(text); !isPluginName(name) {
			t.Errorf("%q is %q, which is no name", text, name)
		}
	}
}

// writeMCPB makes an unpacked bundle.
func writeMCPB(t *testing.T, manifest string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "server"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"manifest.json": manifest, "server/index.js": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAnUnpackedMCPBundleIsAPlugin(t *testing.T) {
	dir := writeMCPB(t, strings.Replace(mcpbWith(nodeServer, `"tools": [{"name": "a", "description": "b"}]`, `"prompts_generated": true`), `"demo"`, `"My Demo"`, 1))
	p, err := Load(t.Context(), dir)
	if err != nil || p.Invalid != nil || len(p.Problems) != 1 || p.Problems[0].Code != "name-adapted" {
		t.Fatalf("%v %v %v", err, p.Invalid, p.Problems)
	}
	if p.Name != "my-demo" || p.DisplayName != "My Demo" || p.Format != "mcpb-0.3" || p.Author.Name != "A" || p.Manifest != "manifest.json" {
		t.Errorf("%+v", p)
	}
	if !reflect.DeepEqual(p.Declared.Tools, []DeclaredItem{{"a", "b"}}) || !p.Declared.MorePrompts || p.Declared.MoreTools {
		t.Errorf("%+v", p.Declared)
	}
	c := p.Connectors[0]
	if c.ID.String() != "my-demo/main" || c.Transport != Stdio || c.Invalid != nil || c.Launch.Env[0].Name != "A" {
		t.Errorf("%+v", c)
	}
}

func TestABundleForOtherPlatformsIsInvalid(t *testing.T) {
	dir := writeMCPB(t, mcpbWith(nodeServer, `"compatibility": {"platforms": ["amiga", "beos"]}`))
	p, err := Load(t.Context(), dir)
	if err != nil || p.Invalid != nil || coded.Of(p.Connectors[0].Invalid) != "platform-unsupported" {
		t.Fatalf("%v %+v", err, p)
	}
	want := "it is made for amiga, beos, and this computer is " + platformOf(runtime.GOOS)
	if got := p.Connectors[0].Invalid.Sentence; got != want {
		t.Errorf("%s", got)
	}
	dir = writeMCPB(t, mcpbWith(nodeServer, `"compatibility": {"platforms": ["amiga", "`+platformOf(runtime.GOOS)+`"]}`))
	if p, err := Load(t.Context(), dir); err != nil || p.Connectors[0].Invalid != nil {
		t.Errorf("%v %v", err, p.Connectors[0].Invalid)
	}
}

// Under _meta, where the format has room for it.
func TestPermissionsOfAnMCPBundle(t *testing.T) {
	load := func(ours string) *Plugin {
		p, err := Load(t.Context(), writeMCPB(t, mcpbWith(nodeServer, `"_meta": {"app.sallyport": `+ours+`, "com.example": 3}`)))
		if err != nil || p.Invalid != nil {
			t.Fatalf("%v %v", err, p.Invalid)
		}
		return p
	}
	p := load(`{"permissions": {"tools": ["read_*"], "secrets": ["KEY"]}, "servers": {"main": {"inherit": ["LANG2"]}, "other": {}}}`)
	c := p.Connectors[0]
	if c.Invalid != nil || !slices.Equal(c.Requested.Tools, []string{"read_*"}) || !slices.Equal(c.Requested.Secrets, []string{"KEY"}) || !slices.Equal(c.Launch.Inherit, []string{"LANG2"}) {
		t.Errorf("%+v", c)
	}
	if len(p.Problems) != 1 || p.Problems[0].Code != "unknown-server" {
		t.Errorf("%v", p.Problems)
	}
	for _, ours := range []string{`3`, `{"permissions": {"secret": []}}`, `{"unknown": 1}`, `{"servers": {"main": {"inherit": 3}}}`, `{"permissions": {}, "permissions": {}}`} {
		if p := load(ours); coded.Of(p.Connectors[0].Invalid) != "extension-invalid" || !strings.Contains(p.Connectors[0].Invalid.Sentence, `_meta["app.sallyport"]`) {
			t.Errorf("%s: what cannot be read may have been the limit: %v", ours, p.Connectors[0].Invalid)
		}
	}
}

const settingsOf = `"user_config": {
	"dirs": {"type": "directory", "title": "Folders", "multiple": true, "required": true, "default": ["${HOME}/Desktop"]},
	"key": {"type": "string", "title": "Key", "sensitive": true, "required": true},
	"level": {"type": "number", "min": 1, "max": 10, "default": 3},
	"loud": {"type": "boolean", "default": false},
	"place": {"type": "string", "required": true}}`

func TestSettingsOfMCPBundles(t *testing.T) {
	m, _, wrong := parseOn(t, "linux", mcpbWith(nodeServer, settingsOf))
	if wrong != nil {
		t.Fatal(wrong)
	}
	want := []Setting{
		{Key: "dirs", Title: "Folders", Type: "directory", Multiple: true, Required: true, Default: []string{"${HOME}/Desktop"}},
		{Key: "key", Title: "Key", Type: "string", Sensitive: true, Required: true},
		{Key: "level", Type: "number", Min: "1", Max: "10", Default: []string{"3"}},
		{Key: "loud", Type: "boolean", Default: []string{"false"}},
		{Key: "place", Type: "string", Required: true},
	}
	if !reflect.DeepEqual(m.settings, want) {
		t.Errorf("%+v", m.settings)
	}
}

// scanWith lists one bundle with what the operator says about it.
func scanWith(t *testing.T, manifest, overlay string) Connector {
	t.Helper()
	dir := writeMCPB(t, manifest)
	overlays, err := ParseOverlays([]byte(overlay))
	if err != nil {
		t.Fatal(err)
	}
	listing, err := New(Config{Folders: []Folder{{Path: dir, Label: "demo", Kind: One}}, Overlay: overlays}).Scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, ok := listing.Connector(ID{"demo", "main"})
	if !ok {
		t.Fatalf("%+v", listing)
	}
	return c
}

func TestAMissingSettingSaysHowToGiveIt(t *testing.T) {
	manifest := mcpbWith(nodeServer, settingsOf)
	c := scanWith(t, manifest, `{}`)
	if coded.Of(c.Invalid) != "user-config-missing" {
		t.Fatalf("%v", c.Invalid)
	}
	if c.Invalid.Sentence != `it needs values for "key", "place"` || c.Invalid.Next != "give it: sallyport config demo/main --secret key place=VALUE" {
		t.Errorf("%s; %s", c.Invalid.Sentence, c.Invalid.Next)
	}
	c = scanWith(t, manifest, `{"demo/main": {"userConfig": {"key": "secret:demo.key", "place": ""}}}`)
	if coded.Of(c.Invalid) != "user-config-missing" || c.Invalid.Sentence != `it needs a value for "place"` {
		t.Errorf("a blank value: %v", c.Invalid)
	}
	c = scanWith(t, manifest, `{"demo/main": {"userConfig": {"key": "secret:demo.key", "place": "here", "level": 7, "loud": true}}}`)
	if c.Invalid != nil || !slices.Contains(c.Requested.Secrets, "demo.key") {
		t.Errorf("%v %v", c.Invalid, c.Requested.Secrets)
	}
}

func TestSettingsThatDoNotFitAreRefusedByName(t *testing.T) {
	manifest := mcpbWith(nodeServer, settingsOf)
	for value, says := range map[string]string{
		`"level": "high"`: `the setting "level" is a number`, `"level": "NaN"`: `the setting "level" is a number`,
		`"level": "0x3"`: `the setting "level" is a number`, `"level": 0`: `the setting "level" is at least 1`,
		`"level": 10.5`: `the setting "level" is at most 10`, `"loud": "yes"`: `the setting "loud" is true or false`,
		`"dirs": "relative"`:  `the setting "dirs" is a whole path, from the root on`,
		`"place": ["a", "b"]`: `the setting "place" has one value`, `"other": "x"`: `the plugin has no setting "other"`,
	} {
		c := scanWith(t, manifest, `{"demo/main": {"userConfig": {`+value+`}}}`)
		if coded.Of(c.Invalid) != "overlay-invalid" || !strings.HasSuffix(c.Invalid.Sentence, says) {
			t.Errorf("%s: %v", value, c.Invalid)
		}
	}
}

// FuzzMCPB: a manifest is read, or rejected with a code and a place.
func FuzzMCPB(f *testing.F) {
	f.Add([]byte(mcpbWith(nodeServer, settingsOf)))
	f.Add([]byte(mcpbWith(`{"type": "uv", "entry_point": "x"}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, platform := range []string{"win32", "linux"} {
			m, problems, wrong := parseMCPB(data, platform, nowhere)
			switch {
			case wrong != nil && (wrong.Code == "" || wrong.Line < 1 || !wrong.isFatal()):
				t.Fatalf("%+v", wrong)
			case wrong == nil && (!isPluginName(m.name) || m.launch.Command == "" || !strings.HasPrefix(m.format, "mcpb-0.")):
				t.Fatalf("%+v", m)
			}
			if _, err := json.Marshal(problems); err != nil {
				t.Fatal(err)
			}
		}
	})
}
