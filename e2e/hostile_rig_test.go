//go:build linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/atomicfile"
)

// fort is a home, and hands to do harm in it with.
type fort struct {
	*home
	path string // a folder of its own, first on the PATH
}

func newFort(t testing.TB) *fort { return fortOf(newHome(t)) }

// newPlainFort runs the program as it is shipped, for what memory and time say.
func newPlainFort(t testing.TB) *fort { return fortOf(newHomeOf(t, plainProgram(t))) }

func fortOf(h *home) *fort {
	f := &fort{h, filepath.Join(h.dir, "path")}
	f.mkdir(f.path)
	f.with("PATH="+f.path+":"+os.Getenv("PATH"), "SHELL=/bin/sh")
	return f
}

func (f *fort) mkdir(path string) {
	f.t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		f.t.Fatal(err)
	}
}

// children are the processes that have a PLUGIN_DATA in this home.
func (f *fort) children() (pids []int) { return f.childrenOf("") }

// childrenOf are those of one plugin.
func (f *fort) childrenOf(plugin string) (pids []int) {
	marker := "PLUGIN_DATA=" + f.data("plugin-data", plugin)
	for _, p := range f.processes() {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid))
		if err == nil && bytes.Contains(environ, []byte(marker)) {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// eventually is waitFor, and says how long it took.
func eventually(t testing.TB, within time.Duration, what string, is func() bool) time.Duration {
	t.Helper()
	begun := time.Now()
	waitFor(t, what, within, is)
	return time.Since(begun)
}

// refused runs a command that has to be refused with the code.
func (f *fort) refused(code string, args ...string) {
	f.t.Helper()
	if got := f.run(args...); got.code != 1 || !strings.Contains(got.stderr, code+":") {
		f.t.Fatalf("sallyport %v: want a refusal with %s, got %d\n%s%s", args, code, got.code, got.stdout, got.stderr)
	}
}

func (f *fort) wantStanding(id, state, reason string) connector {
	f.t.Helper()
	one := f.connector(id)
	if one.State != state || one.Reason != reason {
		f.t.Fatalf("%s is %s (%s), want %s (%s)", id, one.State, one.Reason, state, reason)
	}
	return one
}

func (f *fort) approve(id string) {
	f.t.Helper()
	f.ok("approve", id, "--yes", "--all-tools")
}

// object is a JSON object in a test.
type object = map[string]any

// addServer installs a package whose one server "main" is the fake server with a
// behaviour; change changes its entry. The server notes each of its starts.
func (f *fort) addServer(name, behaviour string, change ...func(server object)) {
	f.t.Helper()
	raw, err := os.ReadFile(need(f.t, built.fakeserver))
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(name, "fakeserver", raw, 0o755)
	f.write(name, "notes.txt", []byte("nobody names this file\n"), 0o644)
	f.declare(name, object{"version": "1.0.0"})
	f.serveWith(name, behaviour, change...)
}

// declare writes plugin.json.
func (f *fort) declare(name string, more object) {
	f.t.Helper()
	m := object{"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": name}
	maps.Copy(m, more)
	f.write(name, "plugin.json", encode(f.t, m), 0o644)
}

// serveWith writes mcp.json.
func (f *fort) serveWith(name, behaviour string, change ...func(server object)) {
	f.t.Helper()
	server := object{"type": "stdio", "command": "./fakeserver", "args": []string{behaviour, "-pid-file", "${PLUGIN_DATA}/pids"}}
	for _, edit := range change {
		edit(server)
	}
	f.declareServer(name, server)
}

func (f *fort) declareServer(name string, server object) {
	f.t.Helper()
	f.write(name, "mcp.json", encode(f.t, object{"$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json",
		"mcpServers": object{"main": server}}), 0o644)
}

// configure writes config.json.
func (f *fort) configure(c object) {
	f.t.Helper()
	path := filepath.Join(f.dir, ".config", "sallyport", "config.json")
	f.mkdir(filepath.Dir(path))
	if err := atomicfile.Write(path, encode(f.t, c), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// overlay configures one connector.
func (f *fort) overlay(id string, o object) {
	f.t.Helper()
	f.configure(object{"connectors": object{id: o}})
}

// starts counts the processes that a plugin's server has ever been.
func (f *fort) starts(plugin string) int {
	raw, err := os.ReadFile(f.data("plugin-data", plugin, "pids"))
	if err != nil {
		return 0
	}
	return bytes.Count(raw, []byte("\n"))
}

// record is one line of the audit, as far as tests look.
type auditLine struct {
	Seq                                                     uint64
	Action, Result, Reason, Plugin, Binding, Target, Client string
}

func (f *fort) audit() (records []auditLine) {
	f.t.Helper()
	f.read(&records, "audit", "list", "--limit", "500")
	return records
}

// audited counts records of a plugin.
func (f *fort) audited(action, result, plugin string) (n int) {
	f.t.Helper()
	for _, r := range f.audit() {
		if r.Action == action && r.Result == result && r.Plugin == plugin {
			n++
		}
	}
	return n
}

// ask asks the API as the operator does.
func (s *sidecar) ask(method, path string) (int, []byte) { return s.send(method, path, "") }

// call calls a tool, without the time that starting a command takes.
func (s *sidecar) call(id, tool string) (int, []byte) {
	return s.send("POST", "/v1/plugins/"+id+"/call", `{"tool":"`+tool+`","args":{}}`)
}

func (s *sidecar) send(method, path, body string) (int, []byte) {
	return s.sendVia("", method, path, body)
}

// sendVia is send for somebody who says which way they come in; "" is the plain API.
func (s *sidecar) sendVia(via, method, path, body string) (int, []byte) {
	t := s.home.t
	t.Helper()
	request, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile(s.home.state("operator.token"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	request.Header.Set("Content-Type", "application/json")
	if via != "" {
		request.Header.Set("X-Sallyport-Via", via)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, raw
}

// agent is an MCP client of the sidecar's.
type agent struct {
	t       testing.TB
	session *mcp.ClientSession
}

type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// overHTTP connects to /mcp as a client of that name.
func (s *sidecar) overHTTP(name string) *agent {
	s.home.t.Helper()
	token := s.home.addClient(name)
	return connect(s.home.t, &mcp.StreamableClientTransport{Endpoint: s.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer{token}}, DisableStandaloneSSE: true})
}

// overStdio connects through `sallyport mcp`.
func (s *sidecar) overStdio(name string) *agent {
	s.home.t.Helper()
	return connect(s.home.t, &mcp.CommandTransport{Command: s.home.command("mcp", "--client", name)})
}

func connect(t testing.TB, transport mcp.Transport) *agent {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "hostile", Version: "1"}, nil).Connect(ctx, transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return &agent{t, session}
}

// call returns the text of a result, or the error that the agent sees.
func (a *agent) call(tool string, args object) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	result, err := a.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, content := range result.Content {
		if t, ok := content.(*mcp.TextContent); ok {
			text.WriteString(t.Text)
		}
	}
	if result.IsError {
		return "", errors.New(text.String())
	}
	return text.String(), nil
}

func (a *agent) wantOK(tool string) string {
	a.t.Helper()
	text, err := a.call(tool, nil)
	if err != nil {
		a.t.Fatalf("%s: %v", tool, err)
	}
	return text
}

func (a *agent) wantRefused(tool, code string) {
	a.t.Helper()
	if text, err := a.call(tool, nil); err == nil || !strings.Contains(err.Error(), code) {
		a.t.Fatalf("%s: want %s, got %q, %v", tool, code, text, err)
	}
}

// pid asks a running fake server who it is.
func (f *fort) pid(id string) int {
	f.t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(f.ok("call", id, "pid")))
	if err != nil {
		f.t.Fatal(err)
	}
	return pid
}
