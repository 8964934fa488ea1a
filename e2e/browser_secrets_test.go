//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/keyringtest"
	"sallyport/runtime/approvals"
)

// TestSecretsAndSettingsInABrowser: a value is typed unseen, reaches the server that
// asks for it and stands in no page; it is replaced and deleted, after a word that
// Enter does not give; a locked keyring is explained. A folder and a rule are removed and
// put back, less of the audit is kept after a question, the diagnostics are saved, the
// seal key moves, and the browser signs out.
func TestSecretsAndSettingsInABrowser(t *testing.T) {
	t.Parallel()
	f := fortOf(newHome(t))
	session := keyringtest.Unlocked(t)
	f.in(session)
	newVault(f, "polite")
	s := f.serve()
	f.mustKeep("NOTES", "before")
	f.approve("fake")
	f.ok("secrets", "delete", "NOTES")
	f.addClient("claude")
	f.ok("policy", "set", "--tool", "fake/main:echo", "deny")
	f.ok("policy", "set", "--class", "write", "--client", "claude", "ask")
	// Not kept: another test looks for that everywhere on the machine.
	first, second := "Tr1al-5c2d!/+\"\\&<ü>%", strings.TrimSpace(usual)
	if err := os.Mkdir(filepath.Join(f.dir, "more"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := f.sitDown(t, "secrets-settings.mjs", "FIRST="+first, "SECOND="+second)

	p.says("set")
	f.wantToken(first)
	p.goOn()
	p.says("replaced")
	f.wantToken(second)
	p.goOn()
	p.says("deleted")
	f.refused("secret-unknown", "call", "fake", "env")
	session.Lock()
	p.goOn()
	p.says("locked")
	session.Unlock()
	p.goOn()

	p.says("removed")
	if rules := f.rules(); len(rules) != 1 || rules[0].Class != "write" {
		t.Errorf("after the rule was removed: %+v", rules)
	}
	p.goOn()
	p.says("put back")
	if rules := f.rules(); len(rules) != 2 || rules[1].Tool != "fake/main:echo" || rules[1].Verdict != approvals.NotAtAll || rules[1].By.Via != approvals.ViaBrowser {
		t.Errorf("after it was put back: %+v", rules)
	}
	f.ok("policy", "remove", "--tool", "fake/main:echo")
	p.goOn()
	p.says("done")
	waitFor(t, "the seal key is in the file", 5*time.Second, func() bool { return strings.Contains(f.keyFiles(), "seal.key") })
	s.stop()
}

func (f *fort) rules() []approvals.Rule {
	f.t.Helper()
	var policy approvals.Policy
	f.read(&policy, "policy", "list")
	return policy.Rules
}
