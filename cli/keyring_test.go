package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"sallyport/api"
	"sallyport/runtime/approvals"
	"sallyport/runtime/secrets"
)

var update = flag.Bool("update", false, "write the golden files anew")

// keyringSystems are the places where a keyring may be missing, each for reasons of its
// own.
func keyringSystems() []struct {
	name string
	secrets.System
} {
	return []struct {
		name string
		secrets.System
	}{
		{"Linux, at a desktop", secrets.System{OS: "linux", Desktop: true}},
		{"Linux, by SSH", secrets.System{OS: "linux", SSH: true}},
		{"Linux, as a service", secrets.System{OS: "linux"}},
		{"Linux, in WSL", secrets.System{OS: "linux", WSL: true}},
		{"Linux, in a container", secrets.System{OS: "linux", Container: true}},
		{"macOS", secrets.System{OS: "darwin", Desktop: true}},
		{"macOS, by SSH", secrets.System{OS: "darwin", SSH: true}},
		{"Windows", secrets.System{OS: "windows", Desktop: true}},
	}
}

// The longest answers there are: many connectors, and the seal key.
func keyringNeeds() map[string]func(*api.Keyring) {
	needs := []api.KeyringNeed{
		{ID: "github-integration/main", Secrets: []string{"A"}}, {ID: "company-calendar/events", Secrets: []string{"B"}},
		{ID: "notes/main", Secrets: []string{"C"}}, {ID: "x/y", Secrets: []string{"D"}}, {ID: "z/y", Secrets: []string{"D"}},
	}
	return map[string]func(*api.Keyring){
		"connectors": func(k *api.Keyring) { k.Needs = needs },
		"the seal key": func(k *api.Keyring) {
			k.SealKey, k.Needs = api.SealKey{In: approvals.KeyInKeyring, Waiting: true}, needs
		},
		"nothing": func(*api.Keyring) {},
	}
}

func keyringScreen(t *testing.T, k api.Keyring, alone bool) string {
	t.Helper()
	findings := []finding{keyringFinding(k)}
	if alone {
		findings = aboutKeyring(findings)
	} else { // what doctor usually finds besides
		ok := finding{What: "something", OK: true, Says: "is as it should be"}
		findings = append(slices.Repeat([]finding{ok}, 9), findings...)
	}
	var out bytes.Buffer
	if err := printFindings(&out, findings); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestAMissingKeyringIsExplainedInOneScreen compares every state on every system with
// testdata/keyring.golden, and fits it into a terminal of 24 lines and 80 columns
// together with the rest of what doctor says.
func TestAMissingKeyringIsExplainedInOneScreen(t *testing.T) {
	golden := ""
	for _, fault := range secrets.Faults() {
		var order []string
		systems := map[string][]string{}
		for _, on := range keyringSystems() {
			store := secrets.Open(secrets.Config{System: &on.System})
			help := store.Help(fault.Code)
			if help.What == "" || len(help.Steps) == 0 {
				t.Errorf("%s, %s: no help", on.name, fault.Code)
			}
			for _, what := range []string{"connectors", "the seal key", "nothing"} {
				need := keyringNeeds()[what]
				k := api.KeyringOf(secrets.State{Status: strings.TrimPrefix(fault.Code, "keyring-"), Code: fault.Code, Sentence: fault.Sentence}, help)
				need(&k)
				fitsTerminal(t, fmt.Sprintf("%s, %s, %s wait", on.name, fault.Code, what), keyringScreen(t, k, false))
				screen := keyringScreen(t, k, true)
				fitsTerminal(t, fmt.Sprintf("%s, %s, %s wait, alone", on.name, fault.Code, what), screen)
				if what == "nothing" {
					continue
				}
				if systems[screen] == nil {
					order = append(order, screen)
				}
				systems[screen] = append(systems[screen], on.name)
			}
		}
		for _, screen := range order {
			golden += "== " + fault.Code + ": " + strings.Join(systems[screen], "; ") + "\n" + screen + "\n"
		}
	}
	path := filepath.Join("testdata", "keyring.golden")
	if *update {
		if err := os.WriteFile(path, []byte(golden), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if golden != string(want) {
		t.Errorf("%s is not current (go test ./cli -run Keyring -update); now it reads\n%s", path, golden)
	}
}

func fitsTerminal(t *testing.T, what, screen string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(screen, "\n"), "\n")
	if len(lines) > 23 { // and the prompt
		t.Errorf("%s: %d lines\n%s", what, len(lines), screen)
	}
	for _, line := range lines {
		if utf8.RuneCountInString(line) > keyringWidth {
			t.Errorf("%s: %d columns: %s", what, utf8.RuneCountInString(line), line)
		}
	}
}

func TestAKeyringThatNothingNeedsIsNoFault(t *testing.T) {
	k := api.KeyringOf(secrets.State{Status: "no-bus", Code: "keyring-no-bus", Sentence: "there is no session bus"}, secrets.Help{What: "x"})
	if f := keyringFinding(k); !f.OK || !strings.Contains(f.Next, "--keyring") {
		t.Errorf("%+v", f)
	}
	k.SealKey.Waiting = true
	if f := keyringFinding(k); f.OK {
		t.Errorf("approvals wait for it: %+v", f)
	}
	k = api.KeyringOf(secrets.State{Status: secrets.OK, Backend: "the keyring"}, secrets.Help{})
	if f := keyringFinding(k); !f.OK || f.Says != "the keyring" || f.Next != "" {
		t.Errorf("%+v", f)
	}
}
