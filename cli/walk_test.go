package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"sallyport/internal/buildinfo"
)

// walk calls see for every command that can be run.
func walk(cmd *cobra.Command, see func(*cobra.Command)) {
	if cmd.Runnable() && !cmd.Hidden {
		see(cmd)
	}
	for _, sub := range cmd.Commands() {
		walk(sub, see)
	}
}

// TestEveryCommandExplainsItself: a sentence in the list, and --help with an
// example that is a command line of this very command.
func TestEveryCommandExplainsItself(t *testing.T) {
	n := 0
	walk((&command{}).root(), func(cmd *cobra.Command) {
		n++
		words := cmd.CommandPath()
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: its line in the list is %q", words, cmd.Short)
		}
		if !strings.Contains(cmd.Example, "  "+words) {
			t.Errorf("%s: its example is %q", words, cmd.Example)
		}
		var out, errs bytes.Buffer
		code := Run(context.Background(), buildinfo.Info{Version: "test"}, append(strings.Fields(words)[1:], "--help"), Streams{strings.NewReader(""), &out, &errs})
		if code != 0 || errs.Len() > 0 || !strings.Contains(out.String(), "Examples:") || !strings.Contains(out.String(), "--json") {
			t.Errorf("%s --help exits with %d:\n%s%s", words, code, out.String(), errs.String())
		}
	})
	if n < 35 {
		t.Errorf("only %d commands were found", n)
	}
}

// TestEveryCommandAnswersInJSON runs every command with --json in a new home:
// what it cannot do there it refuses in JSON.
func TestEveryCommandAnswersInJSON(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "") // the keyring of whoever runs this is not touched
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	home := t.TempDir()
	input := map[string]string{"secrets import": "A=1\n"}
	arguments := map[string][]string{
		"plugins show": {"notes"}, "diff": {"notes"}, "env": {"notes"}, "approve": {"notes"}, "deny": {"notes"},
		"login": {"notes"}, "logout": {"notes"}, "enable": {"notes"}, "disable": {"notes"}, "revoke": {"notes"}, "start": {"notes"}, "stop": {"notes"}, "restart": {"notes"}, "call": {"notes", "list_notes"},
		"decisions show": {"d-absent"}, "decisions accept-store": {"--yes"}, "decisions answer": {"d-absent", "deny"},
		"install": {t.TempDir()}, "update": {"notes"}, "undo": {"notes"}, "uninstall": {"notes"}, "vendor": {"notes"},
		"connectors add": {"mine", "--url", "https://mcp.example.com/mcp"}, "connectors show": {"mine"}, "connectors rename": {"mine", "other"}, "connectors remove": {"other"},
		"clients add": {"someone"}, "clients remove": {"nobody"}, "clients show": {"someone"}, "clients grant": {"someone", "--all"},
		"clients revoke": {"nobody", "notes/main"}, "clients rotate": {"nobody"}, "digest": {t.TempDir()}, "sources add": {t.TempDir()}, "sources remove": {t.TempDir()},
		"policy set": {"deny", "--class", "write"}, "policy remove": {"--class", "read"}, "secrets set": {"A"}, "secrets delete": {"A"}, "config": {"notes"},
		"secrets move": {"notes"}, "plugins not-secret": {"notes", "A"},
	}
	other := map[string]string{ // what is printed is what was asked for, and no answer
		"help": "text", "completion bash": "a script", "completion zsh": "a script", "completion fish": "a script",
		"completion powershell": "a script", "mcp": "the protocol", "open": "starts a sidecar; see TestOpen", "serve": "runs until it is stopped; see TestServe",
		"audit export": "JSON lines, a record each",
	}
	walk((&command{}).root(), func(cmd *cobra.Command) {
		_, words, _ := strings.Cut(cmd.CommandPath(), " ")
		if words == "" || cmd.HasSubCommands() && words != "tools" || other[words] != "" {
			return
		}
		var out, errs bytes.Buffer
		args := append(append(strings.Fields(words), arguments[words]...), "--json", "--home", home)
		code := Run(context.Background(), buildinfo.Info{Version: "test"}, args, Streams{strings.NewReader(input[words]), &out, &errs})
		if code == exitUsage {
			t.Errorf("%s: this test has no arguments for it: %s", words, errs.String())
			return
		}
		var answer any
		decoder := json.NewDecoder(&out)
		if err := decoder.Decode(&answer); err != nil || decoder.More() {
			t.Errorf("%s --json exits with %d and does not print one JSON document: %v\n%s", words, code, err, errs.String())
		}
		if failed, ok := answer.(map[string]any); code == exitRefused && words != "doctor" && (!ok || failed["error"] == nil) {
			t.Errorf("%s --json is refused and prints %v", words, answer)
		}
	})
}

func TestTextOfAPluginIsOnlyText(t *testing.T) {
	for _, row := range []struct{ in, text, encoded string }{
		{"plain ünï 漢字\tand\n", "plain ünï 漢字\tand\n", "plain ünï 漢字\u0009and\n"},
		{"a\x1b[2Jb", `a\u{001B}[2Jb`, `a\u001b[2Jb`},
		{"a\u202eb\u200bc", `a\u{202E}b\u{200B}c`, `a\u202eb\u200bc`},
		{"tag \U000E0041", `tag \u{E0041}`, `tag \udb40\udc41`},
		{"\r over", `\u{000D} over`, `\u000d over`},
	} {
		var out bytes.Buffer
		if n, err := (terminal{&out}).Write([]byte(row.in)); err != nil || n != len(row.in) || out.String() != row.text {
			t.Errorf("%q is shown as %q (%d, %v)", row.in, out.String(), n, err)
		}
		if !strings.Contains(row.in, "\t") && escaped(row.in) != row.encoded {
			t.Errorf("%q is encoded as %q", row.in, escaped(row.in))
		}
	}
}
