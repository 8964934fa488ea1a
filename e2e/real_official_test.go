//go:build linux

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sentinels are what a parent's environment may hold and no plugin may see.
var sentinels = []string{
	"SENTINEL_SECRET=sentinel-value-1", "AWS_ACCESS_KEY_ID=sentinel-value-2", "AWS_SECRET_ACCESS_KEY=sentinel-value-3",
	"AWS_SESSION_TOKEN=sentinel-value-4", "GOOGLE_APPLICATION_CREDENTIALS=/sentinel-value-5", "AZURE_CLIENT_SECRET=sentinel-value-6",
	"OPENAI_API_KEY=sentinel-value-7", "ANTHROPIC_API_KEY=sentinel-value-8", "GITHUB_TOKEN=sentinel-value-9",
	"DATABASE_URL=postgres://u:sentinel-value-10@localhost/x", "SSH_AUTH_SOCK=/sentinel-value-11",
}

// way is one way to connect the official inspector, as a user would type it.
type way struct {
	name   string
	target func() []string
}

// The three servers that the protocol's authors publish, in ~/.agents/plugins of
// a new user whose environment is full of secrets: found, approved, and called by
// their own inspector, over HTTP and as a command.
func TestOfficialServersAnswerTheOfficialInspector(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.with(sentinels...)
	for _, name := range official {
		h.addOfficial(name)
	}
	for _, name := range official {
		if got := h.connector(name + "/main"); got.State != "approval_required" || got.Reason != "never-approved" || got.Version != "2026.8.31" {
			t.Errorf("before anybody was asked, %+v", got)
		}
	}
	for _, name := range official {
		h.ok("approve", name, "--yes", "--all-tools")
		if got := h.connector(name + "/main"); got.State != "enabled" || got.Digest == "" {
			t.Errorf("approved, %+v", got)
		}
	}
	s := h.serve()
	token := h.addClient("claude")
	file := h.data("plugin-data", "filesystem", "hello.txt")
	if err := os.WriteFile(file, []byte("a real file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, w := range []way{
		{"HTTP", func() []string {
			return []string{s.URL + "/mcp", "--transport", "http", "--header", "Authorization: Bearer " + token}
		}},
		{"a command", func() []string { return []string{h.bin, "mcp", "--client", "claude"} }},
	} {
		t.Run("over "+w.name, func(t *testing.T) { officialAnswers(t, h, w, file) })
	}
}

func officialAnswers(t *testing.T, h *home, w way, file string) {
	ask := func(question ...string) string {
		t.Helper()
		cmd := exec.Command(inspector(t), append(append([]string{"--cli"}, w.target()...), question...)...)
		cmd.Env, cmd.Dir = h.env, h.dir
		got := h.finish(cmd, commandLimit)
		if got.code != 0 {
			t.Fatalf("the inspector exited with %d for %v\n%s%s", got.code, question, got.stdout, got.stderr)
		}
		return got.stdout
	}
	call := func(tool string, args ...string) string {
		t.Helper()
		question := []string{"--method", "tools/call", "--tool-name", tool}
		for _, arg := range args {
			question = append(question, "--tool-arg", arg)
		}
		return ask(question...)
	}

	var list struct{ Tools []struct{ Name string } }
	decode(t, ask("--method", "tools/list"), &list)
	seen := map[string]int{}
	for _, tool := range list.Tools {
		plugin, _, _ := strings.Cut(tool.Name, "__main__")
		seen[plugin]++
	}
	for _, name := range official {
		if seen[name] < 5 {
			t.Errorf("%s offers %d tools: %v", name, seen[name], list.Tools)
		}
	}

	contains(t, "everything's sum", call("everything__main__get-sum", "a=19", "b=23"), "42")
	contains(t, "filesystem's file", call("filesystem__main__read_text_file", "path="+file), "a real file")
	entity := "Ada over " + w.name
	contains(t, "memory's new entity", call("memory__main__create_entities",
		`entities=[{"name":"`+entity+`","entityType":"person","observations":["wrote the first program"]}]`), entity)
	contains(t, "memory's graph", call("memory__main__read_graph"), entity)

	contains(t, "everything's resources", ask("--method", "resources/list"), "demo://resource/static/document/features.md")
	contains(t, "one resource", ask("--method", "resources/read", "--uri", "demo://resource/dynamic/text/7"), "Resource 7")
	contains(t, "one prompt", ask("--method", "prompts/get", "--prompt-name", "everything__main__args-prompt",
		"--prompt-args", "city=Lisbon"), "weather in Lisbon")

	environment := call("everything__main__get-env")
	contains(t, "the environment", environment, "PLUGIN_ROOT")
	for _, sentinel := range sentinels {
		name, _, _ := strings.Cut(sentinel, "=")
		if strings.Contains(environment, name) {
			t.Errorf("the server sees %s", name)
		}
	}
	if strings.Contains(environment, "sentinel-value") {
		t.Errorf("the server sees a secret: %s", environment)
	}
}

func decode(t testing.TB, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

func contains(t testing.TB, what, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("%s: want %q in\n%s", what, want, text)
	}
}

// addRecorder installs the plugin that writes down what it gets, and returns a
// reader of that.
func (h *home) addRecorder() (received func() string) {
	h.t.Helper()
	h.copyTree(filepath.Join("testdata", "plugins", "recorder"), h.plugin("recorder"))
	return func() string {
		raw, _ := os.ReadFile(h.data("plugin-data", "recorder", "received.jsonl"))
		return string(raw)
	}
}
