//go:build linux

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sallyport/internal/keyringtest"
)

// Each way in which a keyring can be missing is told apart, with the commands to type; and
// where nothing needs one it is no fault.
func TestDoctorExplainsAMissingKeyring(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		login func(testing.TB) *keyringtest.Session
		says  string
		typed string
	}{
		{"no bus", keyringtest.NoBus, "no session bus", ""},
		{"no provider", keyringtest.NoProvider, "no program on this system offers a keyring", "gnome-keyring"},
		{"no collection", keyringtest.NoCollection, "it has no keyring to", "gnome-keyring-daemon"},
		{"locked", keyringtest.Locked, "the keyring is locked", "gnome-keyring-daemon"},
		{"a bus that never answers", keyringtest.Silent, "the keyring does not answer", "gnome-keyring-daemon"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			f := fortOf(newHome(t))
			f.sealsByFile()
			f.in(row.login(t))
			f.serve()
			if got := f.run("doctor"); got.code != 0 || !strings.Contains(got.stdout, "-    keyring") || !strings.Contains(got.stdout, "doctor --keyring") {
				t.Errorf("nothing needs one:\n%+v", got)
			}
			newVault(f, "polite")
			waitFor(t, "the server asks for a secret", 20*time.Second, func() bool { return strings.Contains(f.ok("secrets", "list"), "fake/main") })
			begun := time.Now()
			got := f.run("doctor")
			if took := time.Since(begun); took > 8*time.Second {
				t.Errorf("doctor took %s", took)
			}
			lines := strings.Split(got.stdout, "\n")
			if got.code != 1 || !strings.Contains(got.stdout, "BAD  keyring") || !strings.Contains(got.stdout, row.says) ||
				!strings.Contains(got.stdout, "Waits for it: fake/main. All others run.") || len(lines) > 24 {
				t.Errorf("%d lines, exit code %d:\n%s", len(lines), got.code, got.stdout)
			}
			if row.typed != "" && !strings.Contains(got.stdout, row.typed) {
				t.Errorf("it does not say what to type:\n%s", got.stdout)
			}
			var found []struct {
				OK      bool
				Keyring *struct {
					Code  string
					Needs []struct{ ID string }
					Steps []struct{ Type []string }
				}
			}
			machine := f.run("doctor", "--keyring", "--json")
			if err := json.Unmarshal([]byte(machine.stdout), &found); err != nil || len(found) != 1 || found[0].OK || found[0].Keyring == nil ||
				!strings.HasPrefix(found[0].Keyring.Code, "keyring-") || len(found[0].Keyring.Steps) == 0 || len(found[0].Keyring.Needs) != 1 {
				t.Errorf("--json: %v\n%s", err, machine.stdout)
			}
		})
	}
}

// What doctor says to type works when it is typed, word for word.
func TestWhatDoctorSaysToTypeOpensTheKeyring(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		login func(testing.TB) *keyringtest.Session
	}{
		{"locked", keyringtest.Locked}, {"never used", keyringtest.NoCollection}, {"not started", keyringtest.NoProvider},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			f := fortOf(newHome(t))
			f.sealsByFile()
			l := row.login(t)
			f.in(l)
			said := f.run("doctor", "--keyring").stdout
			command := ""
			for line := range strings.Lines(said) {
				if strings.Contains(line, "gnome-keyring-daemon") && strings.HasPrefix(line, "         ") {
					command = strings.TrimSpace(line)
				}
			}
			if command == "" {
				t.Fatalf("there is nothing to type:\n%s", said)
			}
			shell := shellIn(f.home, f.dir, command)
			shell.Stdin = strings.NewReader(keyringtest.Password + "\n")
			if got := f.finish(shell, commandLimit); got.code != 0 {
				t.Fatalf("$ %s\n%+v", command, got)
			}
			waitFor(t, "the keyring is open", 20*time.Second, func() bool { return f.keep("NOTES", usual).code == 0 })
			if got := f.run("doctor", "--keyring"); got.code != 0 || !strings.Contains(got.stdout, "ok   keyring") {
				t.Errorf("doctor:\n%+v", got)
			}
		})
	}
}
