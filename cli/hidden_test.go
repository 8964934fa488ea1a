package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/cli"
)

// run runs one command line in this process.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Run(t.Context(), testBuild, args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	return code, out.String(), errs.String()
}

// hidden are the characters of case C44, which act on a terminal or a reader.
var hidden = []string{"\x1b", "\u009b", "\u202e", "\u2066", "\u200b", "\U000E0041", "\r", "\a", "\b"}

// TestNoHiddenTextReachesATerminal is case C44: a plugin that says what it likes
// wherever it can, and every command that shows something of it.
func TestNoHiddenTextReachesATerminal(t *testing.T) {
	if _, err := fakeServer(); err != nil { // with the go command's own home, where its cache is
		t.Fatal(err)
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	folder := filepath.Join(home, ".agents", "plugins")
	if err := addPlugin(folder, "evil", []string{"main"}); err != nil {
		t.Fatal(err)
	}
	const text = `harmless\u001b[2J\u001b[8m\u009b2J\u202e\u2066\u200b\udb40\udc41\r\u0007\u0008`
	write(t, filepath.Join(folder, "evil", "plugin.json"), fmt.Sprintf(`{"$schema":"https://agent-plugins.org/schemas/1.0.0/plugin.schema.json",
		"name":"evil","version":"1.0.0","description":"%s","author":{"name":"%s"},"license":"%s","x-%s":1}`, text, text, text, text))
	write(t, filepath.Join(folder, "evil", "mcp.json"), fmt.Sprintf(`{"$schema":"https://agent-plugins.org/schemas/1.0.0/mcp.schema.json",
		"mcpServers":{"main":{"type":"stdio","command":"./bin/server.exe","args":["polite","%s"],"env":{"GREETING":"%s"}}}}`, text[:len(text)-6], `harmless\u001b[2J\u202e`))
	write(t, filepath.Join(folder, "worse", "plugin.json"), `{"name":"`+text+`"}`)

	seen := ""
	for _, line := range [][]string{
		{"plugins", "list"}, {"plugins", "scan"}, {"plugins", "show", "evil"}, {"diff", "evil"}, {"env", "evil"},
		{"approve", "evil", "--yes", "--tools", "echo,args"}, {"plugins", "show", "evil"}, {"tools"}, {"call", "evil", "args"},
		{"call", "evil", "no\x1b[2J\u202etool"}, {"audit", "list"}, {"audit", "list", "--json"}, {"audit", "export"},
		{"decisions", "list", "--all"}, {"doctor"}, {"status"}, {"plugins", "show", "x\x1b[2J\u202e"}, {"nonsense\x1b[2J\u202e"},
		{"plugins", "list", "--json"}, {"plugins", "show", "evil", "--json"}, {"deny", "evil"}, {"revoke", "evil"},
	} {
		_, out, errs := run(t, line...)
		for _, character := range hidden {
			if strings.Contains(out+errs, character) && !(line[0] == "audit" && line[1] == "export") {
				t.Errorf("sallyport %q prints %q raw", line, character)
			}
		}
		seen += out + errs
	}
	for _, mark := range []string{`\u{001B}[2J`, `\u{202E}`, `\u{200B}`} {
		if !strings.Contains(seen, mark) {
			t.Errorf("%s is nowhere to be seen", mark)
		}
	}
}

// TestServe: the ready line is one JSON document, and health exits with 0 then.
func TestServe(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("SALLYPORT_HOME", t.TempDir()) // two commands of one process: xdg reads the folders into variables of its own
	ctx, stop := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	ended := make(chan int)
	go func() {
		ended <- cli.Run(ctx, testBuild, []string{"serve", "--json"}, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	}()
	code, said, _ := run(t, "health", "--wait", "30s", "--json")
	if code != 0 || !strings.Contains(said, `"port": `) || !strings.Contains(said, `"url": "http://127.0.0.1:`) {
		t.Errorf("health exits with %d and says %s", code, said)
	}
	if code, _, _ := run(t, "health", "--expect-version", "9"); code != 5 {
		t.Errorf("another version exits with %d", code)
	}
	if code, said, _ := run(t, "health", "--expect-within", t.TempDir(), "--json"); code != 6 || !strings.Contains(said, `"pid": `) {
		t.Errorf("a program from another folder exits with %d and says %s", code, said)
	}
	if code, said, _ := run(t, "status"); code != 0 || !strings.Contains(said, "is running at http://127.0.0.1:") {
		t.Errorf("status exits with %d and says %s", code, said)
	}
	if code, said, _ := run(t, "serve"); code != 0 || !strings.Contains(said, "is already running at") {
		t.Errorf("a second serve exits with %d and says %s", code, said)
	}
	if code, _, errs := run(t, "clients", "add", "claude"); code != 0 {
		t.Errorf("clients add: %d %s", code, errs)
	}
	stop()
	if code := <-ended; code != 0 || !strings.HasPrefix(out.String(), `{"event":"ready","url":"http://127.0.0.1:`) || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("serve exits with %d and printed %q, %q", code, out.String(), errs.String())
	}
	if code, _, _ := run(t, "health"); code != 3 {
		t.Errorf("after the end health exits with %d", code)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
