//go:build linux

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/keyringtest"
)

// spec/child-environment.md 5.1: what somebody wrote out is refused with the command
// that mends it, moved to the keyring, and shown nowhere on the way.
func TestALiteralIsMovedAndShownNowhere(t *testing.T) {
	// Not in parallel: another test looks at the whole machine for this value.
	f := fortOf(newHome(t))
	f.in(keyringtest.Unlocked(t))
	newVault(f, "polite")
	f.overlay("fake/main", object{"env": object{"TOKEN": kept}})
	f.addServer("args", "polite", func(server object) { server["args"] = []string{"polite", "--token=" + kept} })
	f.addServer("held", "polite", func(server object) { server["env"] = object{"API_TOKEN": kept} })
	s := f.serve("--verbose")

	var said bytes.Buffer
	run := func(args ...string) outcome {
		got := f.run(args...)
		said.WriteString(got.stdout + got.stderr)
		return got
	}
	for id, mended := range map[string]string{
		"fake": "sallyport secrets move fake/main TOKEN", "held": "sallyport secrets move held/main API_TOKEN", "args": "sallyport plugins not-secret args/main 'args[1]'",
	} {
		got := run("approve", id, "--yes", "--all-tools")
		if got.code != 1 || !strings.Contains(got.stderr, "literal-secret:") || !strings.Contains(got.stderr, mended) {
			t.Errorf("approving %s: %+v", id, got)
		}
		for _, args := range [][]string{{"plugins", "show"}, {"plugins", "show", "--json"}, {"diff"}, {"env"}, {"call"}} {
			run(append(args, id, "env")[:len(args)+1]...)
		}
		if _, body := s.ask("GET", "/v1/plugins/"+id+"/main"); len(body) == 0 {
			t.Errorf("%s is not shown", id)
		} else {
			said.Write(body)
		}
	}
	if got := run("secrets", "move", "args"); got.code != 1 || !strings.Contains(got.stderr, "literal-fixed:") {
		t.Errorf("moving an argument: %+v", got)
	}
	for _, name := range []string{"args", "held"} {
		found, _ := filepath.Glob(filepath.Join(f.dir, "*", "*", "*", name))
		more, _ := filepath.Glob(filepath.Join(f.dir, "*", "*", name))
		for _, dir := range append(found, more...) {
			os.RemoveAll(dir)
		}
	}

	if got := run("approve", "fake", "--move-to-keyring", "--yes", "--all-tools"); got.code != 0 || !strings.Contains(got.stderr, "TOKEN is in the keyring as TOKEN; config.json refers to it") {
		t.Fatalf("approve --move-to-keyring: %+v", got)
	}
	if got := run("approve", "fake", "--move-to-keyring", "--yes", "--all-tools"); got.code != 0 {
		t.Errorf("once more, with nothing to move: %+v", got)
	}
	f.wantToken(kept)
	for _, args := range [][]string{{"audit", "export"}, {"doctor"}, {"secrets", "list"}, {"plugins", "show", "fake", "--json"}, {"env", "fake"}, {"diff", "fake"}} {
		run(args...)
	}
	wantNone(t, "what commands say", said.Bytes())
	f.askEverything(s)
	f.noCommandLine()
	s.stop()
	wantNone(t, "the log", []byte(s.stderr.String()+s.log()))
	f.noFile()
}

// A false alarm is approved by name, on the command line.
func TestAFalseAlarmOnTheCommandLine(t *testing.T) {
	t.Parallel()
	f := newPlainFort(t)
	f.addServer("fake", "polite", func(server object) { server["env"] = object{"STORE_TOKEN": "hunter2"} })
	f.serve()
	f.refused("literal-secret", "approve", "fake", "--yes", "--all-tools")
	f.refused("literal-unknown", "plugins", "not-secret", "fake", "STORE")
	if said := f.ok("plugins", "not-secret", "fake", "STORE_TOKEN"); !strings.Contains(said, "next: sallyport approve fake/main") {
		t.Errorf("it says\n%s", said)
	}
	f.approve("fake")
	if said := f.ok("call", "fake", "env"); !strings.Contains(said, "STORE_TOKEN=hunter2") {
		t.Errorf("the server was given\n%s", said)
	}
	f.ok("plugins", "not-secret", "fake", "STORE_TOKEN", "--undo")
	f.refused("literal-secret", "call", "fake", "env")
}
