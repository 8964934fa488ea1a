package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/fakeserver/fakeservertest"
)

const (
	rounds     = 5
	sequential = 400
	callers    = 16
)

// BenchmarkCall compares one small call through the gateway, over /mcp and over
// sallyport mcp, with the same call straight to the same server over stdio. All
// are connected at once and take turns, five rounds.
func BenchmarkCall(b *testing.B) {
	home := newHome(b)
	ways := []*way{
		{name: "straight", session: connect(b, &mcp.CommandTransport{Command: exec.Command(home.server, "echo")}), tool: "echo"},
		{name: "http", session: connect(b, home.http(b)), tool: "echo__main__echo"},
		{name: "stdio", session: connect(b, &mcp.CommandTransport{Command: exec.Command(home.binary, "--home", home.dir, "mcp", "--client", "bench")}), tool: "echo__main__echo"},
	}
	for b.Loop() {
		for range rounds {
			for _, w := range ways {
				w.sequential(b)
			}
			for _, w := range ways {
				w.concurrent(b)
			}
		}
	}
	straight := ways[0]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(median(straight.medians).Microseconds()), "us-straight-p50")
	for _, w := range ways[1:] {
		b.ReportMetric(ratios(w.medians, straight.medians), w.name+"-p50-ratio")
		b.ReportMetric(1/ratios(w.bursts, straight.bursts), w.name+"-calls/s-ratio")
	}
}

// way is one way to the server.
type way struct {
	name    string
	session *mcp.ClientSession
	tool    string
	medians []time.Duration // of single calls, one a round
	bursts  []time.Duration // of all callers together, one a round
}

func (w *way) call(b *testing.B) {
	_, err := w.session.CallTool(context.Background(), &mcp.CallToolParams{Name: w.tool, Arguments: map[string]any{"text": "thirty-two bytes of plain text.."}})
	if err != nil {
		b.Errorf("%s: %v", w.name, err)
	}
}

func (w *way) sequential(b *testing.B) {
	times := make([]time.Duration, sequential)
	for i := range times {
		begun := time.Now()
		w.call(b)
		times[i] = time.Since(begun)
	}
	w.medians = append(w.medians, median(times))
}

func (w *way) concurrent(b *testing.B) {
	var group sync.WaitGroup
	begun := time.Now()
	for range callers {
		group.Go(func() {
			for range sequential / callers {
				w.call(b)
			}
		})
	}
	group.Wait()
	w.bursts = append(w.bursts, time.Since(begun))
}

// BenchmarkStart compares the start of the sidecar, from fork to the first
// healthy answer, with the smallest HTTP server in Go, and tells its resident
// memory afterwards.
func BenchmarkStart(b *testing.B) {
	home := newHome(b)
	minimal := buildMinimal(b)
	home.stop()
	var own, floor []time.Duration
	var resident float64
	for b.Loop() {
		for range 15 {
			floor = append(floor, startMinimal(b, minimal))
			home.start(b)
			own = append(own, home.startTime)
			time.Sleep(300 * time.Millisecond) // the first scan is over: what stays is the idle size
			resident = residentMiB(b, home.process.Process.Pid)
			home.stop()
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(median(own).Microseconds())/1000, "ms-to-healthy")
	b.ReportMetric(ratios(own, floor), "start-ratio")
	b.ReportMetric(resident, "MiB-idle")
}

// home is an installation with one approved plugin and a running sidecar.
type home struct {
	dir, binary, server string
	url, token          string
	process             *exec.Cmd
	startTime           time.Duration
}

func newHome(b *testing.B) *home {
	b.Helper()
	dir := b.TempDir()
	h := &home{dir: filepath.Join(dir, "home"), binary: filepath.Join(dir, "sallyport")}
	build := exec.Command("go", "build", "-trimpath", "-o", h.binary, "sallyport")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("cannot build: %v\n%s", err, out)
	}
	plugin := filepath.Join(h.dir, "data", "plugins", "echo")
	must(b, os.MkdirAll(plugin, 0o700))
	h.server = fakeservertest.Build(b, plugin)
	must(b, os.WriteFile(filepath.Join(plugin, "plugin.json"), []byte(`{"$schema":"https://agent-plugins.org/schemas/1.0.0/plugin.schema.json","name":"echo","version":"1.0.0"}`), 0o600))
	must(b, os.WriteFile(filepath.Join(plugin, "mcp.json"), []byte(`{"$schema":"https://agent-plugins.org/schemas/1.0.0/mcp.schema.json","mcpServers":{"main":{"type":"stdio","command":"./fakeserver","args":["echo"]}}}`), 0o600))
	h.start(b)
	b.Cleanup(h.stop)
	h.run(b, "approve", "echo", "--yes", "--all-tools")
	var client struct{ Token string }
	must(b, json.Unmarshal(h.run(b, "clients", "add", "bench", "--json"), &client))
	h.token = client.Token
	return h
}

func (h *home) run(b *testing.B, args ...string) []byte {
	b.Helper()
	out, err := exec.Command(h.binary, append([]string{"--home", h.dir}, args...)...).Output()
	if err != nil {
		b.Fatalf("sallyport %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// start starts the sidecar and waits for the first healthy answer.
func (h *home) start(b *testing.B) {
	b.Helper()
	begun := time.Now()
	h.process = exec.Command(h.binary, "--home", h.dir, "serve", "--json")
	stdout, err := h.process.StdoutPipe()
	must(b, err)
	must(b, h.process.Start())
	var ready struct{ URL string }
	must(b, json.NewDecoder(stdout).Decode(&ready))
	h.url = ready.URL
	response, err := http.Get(h.url + "/api/desktop-health")
	must(b, err)
	must(b, response.Body.Close())
	if response.StatusCode != http.StatusOK {
		b.Fatalf("health is %s", response.Status)
	}
	h.startTime = time.Since(begun)
}

func (h *home) stop() {
	if h.process != nil {
		h.process.Process.Signal(os.Interrupt)
		h.process.Wait()
		h.process = nil
	}
}

func (h *home) http(b *testing.B) mcp.Transport {
	b.Helper()
	return &mcp.StreamableClientTransport{Endpoint: h.url + "/mcp", HTTPClient: &http.Client{Transport: withToken{h.token}}}
}

type withToken struct{ token string }

func (t withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+t.token)
	return http.DefaultTransport.RoundTrip(r)
}

func connect(b *testing.B, transport mcp.Transport) *mcp.ClientSession {
	b.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(context.Background(), transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	must(b, err)
	b.Cleanup(func() { session.Close() })
	return session
}

const minimalSource = `package main
import ("fmt"; "net"; "net/http")
func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil { panic(err) }
	fmt.Printf("{\"url\":\"http://%s\"}\n", l.Addr())
	http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("{}")) }))
}
`

func buildMinimal(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	must(b, os.WriteFile(filepath.Join(dir, "main.go"), []byte(minimalSource), 0o600))
	must(b, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module minimal\n\ngo 1.26\n"), 0o600))
	build := exec.Command("go", "build", "-o", "minimal", ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("cannot build: %v\n%s", err, out)
	}
	return filepath.Join(dir, "minimal")
}

func startMinimal(b *testing.B, path string) time.Duration {
	b.Helper()
	begun := time.Now()
	cmd := exec.Command(path)
	stdout, err := cmd.StdoutPipe()
	must(b, err)
	must(b, cmd.Start())
	var ready struct{ URL string }
	must(b, json.NewDecoder(stdout).Decode(&ready))
	response, err := http.Get(ready.URL)
	must(b, err)
	must(b, response.Body.Close())
	took := time.Since(begun)
	cmd.Process.Kill()
	cmd.Wait()
	return took
}

// residentMiB reads how much memory a process holds; only Linux tells so simply.
func residentMiB(b *testing.B, pid int) float64 {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		var kib float64
		if _, err := fmt.Sscanf(line, "VmRSS: %f kB", &kib); err == nil {
			return kib / 1024
		}
	}
	return 0
}

func median(times []time.Duration) time.Duration {
	sorted := slices.Clone(times)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

// ratios is the median of the rounds' own ratios.
func ratios(a, b []time.Duration) float64 {
	each := make([]float64, len(a))
	for i := range a {
		each[i] = float64(a[i]) / float64(b[i])
	}
	slices.Sort(each)
	return each[len(each)/2]
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
