//go:build linux

package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sallyport/api"
	"sallyport/internal/keyringtest"
)

// kept is a secret that every encoding changes. usual is one for tests that look at
// their own home only: they run while another looks at the whole machine for kept.
const kept, usual = "S3nt1nel-9b4e!/+\"\\&<ü>%=~(ß)", "it's \"usual\" & <fine>\n"

// vault is a fort with the server fake/main, which gets the secret NOTES as TOKEN,
// and plain/main, which gets none.
func newVault(f *fort, behaviour string) *fort {
	f.t.Helper()
	f.addServer("fake", behaviour)
	f.addServer("plain", "polite")
	f.overlay("fake/main", object{"env": object{"TOKEN": "secret:NOTES"}})
	return f
}

// keep stores a secret, from stdin.
func (f *fort) keep(name, value string, flags ...string) outcome {
	f.t.Helper()
	cmd := f.command(append([]string{"secrets", "set", name}, flags...)...)
	cmd.Stdin = strings.NewReader(value)
	return f.finish(cmd, commandLimit)
}

func (f *fort) mustKeep(name, value string) {
	f.t.Helper()
	if got := f.keep(name, value); got.code != 0 {
		f.t.Fatalf("secrets set: %+v", got)
	}
}

func (f *fort) wantToken(value string) {
	f.t.Helper()
	var result struct {
		StructuredContent struct{ Env []string }
	}
	f.read(&result, "call", "fake", "env")
	for _, pair := range result.StructuredContent.Env {
		if got, ok := strings.CutPrefix(pair, "TOKEN="); ok && got == value {
			return
		}
	}
	f.t.Fatalf("the server was not given %q: %q", value, result.StructuredContent.Env)
}

// uses counts the records of a secret's use, which must name it and the server.
func (f *fort) uses(result string) (n int) {
	f.t.Helper()
	for _, r := range f.audit() {
		if r.Action == "secret.use" && r.Result == result && r.Target == "NOTES" && r.Plugin == "fake" && r.Binding == "main" {
			n++
		}
	}
	return n
}

func TestASecretFromStdinToTheChild(t *testing.T) {
	t.Parallel()
	f := fortOf(newHome(t))
	f.in(keyringtest.Unlocked(t))
	newVault(f, "polite")
	f.serve()
	f.mustKeep("NOTES", usual)
	f.approve("fake")
	f.approve("plain")
	f.wantToken(usual)

	for _, args := range [][]string{{"secrets", "list"}, {"secrets", "list", "--json"}} {
		if got := f.ok(args...); !strings.Contains(got, "NOTES") || !strings.Contains(got, "fake/main") || strings.Contains(got, "usual") {
			t.Errorf("%v:\n%s", args, got)
		}
	}
	if used, starts := f.uses("ok"), f.starts("fake"); used != starts || starts == 0 {
		t.Errorf("%d uses are on record of %d starts", used, starts)
	}

	f.ok("secrets", "delete", "NOTES")
	got := f.run("call", "fake", "env")
	if got.code != 1 || !strings.Contains(got.stderr, "secret-unknown:") || !strings.Contains(got.stderr, "sallyport secrets set NOTES") {
		t.Errorf("a secret that was deleted: %+v", got)
	}
	f.wantStanding("fake/main", "blocked", "secret-unknown")
	f.ok("call", "plain", "env")
	waitFor(t, "no server has the deleted value", 10*time.Second, func() bool { return len(f.childrenOf("fake")) == 0 })

	// Kept again, it works at once.
	f.mustKeep("NOTES", "another")
	f.wantToken("another")
}

// What is imported is kept as a whole, or nothing is.
func TestSecretsOfAFile(t *testing.T) {
	t.Parallel()
	f := fortOf(newHome(t))
	f.in(keyringtest.Unlocked(t))
	newVault(f, "polite")
	load := func(text string) outcome {
		cmd := f.command("secrets", "import")
		cmd.Stdin = strings.NewReader(text)
		return f.finish(cmd, commandLimit)
	}
	if got := load("NOTES=usual\nthe usual line\n"); got.code != 2 || !strings.Contains(got.stderr, "line 2") || strings.Contains(got.stderr, "usual") {
		t.Errorf("a wrong line: %+v", got)
	}
	if list := f.ok("secrets", "list"); strings.Contains(list, "since") {
		t.Errorf("something was kept:\n%s", list)
	}
	if got := load("# a comment\n\nNOTES= \"usual=usual\" \r\nOTHER=x\n"); got.code != 0 || !strings.Contains(got.stdout, "NOTES, OTHER") {
		t.Fatalf("secrets import: %+v", got)
	}
	f.approve("fake")
	f.wantToken(` "usual=usual" `)
}

func TestARotatedSecretReachesTheNextCall(t *testing.T) {
	t.Parallel()
	f := fortOf(newHome(t))
	f.in(keyringtest.Unlocked(t))
	newVault(f, "polite")
	f.serve()
	f.mustKeep("NOTES", "the first value")
	f.approve("fake")
	f.approve("plain")
	f.wantToken("the first value")
	f.ok("call", "plain", "pid")
	before, beside := f.pid("fake"), f.pid("plain")
	f.mustKeep("NOTES", "the second value")
	f.wantToken("the second value")
	if now := f.pid("fake"); now == before || alive(before) {
		t.Errorf("the server %d with the old value: now %d, alive %v", before, now, alive(before))
	}
	if now := f.pid("plain"); now != beside {
		t.Errorf("a server without secrets was restarted: %d, now %d", beside, now)
	}
	sets := 0
	for _, r := range f.audit() {
		if r.Action == "secret.set" && r.Target == "NOTES" && r.Result == "ok" {
			sets++
		}
	}
	if used, starts := f.uses("ok"), f.starts("fake"); sets != 2 || used != starts {
		t.Errorf("on record: %d of 2 sets, %d uses of %d starts", sets, used, starts)
	}
}

// dresses are the ways in which a value may be written.
func dresses(value string) map[string]string {
	escaped, _ := json.Marshal(value)
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	encoder.Encode(value)
	forms := map[string]string{
		"raw": value, "JSON": strings.Trim(string(escaped), `"`), "plain JSON": strings.Trim(plain.String(), "\"\n"),
		"query": url.QueryEscape(value), "path": url.PathEscape(value), "hex": hex.EncodeToString([]byte(value)),
		"a part of it": "S3nt1nel-9b4e", "the last part": "(ß)", "the last part in base64": base64.StdEncoding.EncodeToString([]byte("~(ß)")),
	}
	for offset := range 3 {
		whole := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", offset) + value))
		forms[fmt.Sprint("base64 at ", offset)] = whole[4 : len(whole)-4]
	}
	return forms
}

// wantNone fails for each dress of the secret in text.
func wantNone(t testing.TB, where string, text []byte) {
	t.Helper()
	for dress, form := range dresses(kept) {
		if bytes.Contains(text, []byte(form)) {
			t.Errorf("%s holds the secret (%s)", where, dress)
		}
	}
}

// C58: a server that cannot keep it to itself.
func TestASecretShowsUpNowhereElse(t *testing.T) {
	t.Parallel()
	f := fortOf(newHome(t))
	f.in(keyringtest.Unlocked(t))
	newVault(f, "spills+exit-mid-call")
	f.addServer("failing", "spills+fails")
	f.addServer("telling", "spills+tells")
	token := object{"env": object{"TOKEN": "secret:NOTES"}}
	f.configure(object{"connectors": object{"fake/main": token, "failing/main": token, "telling/main": token}})
	s := f.serve("--verbose")
	f.mustKeep("NOTES", kept)
	f.approve("fake")

	// The answer of a tool is the plugin's own, and is passed on to who called.
	f.wantToken(kept)
	agent := s.overStdio("claude")
	if said := agent.wantOK("fake__main__env"); !strings.Contains(said, kept) {
		t.Errorf("the tool's answer was changed: %q", said)
	}
	pid := f.pid("fake")
	if limits := procFile(pid, "limits"); !coreIsOff(limits) {
		t.Errorf("core dumps are on:\n%s", limits)
	}
	holders := f.holders()
	if len(holders) != 1 || holders[0] != pid {
		t.Errorf("these processes have it in their environment: %v; its own is %d", holders, pid)
	}

	var said bytes.Buffer
	note := func(got outcome) { said.WriteString(got.stdout + got.stderr) }
	shown := f.run("plugins", "show", "fake", "--json")
	if !strings.Contains(shown.stdout, "[secret]") {
		t.Errorf("the end of stderr is not shown, or not masked:\n%s", shown.stdout)
	}
	note(shown)
	note(f.run("approve", "failing", "--yes", "--all-tools"))
	note(f.run("approve", "telling", "--yes", "--all-tools"))
	note(f.run("call", "fake", "go"))
	if _, err := agent.call("fake__main__go", nil); err == nil {
		t.Error("a call that ended its server has an answer")
	} else {
		said.WriteString(err.Error())
	}
	f.ok("call", "fake", "pid")
	for _, args := range [][]string{
		{"doctor"}, {"env", "fake"}, {"audit", "export"}, {"secrets", "list"}, {"plugins", "show", "fake"},
		{"plugins", "show", "failing", "--json"}, {"plugins", "show", "telling", "--json"}, {"diff", "fake"},
	} {
		note(f.run(args...))
	}
	wantNone(t, "what commands say", said.Bytes())
	f.askEverything(s)
	f.noCommandLine()
	s.stop()
	wantNone(t, "the log", []byte(s.stderr.String()+s.log()))
	f.noFile()
}

func coreIsOff(limits string) bool {
	for line := range strings.Lines(limits) {
		if rest, ok := strings.CutPrefix(line, "Max core file size"); ok {
			// 1 is off for pipes too (core(5)), where 0 is not.
			words := strings.Fields(rest)
			return len(words) > 1 && words[0] == "1" && words[1] == "1"
		}
	}
	return false
}

// holders are the processes of this machine that have the secret in their environment.
func (f *fort) holders() (pids []int) {
	found, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range found {
		environ, err := os.ReadFile(dir + "/environ")
		if err == nil && bytes.Contains(environ, []byte(kept)) {
			pids = append(pids, number(f.t, filepath.Base(dir)))
		}
	}
	return pids
}

func (f *fort) noCommandLine() {
	f.t.Helper()
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range found {
		line, _ := os.ReadFile(path)
		wantNone(f.t, path, line)
	}
}

func (f *fort) noFile() {
	f.t.Helper()
	files := 0
	err := filepath.WalkDir(f.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || strings.HasSuffix(path, "/fakeserver") {
			return err
		}
		files++
		raw, err := os.ReadFile(path)
		wantNone(f.t, strings.TrimPrefix(path, f.dir), raw)
		return err
	})
	if err != nil || files < 10 {
		f.t.Errorf("%d files were read: %v", files, err)
	}
}

// askEverything asks each route that only reads, with what is there to ask for.
func (f *fort) askEverything(s *sidecar) {
	f.t.Helper()
	var decisions []struct{ ID string }
	f.read(&decisions, "decisions", "list")
	asked := 0
	for _, route := range api.Routes() {
		if route.Method != http.MethodGet || strings.HasPrefix(route.Path, "/mcp") || route.Path == "/v1/events" {
			continue
		}
		path := strings.NewReplacer("{plugin}", "fake", "{server}", "main", "{name}", "NOTES").Replace(route.Path)
		if strings.Contains(path, "{id}") && len(decisions) > 0 {
			path = strings.ReplaceAll(path, "{id}", decisions[0].ID)
		}
		status, body := s.ask(http.MethodGet, path)
		if status == http.StatusOK {
			asked++
		}
		wantNone(f.t, "GET "+path+" ("+strconv.Itoa(status)+")", body)
	}
	if asked < 10 {
		f.t.Errorf("only %d routes answered", asked)
	}
}

// C57, C59: each way in which there is no keyring blocks who needs one, and nobody
// else.
func TestWithoutAKeyringOnlyWhoNeedsOneIsBlocked(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		login func(t testing.TB) *keyringtest.Session
		code  string
	}{
		{"no bus", keyringtest.NoBus, "keyring-no-bus"},
		{"a bus without a provider", keyringtest.NoProvider, "keyring-no-provider"},
		{"a bus that never answers", keyringtest.Silent, "keyring-not-answering"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			f := fortOf(newHome(t))
			f.sealsByFile()
			own := f.env
			good := keyringtest.Unlocked(t)
			f.in(good)
			newVault(f, "polite")
			f.mustKeep("NOTES", usual)
			f.approve("fake")
			f.approve("plain")
			f.env = own
			f.in(row.login(t))
			f.lacksKeyring(f.serve(), row.code)
		})
	}
}

// lacksKeyring calls the server that needs a secret and sees that nothing else waits
// for the keyring.
func (f *fort) lacksKeyring(s *sidecar, code string) {
	f.t.Helper()
	blocked := make(chan []byte, 1)
	go func() {
		_, body := s.call("fake/main", "pid")
		blocked <- body
	}()
	for _, path := range []string{"/api/desktop-health", "/v1/status", "/v1/plugins", "/v1/secrets", "/v1/tools"} {
		begun := time.Now()
		if status, body := s.ask("GET", path); status != 200 || time.Since(begun) > time.Second {
			f.t.Errorf("%s answers with %d after %s: %s", path, status, time.Since(begun), body)
		}
	}
	if status, body := s.call("plain/main", "pid"); status != 200 {
		f.t.Errorf("a server that needs no secret: %d %s", status, body)
	}
	if body := <-blocked; !bytes.Contains(body, []byte(code)) {
		f.t.Errorf("want %s, got %s", code, body)
	}
	got := f.run("call", "fake", "pid")
	if got.code != 1 || !strings.Contains(got.stderr, code+":") || !strings.Contains(got.stderr, "next: ") {
		f.t.Errorf("want %s and advice: %+v", code, got)
	}
	f.wantStanding("fake/main", "blocked", code)
	if n := len(f.childrenOf("fake")); n != 0 {
		f.t.Errorf("%d servers run without their secret", n)
	}
	list := f.ok("secrets", "list")
	if !strings.Contains(list, "next: ") {
		f.t.Errorf("the list does not say what to do:\n%s", list)
	}
}

func TestAKeyringThatIsUnlockedLater(t *testing.T) {
	t.Parallel()
	f := fortOf(newHome(t))
	f.sealsByFile()
	l := keyringtest.Unlocked(t)
	f.in(l)
	newVault(f, "polite")
	f.mustKeep("NOTES", usual)
	f.approve("fake")
	f.approve("plain")
	l.Lock()
	s := f.serve()
	f.lacksKeyring(s, "keyring-locked")
	l.Unlock()
	f.ok("enable", "fake")
	f.wantToken(usual)
	if got := f.connector("fake/main"); got.State == "blocked" {
		t.Errorf("it works, and is %+v", got)
	}
	s.stop()

	// Without a word to Sallyport it takes half a minute.
	l.Lock()
	s = f.serve()
	if _, body := s.call("fake/main", "pid"); !bytes.Contains(body, []byte("keyring-locked")) {
		t.Errorf("it is locked again: %s", body)
	}
	l.Unlock()
	waitFor(t, "the connector is tried again", 50*time.Second, func() bool {
		status, _ := s.call("fake/main", "pid")
		return status == http.StatusOK
	})
}

func TestAReferenceThatNobodyApproved(t *testing.T) {
	t.Parallel()
	f := fortOf(newHome(t))
	f.in(keyringtest.Unlocked(t))
	f.addServer("fake", "polite", func(server object) { server["env"] = object{"PLAIN": "secret:NOTES", "OTHER": "${secret:NOTES}"} })
	f.mustKeep("NOTES", usual)
	f.serve()
	f.approve("fake")
	if said := f.ok("call", "fake", "env"); strings.Contains(said, "usual") || !strings.Contains(said, "PLAIN=secret:NOTES") {
		t.Errorf("a package's own text is not what the server was given:\n%s", said)
	}
	starts := f.starts("fake")
	f.overlay("fake/main", object{"env": object{"TOKEN": "secret:NOTES"}})
	waitFor(t, "it no longer runs", 10*time.Second, func() bool { return len(f.childrenOf("fake")) == 0 })
	f.refused("env-changed", "call", "fake", "env")
	if now := f.starts("fake"); now != starts || f.uses("ok") != 0 {
		t.Errorf("it was started %d times more, the secret was used %d times", now-starts, f.uses("ok"))
	}
	f.approve("fake")
	f.wantToken(usual)
}

func TestASecretHasNoPlaceOnACommandLineOrInAManifest(t *testing.T) {
	t.Parallel()
	f := fortOf(newHome(t))
	f.addServer("args", "polite", func(server object) { server["args"] = []string{"polite", "secret:NOTES"} })
	f.addServer("named", "polite", func(server object) { server["env"] = object{"API_TOKEN": "correct-horse-battery"} })
	f.addServer("shaped", "polite", func(server object) { server["env"] = object{"HARMLESS": "ghp_0123456789abcdefghijABCDEFGHIJ012345"} })
	for id, code := range map[string]string{"args": "secret-in-args", "named": "literal-secret", "shaped": "literal-secret"} {
		f.refused(code, "approve", id, "--yes", "--all-tools")
		if n := f.starts(id); n != 0 {
			t.Errorf("%s was started %d times", id, n)
		}
	}
}

// passphrased is a command that reads a passphrase from descriptor 3.
func (f *fort) passphrased(passphrase, input string, args ...string) *exec.Cmd {
	f.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { r.Close() })
	if _, err := w.WriteString(passphrase); err != nil {
		f.t.Fatal(err)
	}
	w.Close()
	cmd := f.command(append(args, "--secrets-passphrase-fd", "3")...)
	cmd.Stdin, cmd.ExtraFiles = strings.NewReader(input), []*os.File{r}
	return cmd
}

// The way out without a keyring is asked for, for the sidecar and for commands. It
// runs the program as it is shipped: making the key takes long on purpose.
func TestAnEncryptedFileInPlaceOfAKeyring(t *testing.T) {
	t.Parallel()
	f := newVault(newPlainFort(t), "polite")
	const right, wrong = "correct horse battery staple\n", "another horse"
	if got := f.keep("NOTES", usual); got.code != 1 || !strings.Contains(got.stderr, "keyring-no-bus:") || !strings.Contains(got.stderr, "--secrets-passphrase-fd") {
		t.Errorf("without a keyring and without asking for a file: %+v", got)
	}
	if got := f.finish(f.passphrased(right, usual, "secrets", "set", "NOTES"), commandLimit); got.code != 0 {
		t.Fatalf("secrets set: %+v", got)
	}
	file := f.secretsFile()
	before, err := os.ReadFile(file)
	if err != nil || bytes.Contains(before, []byte("usual")) {
		t.Fatalf("%v; in clear: %v", err, bytes.Contains(before, []byte("usual")))
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v: %v", info, err)
	}

	for _, args := range [][]string{{"secrets", "set", "NOTES"}, {"secrets", "delete", "NOTES"}, {"approve", "fake", "--yes", "--all-tools"}} {
		got := f.finish(f.passphrased(wrong, "replaced", args...), commandLimit)
		if got.code != 1 || !strings.Contains(got.stderr, "secrets-file-passphrase:") {
			t.Errorf("%v with the wrong passphrase: %+v", args, got)
		}
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, before) {
		t.Errorf("a wrong passphrase changed the file: %v", err)
	}

	s, err := f.startServe(f.passphrased(right, "", "serve", "--json"))
	if err != nil {
		t.Fatalf("%v\n%s", err, s.stderr)
	}
	t.Cleanup(s.stop)
	f.approve("fake")
	f.wantToken(usual)
	for _, pid := range append(f.childrenOf("fake"), s.PID) {
		open, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, fd := range open {
			if to, _ := os.Readlink(fd); pid != s.PID && number(t, filepath.Base(fd)) > 2 && strings.HasPrefix(to, "pipe:") {
				t.Errorf("process %d has a pipe of Sallyport's: %s", pid, fd)
			}
		}
		if line := procFile(pid, "environ") + procFile(pid, "cmdline"); strings.Contains(line, "horse") {
			t.Errorf("process %d shows the passphrase", pid)
		}
	}
	f.mustKeep("NOTES", "rotated")
	f.wantToken("rotated")
	s.stop()

	s, err = f.startServe(f.passphrased(wrong, "", "serve", "--json"))
	if err != nil {
		t.Fatalf("%v\n%s", err, s.stderr)
	}
	t.Cleanup(s.stop)
	f.refused("secrets-file-passphrase", "call", "fake", "env")
	f.wantStanding("fake/main", "blocked", "secrets-file-passphrase")
	f.approve("plain")
	f.ok("call", "plain", "pid")
}

// secretsFile is the one file of that kind.
func (f *fort) secretsFile() string {
	f.t.Helper()
	var found []string
	err := filepath.WalkDir(f.dir, func(path string, entry fs.DirEntry, err error) error {
		if raw, readErr := os.ReadFile(path); err == nil && readErr == nil && bytes.Contains(raw, []byte("BEGIN AGE ENCRYPTED FILE")) && !strings.HasSuffix(path, "/fakeserver") {
			found = append(found, path)
		}
		return err
	})
	if err != nil || len(found) != 1 {
		f.t.Fatalf("encrypted files: %v, %v", found, err)
	}
	return found[0]
}
