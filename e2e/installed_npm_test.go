//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A package of the public registry, in one command: its exact bytes and those of
// everything it needs lie in the bundle, so that nothing is fetched when it starts.
func TestAnNPMPackageIsInstalledWhole(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.with("NODE_EXTRA_CA_CERTS="+os.Getenv("NODE_EXTRA_CA_CERTS"), "HTTPS_PROXY="+os.Getenv("HTTPS_PROXY"))
	if got := h.run("install", "npm:@modelcontextprotocol/server-everything@latest", "--yes"); got.code == 0 || !strings.Contains(got.stderr, "source-version-floating") {
		t.Errorf("a tag is installed: %+v", got)
	}
	h.ok("install", "npm:@modelcontextprotocol/server-everything@2026.8.31", "--yes")
	const id = "modelcontextprotocol-server-everything/main"
	if got := h.connector(id); got.State != "approval_required" || got.Version != "2026.8.31" {
		t.Errorf("after the installation: %+v", got)
	}
	// Neither npm nor the network is there from now on.
	h.with("HTTPS_PROXY=http://127.0.0.1:9", "npm_config_registry=http://127.0.0.1:9/")
	h.ok("approve", id, "--yes", "--tools", "echo")
	if out := h.ok("call", id, "echo", "--args", `{"message": "from the bundle"}`); !strings.Contains(out, "from the bundle") {
		t.Errorf("it answers %s", out)
	}
	if left, err := os.ReadDir(h.data("staging")); err != nil || len(left) != 0 {
		t.Errorf("still staged: %v %v", left, err)
	}
}

// A commit is its files and nothing that lies beside them, and it stays what it is
// when the repository goes on.
func TestACommitIsInstalled(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	repository := filepath.Join(t.TempDir(), "demo")
	h.copyTree(filepath.Join("testdata", "plugins", "recorder"), repository)
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", repository, "-c", "user.name=x", "-c", "user.email=x@example.org"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	git("add", "-A")
	git("commit", "-q", "-m", "first")
	commit := git("rev-parse", "HEAD")
	h.file(filepath.Join(repository, "server.mjs"), "throw new Error('not committed')")
	if got := h.run("install", repository+"#HEAD", "--yes"); got.code == 0 || !strings.Contains(got.stderr, "source-commit-floating") {
		t.Errorf("a name of a commit is installed: %+v", got)
	}
	h.ok("install", repository+"#"+commit, "--yes")
	if out := h.ok("plugins", "list"); !strings.Contains(out, "recorder/") {
		t.Errorf("listed are\n%s", out)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "plugins", "recorder", "server.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(h.data("plugins", "recorder", "server.mjs")); err != nil || string(got) != string(want) {
		t.Errorf("installed is another file: %v", err)
	}
}

// What a connector fetches at every start becomes a bundle by one command: it is not
// approved as it is, and afterwards runs with neither npm nor the network.
func TestACommandThatFetchesIsVendored(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.with("NODE_EXTRA_CA_CERTS="+os.Getenv("NODE_EXTRA_CA_CERTS"), "HTTPS_PROXY="+os.Getenv("HTTPS_PROXY"))
	h.ok("connectors", "add", "everything", "--env", "LEVEL=debug", "--", "npx", "-y", "@modelcontextprotocol/server-everything@2026.8.31")
	if got := h.run("approve", "connectors/everything", "--yes", "--tools", "echo"); got.code == 0 || !strings.Contains(got.stderr, "unpinned-not-accepted") {
		t.Errorf("it is approved as it is: %+v", got)
	}
	if out := h.ok("vendor", "connectors/everything", "--yes"); !strings.Contains(out, "everything 2026.8.31 is installed") {
		t.Errorf("vendoring says %s", out)
	}
	var made struct{ Digest string }
	h.read(&made, "plugins", "show", "everything/main")
	h.with("HTTPS_PROXY=http://127.0.0.1:9", "npm_config_registry=http://127.0.0.1:9/")
	h.ok("approve", "everything/main", "--yes", "--tools", "echo")
	if out := h.ok("call", "everything/main", "echo", "--args", `{"message": "from the bundle"}`); !strings.Contains(out, "from the bundle") {
		t.Errorf("it answers %s", out)
	}
	if !strings.HasPrefix(made.Digest, "a1:") {
		t.Errorf("its digest is %q", made.Digest)
	}
}
