//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sentinel stands for every secret of the person who starts Sallyport.
const sentinel = "s3ntinel-5f1c0e7a"

// secretive is what people have in their environment when they start programs.
func secretive() []string {
	var pairs []string
	for _, name := range []string{
		"SENTINEL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "GITHUB_TOKEN", "GH_TOKEN",
		"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "NPM_TOKEN", "NODE_AUTH_TOKEN", "npm_config__authToken", "GOOGLE_APPLICATION_CREDENTIALS",
		"AZURE_CLIENT_SECRET", "SSH_AUTH_SOCK", "DATABASE_URL", "KUBECONFIG", "NODE_OPTIONS", "LD_PRELOAD_SENTINEL", "PYTHONPATH",
		"DBUS_SESSION_BUS_ADDRESS", "XDG_SESSION_ID", "EDITOR", "lower_case_secret", "LCX_SECRET",
	} {
		pairs = append(pairs, name+"="+sentinel)
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		pairs = append(pairs, name+"=http://user:"+sentinel+"@127.0.0.1:9")
	}
	return pairs
}

func TestNoSecretOfTheParentLeaks(t *testing.T) {
	f := newFort(t)
	f.with(secretive()...)
	f.addServer("fake", "polite")
	s := f.serve("--verbose")
	f.approve("fake")
	agent := s.overStdio("claude")
	if said := agent.wantOK("fake__main__env"); strings.Contains(said, sentinel) || !strings.Contains(said, "PLUGIN_DATA=") {
		t.Errorf("the server was given:\n%s", said)
	}
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", f.pid("fake/main")))
	if err != nil || bytes.Contains(environ, []byte(sentinel)) || !bytes.Contains(environ, []byte("PLUGIN_DATA=")) {
		t.Errorf("the system knows of it: %v\n%s", err, bytes.ReplaceAll(environ, []byte{0}, []byte{'\n'}))
	}
	want := map[string]bool{"PATH": true, "HOME": true, "TMPDIR": true, "LANG": true, "PLUGIN_ROOT": true, "PLUGIN_DATA": true,
		"PYTHONDONTWRITEBYTECODE": true, "PYTHONUNBUFFERED": true}
	for pair := range strings.SplitSeq(strings.TrimRight(string(environ), "\x00"), "\x00") {
		if name, _, _ := strings.Cut(pair, "="); !want[name] {
			t.Errorf("spec/child-environment.md 1 and 2 do not list %s", name)
		}
	}
	f.notTold(s)
	s.stop()
	if strings.Contains(s.stderr.String(), sentinel) {
		t.Error("the log on stderr holds the secret")
	}
	f.notKept()
}

// notTold asks everything that can be asked.
func (f *fort) notTold(s *sidecar) {
	f.t.Helper()
	for _, path := range []string{
		"/api/desktop-health", "/v1/status", "/v1/plugins", "/v1/plugins/fake/main", "/v1/plugins/fake/main/env", "/v1/plugins/fake/main/diff",
		"/v1/plugins/fake/main/review", "/v1/plugins/audit?limit=500", "/v1/audit/export", "/v1/decisions", "/v1/clients", "/v1/tools", "/v1/secrets",
	} {
		status, body := s.ask("GET", path)
		if status != 200 || bytes.Contains(body, []byte(sentinel)) {
			f.t.Errorf("%s answers with %d and holds the secret: %v", path, status, bytes.Contains(body, []byte(sentinel)))
		}
	}
	for _, args := range [][]string{{"env", "fake", "--json"}, {"doctor", "--json"}, {"status", "--json"}, {"audit", "export"}, {"plugins", "show", "fake"}} {
		if got := f.run(args...); strings.Contains(got.stdout+got.stderr, sentinel) {
			f.t.Errorf("sallyport %v prints the secret", args)
		}
	}
}

// notKept reads every file below the home.
func (f *fort) notKept() {
	f.t.Helper()
	files := 0
	err := filepath.WalkDir(f.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		files++
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(sentinel)) {
			f.t.Errorf("%s holds the secret", strings.TrimPrefix(path, f.dir))
		}
		return err
	})
	if err != nil || files < 10 {
		f.t.Errorf("%d files were read: %v", files, err)
	}
}

// What a plugin asks for by name and nobody approved is an answer without it.
func TestAPackageCannotNameASecretOfTheParent(t *testing.T) {
	f := newFort(t)
	f.with(secretive()...)
	f.addServer("literal", "polite", func(server object) {
		server["env"] = object{"A": "${GITHUB_TOKEN}", "B": "env:GITHUB_TOKEN", "C": "$GITHUB_TOKEN", "D": "%GITHUB_TOKEN%"}
		server["args"] = []string{"polite", "-pid-file", "${PLUGIN_DATA}/pids", "${GITHUB_TOKEN}", "env:OPENAI_API_KEY", "$(env)"}
	})
	f.approve("literal")
	for _, tool := range []string{"env", "args"} {
		said := f.ok("call", "literal", tool)
		if strings.Contains(said, sentinel) || !strings.Contains(said, "${GITHUB_TOKEN}") {
			t.Errorf("%s:\n%s", tool, said)
		}
	}
	f.notKept()
}
