package approvals_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals/approvalstest"
	"sallyport/runtime/plugins"
)

// inFormat makes the rig's connector one of another format.
func inFormat(r *approvalstest.Rig, format string, edit func(*plugins.Connector)) {
	r.Edit(func(c *plugins.Connector) {
		c.Format, c.Launch.Args = format, nil
		edit(c)
	})
}

// spec/approval.md 2.1a: the expanded form of a value is a field only where the format
// has more to expand than Agent Plugins has.
func TestExpandedValuesAreFieldsOfOtherFormatsOnly(t *testing.T) {
	for _, row := range []struct{ format, value, want string }{
		{plugins.AgentPlugins, "${PLUGIN_ROOT}/x", ""},
		{plugins.ClaudeCode, "${CLAUDE_PLUGIN_ROOT}/x", "${PLUGIN_ROOT}/x"},
		{plugins.ClaudeCode, "plain", ""},
		{plugins.ClaudeCode, "${LISTED:-d}", "${env:LISTED:-d}"},
		{plugins.MCPB, "${__dirname}${/}x", "${PLUGIN_ROOT}" + string(filepath.Separator) + "x"},
		{plugins.MCPB, "${user_config.name}", "chosen"},
		{plugins.MCPB, "${user_config.key}", "${secret:KEY}"},
	} {
		r := approvalstest.New(t)
		inFormat(r, row.format, func(c *plugins.Connector) {
			c.Launch.Env, c.Launch.Inherit = []plugins.Value{{Name: "VAR", Value: row.value}}, []string{"LISTED"}
			c.Requested.Secrets = []string{"KEY"}
			c.Settings = []plugins.Setting{{Key: "name", Value: []string{"chosen"}}, {Key: "key", Sensitive: true, Value: []string{"secret:KEY"}}}
		})
		v := review(t, r)
		raw, err := json.Marshal(v.Literals)
		if err != nil || len(v.Literals) != 1 || v.Literals[0].Expanded != row.want {
			t.Errorf("%s %q: %s %v", row.format, row.value, raw, err)
		}
		if strings.Contains(string(raw), "expanded") != (row.want != "") {
			t.Errorf("%s %q: %s", row.format, row.value, raw)
		}
		r.Close()
	}
}

// C32: what the operator chose is part of what was approved.
func TestASettingThatChangesEndsTheApproval(t *testing.T) {
	for _, row := range []struct {
		what       string
		args       []string
		env        string
		was, is    []string
		code, text string
	}{
		{"in an argument", []string{"${user_config.name}"}, "", []string{"a"}, []string{"b"}, "args-changed", ""},
		{"in the environment", nil, "${user_config.name}", []string{"a"}, []string{"b"}, "env-changed", ""},
		{"one that gets a value", []string{"-x", "${user_config.name}"}, "", nil, []string{"b"}, "args-changed", ""},
		{"one that loses it", nil, "${user_config.name}", []string{"a"}, nil, "env-changed", ""},
		{"one more value", []string{"${user_config.name}"}, "", []string{"a"}, []string{"a", "b"}, "args-changed", ""},
		{"one that nothing uses", nil, "", []string{"a"}, []string{"b"}, "", ""},
	} {
		t.Run(row.what, func(t *testing.T) {
			r := approvalstest.New(t)
			inFormat(r, plugins.MCPB, func(c *plugins.Connector) {
				c.Launch.Args = row.args
				if row.env != "" {
					c.Launch.Env = []plugins.Value{{Name: "VAR", Value: row.env}}
				}
				c.Settings = []plugins.Setting{{Key: "name", Multiple: true, Value: row.was}}
			})
			r.Approve(offer, "read_notes")
			r.Edit(func(c *plugins.Connector) {
				c.Settings = []plugins.Setting{{Key: "name", Multiple: true, Value: row.is}}
			})
			_, err := r.Gate.Grant(t.Context(), r.ID)
			if coded.Of(err) != row.code {
				t.Errorf("got %v, want %q", err, row.code)
			}
		})
	}
}

// What runs is given the folders of the snapshot by the format's own words.
func TestALaunchHasTheFoldersOfItsFormat(t *testing.T) {
	r := approvalstest.New(t)
	inFormat(r, plugins.ClaudeCode, func(c *plugins.Connector) {
		c.Launch.Args = []string{"${CLAUDE_PLUGIN_ROOT}/server.js", "${CLAUDE_PLUGIN_DATA}/x", "${HOME}/y"}
		c.Launch.Cwd = "${CLAUDE_PLUGIN_DATA}"
		c.Launch.Env = []plugins.Value{{Name: "R", Value: "${CLAUDE_PLUGIN_ROOT}"}}
	})
	r.Approve(offer, "read_notes")
	launch, err := r.Grant().Launch()
	if err != nil {
		t.Fatal(err)
	}
	root, data := filepath.Dir(launch.Args[0]), r.PluginData("demo")
	if root == r.Root || !strings.Contains(root, "snapshots") || launch.Args[1] != data+"/x" || launch.Args[2] != r.Dir+"/y" || launch.Dir != data {
		t.Errorf("got %q in %q", launch.Args, launch.Dir)
	}
	environ, err := launch.Env.Environ(t.Context(), nil)
	if text := strings.Join(environ, "\n") + "\n"; err != nil || !strings.Contains(text, "CLAUDE_PLUGIN_ROOT="+root+"\n") ||
		!strings.Contains(text, "\nR="+root+"\n") || !strings.Contains(text, "CLAUDE_PLUGIN_DATA="+data+"\n") {
		t.Errorf("got %q %v", environ, err)
	}
}

// What a format does not define, or nobody listed, stops with its name before anything
// is asked.
func TestWhatIsNotDefinedCannotBeApproved(t *testing.T) {
	for _, row := range []struct {
		format string
		edit   func(*plugins.Connector)
		code   string
		names  string
	}{
		{plugins.ClaudeCode, func(c *plugins.Connector) { c.Launch.Args = []string{"${TOKEN}"} }, "reference-not-allowed", `"TOKEN"`},
		{plugins.ClaudeCode, func(c *plugins.Connector) { c.Launch.Cwd = "${input:folder}" }, "placeholder-unknown", "${input:folder}"},
		{plugins.Codex, func(c *plugins.Connector) {
			c.Launch.Env = []plugins.Value{{Name: "V", Value: "${NOBODY}"}}
		}, "reference-not-allowed", `"NOBODY"`},
		{plugins.Codex, func(c *plugins.Connector) { c.Launch.Args = []string{"${env:NOBODY}"} }, "placeholder-unknown", "${env:NOBODY}"},
		{plugins.MCPB, func(c *plugins.Connector) { c.Launch.Command = "${user_config.program}" }, "placeholder-unknown", "${user_config.program}"},
		{plugins.ClaudeCode, func(c *plugins.Connector) {
			c.Transport, c.Launch = plugins.StreamableHTTP, plugins.Launch{URL: "https://${HOST:-x y}/mcp", Inherit: []string{"HOST"}}
		}, "url-invalid", ""},
		{plugins.ClaudeCode, func(c *plugins.Connector) {
			c.Transport, c.Launch = plugins.StreamableHTTP, plugins.Launch{URL: "http://${HOST:-example.com}/mcp", Inherit: []string{"HOST"}}
		}, "url-invalid", ""},
	} {
		r := approvalstest.New(t)
		inFormat(r, row.format, row.edit)
		_, err := r.Gate.Ask(t.Context(), r.ID, approvalstest.Operator)
		if coded.Of(err) != row.code || !strings.Contains(err.Error(), row.names) {
			t.Errorf("%s: got %v, want %s naming %s", row.format, err, row.code, row.names)
		}
		r.Close()
	}
}

// What a plugin of Codex names in its own fields is read and approved as a reference.
func TestVariablesThatAPluginOfCodexNames(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, ".codex-plugin", "plugin.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"name":"p","mcpServers":{"a":{"url":"https://example.com/mcp","bearer_token_env_var":"TOKEN"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := plugins.Load(t.Context(), dir)
	if err != nil || len(p.Connectors) != 1 {
		t.Fatal(err, p.Problems)
	}
	r := approvalstest.New(t)
	r.Edit(func(c *plugins.Connector) {
		id := c.ID
		*c = p.Connectors[0]
		c.ID = id
	})
	v := review(t, r)
	if len(v.Literals) != 1 || v.Literals[0].Expanded != "Bearer ${env:TOKEN}" || strings.Join(p.Connectors[0].Requested.Secrets, " ") != "TOKEN" {
		t.Errorf("got %+v %v", v.Literals, p.Connectors[0].Requested.Secrets)
	}
}

// spec/approval.md 2.1: a connector may write into its own folder at any time, so what
// lies there is not fixed; an argument that names a file there is said in red.
func TestFilesInAConnectorsOwnFolder(t *testing.T) {
	r := approvalstest.New(t)
	data := plugins.Connector{ID: r.ID, Format: plugins.ByHand}.DataName()
	r.WriteOutside(filepath.Join("plugin-data", data, "memory.json"), "{}", 0o600)
	r.WriteOutside(filepath.Join("plugin-data", data, "server.js"), "1", 0o600)
	inFormat(r, plugins.ByHand, func(c *plugins.Connector) {
		c.Root, c.Launch.Args = "", []string{"${PLUGIN_DATA}/server.js", "server.js"}
		c.Launch.Env = []plugins.Value{{Name: "MEMORY", Value: "${PLUGIN_DATA}/memory.json", FromOperator: true}}
	})
	v := review(t, r)
	var said []string
	for _, fact := range v.Facts {
		if strings.Contains(fact.Sentence, "the connector's own folder") {
			said = append(said, fact.Sentence[:10])
		}
	}
	if strings.Join(said, "|") != "argument 1|argument 2" {
		t.Errorf("said is %q of %+v", said, v.Facts)
	}
	r.Approve(offer, "read_notes")
	r.WriteOutside(filepath.Join("plugin-data", data, "memory.json"), "{more}", 0o600)
	if _, err := r.Gate.Grant(t.Context(), r.ID); err != nil {
		t.Errorf("what it stores ends its approval: %v", err)
	}
}
