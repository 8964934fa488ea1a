//go:build linux

package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/keyringtest"
)

func (f *fort) keyFiles() string {
	f.t.Helper()
	entries, err := os.ReadDir(f.state("keys"))
	if err != nil {
		f.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func (f *fort) wantKeyIn(place string) {
	f.t.Helper()
	var key struct{ In string }
	f.read(&key, "decisions", "seal-key")
	if key.In != place {
		f.t.Errorf("the seal key is in %q, want %q (%s)", key.In, place, f.keyFiles())
	}
}

// problems are the codes that health tells.
func (f *fort) problems() string {
	f.t.Helper()
	var status struct{ Problems []struct{ Code string } }
	f.read(&status, "status")
	var codes []string
	for _, p := range status.Problems {
		codes = append(codes, p.Code)
	}
	return strings.Join(codes, " ")
}

// The key is where the person's other passwords are, and nowhere on disk; everything
// else goes as ever, with a sidecar and without.
func TestTheSealKeyIsInTheKeyring(t *testing.T) {
	t.Parallel()
	f := fortOf(newHome(t))
	l := keyringtest.Unlocked(t)
	f.in(l)
	f.addServer("fake", "polite")
	f.approve("fake") // without a sidecar
	f.wantKeyIn("keyring")
	if got := f.keyFiles(); got != "head.json seal.json" {
		t.Errorf("the folder of keys has %s", got)
	}
	s := f.serve()
	f.ok("call", "fake", "pid")
	if got := f.problems(); strings.Contains(got, "seal-key") {
		t.Errorf("problems: %s", got)
	}
	if n := l.Entries(); n != 1 {
		t.Errorf("the keyring has %d entries", n)
	}
	f.ok("audit", "verify")
	s.stop()
	f.ok("audit", "verify")
	f.ok("call", "fake", "pid")
	if list := f.ok("secrets", "list"); strings.Contains(list, "seal") {
		t.Errorf("it is listed as a secret:\n%s", list)
	}
}

// Where there is none, the key is a file from the first moment on, at no cost.
func TestWithoutABusTheSealKeyIsAFileAtOnce(t *testing.T) {
	t.Parallel()
	f := fortOf(newHome(t))
	f.ok("version")
	begun := time.Now()
	f.ok("plugins", "list")
	t.Logf("the first command took %s", time.Since(begun))
	f.wantKeyIn("file")
	f.serve()
	if got := f.problems(); !strings.Contains(got, "seal-key-file") {
		t.Errorf("no visible warning: %s", got)
	}
	// A keyring that is there later changes nothing by itself.
	f.in(keyringtest.Unlocked(t))
	f.wantKeyIn("file")
}

func TestALockedKeyringHoldsApprovalsBackAndNothingElse(t *testing.T) {
	t.Parallel()
	f := fortOf(newHome(t))
	l := keyringtest.Unlocked(t)
	f.in(l)
	f.addServer("fake", "polite")
	f.approve("fake")
	token := f.addClient("agent")
	l.Lock()
	begun := time.Now()
	s := f.serve()
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("the start took %s", took)
	}
	for _, path := range []string{"/api/desktop-health", "/v1/status", "/v1/plugins", "/v1/secrets", "/v1/seal-key", "/v1/clients", "/v1/settings", "/v1/autostart", "/v1/updates", "/v1/diagnostics"} {
		begun := time.Now()
		if status, body := s.ask("GET", path); status != 200 || time.Since(begun) > time.Second {
			t.Errorf("%s answers with %d after %s: %s", path, status, time.Since(begun), body)
		}
	}
	if got := f.run("health"); got.code != 0 {
		t.Errorf("it is not healthy: %+v", got)
	}
	f.wantStanding("fake/main", "blocked", "seal-key-unavailable")
	f.refused("seal-key-unavailable", "call", "fake", "pid")
	f.refused("seal-key-unavailable", "approve", "fake", "--yes", "--all-tools")
	f.refused("seal-key-unavailable", "decisions", "accept-store", "--yes")
	f.refused("seal-key-unavailable", "decisions", "seal-key", "file")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("an agent that comes too early is told %d, which is not \"try again\"", answer.StatusCode)
	}
	waitFor(t, "health says what is waited for", 10*time.Second, func() bool { return strings.Contains(f.problems(), "seal-key-unavailable") })
	agent := f.command("mcp", "--client", "agent") // that starts with the session, before anybody could unlock it
	agent.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}` + "\n")
	answered := make(chan outcome, 1)
	go func() { answered <- f.finish(agent, commandLimit) }()
	if n, files := l.Entries(), f.keyFiles(); n != 1 || files != "head.json seal.json" {
		t.Errorf("%d entries, files %s: a second key was made", n, files)
	}

	l.Unlock()
	waitFor(t, "the approvals count once it is unlocked", 10*time.Second, func() bool {
		status, _ := s.call("fake/main", "pid")
		return status == http.StatusOK
	})
	if got := f.problems(); strings.Contains(got, "seal-key") {
		t.Errorf("problems: %s", got)
	}
	if got := <-answered; got.code != 0 || !strings.Contains(got.stdout, `"serverInfo"`) {
		t.Errorf("an agent that only starts commands, and came too early: %+v", got)
	}
}

// Whatever became of the keyring, no other key takes the place of the one in it.
func TestAKeyringThatIsGoneMakesNoSecondKey(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		login func(t testing.TB) *keyringtest.Session
		code  string
	}{
		{"no bus", keyringtest.NoBus, "seal-key-unavailable"},
		{"a bus without a provider", keyringtest.NoProvider, "seal-key-unavailable"},
		{"a bus that never answers", keyringtest.Silent, "seal-key-unavailable"},
		{"another keyring", keyringtest.Unlocked, "seal-key-missing"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			f := fortOf(newHome(t))
			own := f.env
			good := keyringtest.Unlocked(t)
			f.in(good)
			f.addServer("fake", "polite")
			f.approve("fake")
			f.env = own
			f.in(row.login(t))

			f.refused(row.code, "call", "fake", "pid") // without a sidecar
			s := f.serve()
			if status, body := s.ask("GET", "/v1/plugins"); status != 200 {
				t.Errorf("the list: %d %s", status, body)
			}
			f.refused(row.code, "call", "fake", "pid")
			s.stop()
			if files := f.keyFiles(); files != "head.json seal.json" {
				t.Errorf("files %s", files)
			}
			f.env = own
			f.in(good)
			f.ok("call", "fake", "pid")
			if n := good.Entries(); n != 1 {
				t.Errorf("%d entries", n)
			}

			// Giving it up is an explicit word.
			f.env = own
			f.in(row.login(t))
			f.ok("decisions", "accept-store", "--key-lost", "--yes")
			f.wantKeyIn("file")
			f.refused("never-approved", "call", "fake", "pid")
			f.approve("fake")
			f.ok("call", "fake", "pid")
		})
	}
}

// The first start where a keyring hangs ends with a file, and is no longer than one call.
func TestAFirstStartBesideAKeyringThatHangs(t *testing.T) {
	t.Parallel()
	f := fortOf(newHome(t))
	f.in(keyringtest.Silent(t))
	begun := time.Now()
	s := f.serve()
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("the start took %s", took)
	}
	if status, _ := s.ask("GET", "/api/desktop-health"); status != 200 {
		t.Errorf("it is not healthy: %d", status)
	}
	waitFor(t, "the key is a file", 15*time.Second, func() bool { return strings.Contains(f.keyFiles(), "seal.key") })
	f.wantKeyIn("file")
}

func TestTheSealKeyMovesAndComesBack(t *testing.T) {
	t.Parallel()
	f := fortOf(newHome(t))
	f.addServer("fake", "polite")
	f.approve("fake")
	raw, err := os.ReadFile(filepath.Join(f.state("keys"), "seal.key"))
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.Fields(string(raw))[2]
	l := keyringtest.Unlocked(t)
	f.in(l)
	s := f.serve()
	f.ok("call", "fake", "pid")
	f.ok("decisions", "seal-key", "keyring")
	f.ok("call", "fake", "pid")
	if n := l.Entries(); n != 1 || f.keyFiles() != "head.json seal.json" {
		t.Errorf("%d entries, files %s", n, f.keyFiles())
	}
	s.stop()
	f.ok("call", "fake", "pid")
	if text := f.ok("audit", "export"); strings.Contains(text, secret) || !strings.Contains(text, "seal-key-keyring") {
		t.Errorf("the audit:\n%s", text)
	}
	f.ok("decisions", "seal-key", "file")
	f.wantKeyIn("file")
	if n := l.Entries(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
	f.ok("call", "fake", "pid")
}
