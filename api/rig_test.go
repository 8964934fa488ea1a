package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sallyport/api"
	"sallyport/api/openapi"
	"sallyport/internal/fakeserver/fakeservertest"
	"sallyport/internal/loopback"
	"sallyport/runtime/approvals"
	"sallyport/runtime/health"
	"sallyport/runtime/host"
	"sallyport/runtime/process"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == process.ShimArg {
		process.ShimMain(os.Args[2:])
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "sallyport-api-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		fakeServer = sync.OnceValues(func() (string, error) { return fakeservertest.BuildIn(dir) })
		return m.Run()
	}())
}

var discard = slog.New(slog.DiscardHandler)

var fakeServer func() (string, error)

// sentinel stands in the parent's environment: nothing may ever show it.
const sentinel = "sentinel-5f2c9e"

// rig is a real host behind the real HTTP server on loopback, with its plugins:
//
//	fake/main       fakeserver; never approved until approve is called
//	two/a, two/b    two servers of one plugin
//	broken          its manifest cannot be read
type rig struct {
	t       *testing.T
	dir     string
	host    *host.Host
	port    int
	tokens  map[string]string // by kind of caller
	program string            // what would start at login
	later   atomic.Int64      // how far the API's clock is ahead, in nanoseconds
}

// now is the clock of the API's sessions, which passes moves.
func (r *rig) now() time.Time { return time.Now().Add(time.Duration(r.later.Load())) }

func (r *rig) passes(d time.Duration) { r.later.Add(int64(d)) }

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir()}
	places := host.PlacesIn(r.dir)
	r.plugin("fake", map[string][]string{"main": {"polite"}})
	r.plugin("two", map[string][]string{"a": {"polite"}, "b": {"polite"}})
	r.write("broken/plugin.json", []byte(`{"name": "broken",`), 0o644)
	r.open(places)
	h := r.host
	if err := h.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.listen()
	r.addTokens()
	return r
}

func (r *rig) open(places host.Places) {
	r.t.Helper()
	r.program = filepath.Join(r.dir, "apps", "sallyport")
	if err := errors.Join(os.MkdirAll(filepath.Dir(r.program), 0o700), os.WriteFile(r.program, []byte("a program"), 0o700)); err != nil {
		r.t.Fatal(err)
	}
	h, err := host.Open(r.t.Context(), host.Config{Places: places, Version: "1.2.3", Home: filepath.Join(r.dir, "home"), Program: r.program, Temps: []string{},
		Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(r.dir, "home"), "AWS_SECRET_ACCESS_KEY=" + sentinel}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.host = h
	h.Health.Clear(health.Starting, "")
	r.t.Cleanup(func() {
		if err := h.Close(context.WithoutCancel(r.t.Context())); err != nil {
			r.t.Error(err)
		}
	})
}

func (r *rig) listen() {
	r.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(r.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.port = loopback.Port(listener)
	r.serve(listener, api.HTTPServer(r.handlerAt(r.port), discard))
}

func (r *rig) serve(listener net.Listener, server *http.Server) {
	go server.Serve(listener)
	r.t.Cleanup(func() { server.Close() })
}

// listenServer serves something else, on a port of its own.
func (r *rig) listenServer(serverAt func(port int) *http.Server) (port int) {
	r.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(r.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	port = loopback.Port(listener)
	r.serve(listener, serverAt(port))
	return port
}

// handlerAt is the host's handler for a port.
func (r *rig) handlerAt(port int) http.Handler {
	h := r.host
	return api.Handler(api.Config{Host: h, Port: port,
		Tokens: api.Tokens{Operator: h.Tokens.Operator, Companion: h.Tokens.Companion},
		Pages:  pagesForTests(), WindowToken: windowToken, Now: r.now,
		Health: health.Desktop(health.DesktopConfig{Version: h.Version, Instance: h.Instance, Port: port, Key: h.HealthKey, Tracker: h.Health})})
}

// addTokens makes one caller of each kind.
func (r *rig) addTokens() {
	r.t.Helper()
	r.tokens = map[string]string{
		"anyone": "", "operator": r.host.Tokens.Operator, "companion": r.host.Tokens.Companion,
		"agent": r.client("agent"), "garbage": strings.Repeat("A", 43), "removed client": r.client("gone"),
	}
	if err := r.host.Gate.RemoveClient(r.t.Context(), "gone", approvals.By{User: "tester", Via: "api"}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) client(name string) string {
	r.t.Helper()
	token, err := r.host.Gate.AddClient(r.t.Context(), name, approvals.Scope{All: true}, approvals.By{User: "tester", Via: "api"})
	if err != nil {
		r.t.Fatal(err)
	}
	return token
}

func (r *rig) write(name string, content []byte, mode os.FileMode) {
	r.t.Helper()
	path := filepath.Join(host.PlacesIn(r.dir).Plugins(), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) plugin(name string, servers map[string][]string) {
	r.t.Helper()
	program, err := fakeServer()
	if err != nil {
		r.t.Fatal(err)
	}
	raw, err := os.ReadFile(program)
	if err != nil {
		r.t.Fatal(err)
	}
	r.write(name+"/bin/server.exe", raw, 0o755)
	r.write(name+"/plugin.json", fmt.Appendf(nil, `{"$schema":"https://agent-plugins.org/schemas/1.0.0/plugin.schema.json","name":%q,"version":"1.0.0","description":"a fake"}`, name), 0o644)
	declared := map[string]any{}
	for server, args := range servers {
		declared[server] = map[string]any{"type": "stdio", "command": "./bin/server.exe", "args": args}
	}
	mcp, err := json.Marshal(map[string]any{"$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json", "mcpServers": declared})
	if err != nil {
		r.t.Fatal(err)
	}
	r.write(name+"/mcp.json", mcp, 0o644)
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// request is one line of a scenario.
type request struct {
	method, path, as string
	body             string
	header           map[string]string
	chunked          bool // the length is not said
}

// send sends one request; a stream is cut after its head and first bytes.
func (r *rig) send(q request) answer {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	var body io.Reader
	if q.body != "" {
		body = strings.NewReader(q.body)
	}
	out, err := http.NewRequestWithContext(ctx, q.method, fmt.Sprintf("http://127.0.0.1:%d%s", r.port, q.path), body)
	if err != nil {
		r.t.Fatal(err)
	}
	if q.chunked {
		out.ContentLength = -1
	}
	if q.body != "" {
		out.Header.Set("Content-Type", "application/json")
	}
	if token := r.tokens[q.as]; token != "" {
		out.Header.Set("Authorization", "Bearer "+token)
	}
	for name, value := range q.header {
		out.Header.Set(name, value)
		if name == "Host" {
			out.Host = value
		}
	}
	response, err := loner.Do(out)
	if err != nil {
		r.t.Fatalf("%s %s as %s: %v", q.method, q.path, q.as, err)
	}
	defer response.Body.Close()
	got := answer{status: response.StatusCode, header: response.Header}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		return got
	}
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatalf("%s %s as %s: %v", q.method, q.path, q.as, err)
	}
	got.body = string(raw)
	return got
}

// loner keeps no connection and follows no redirect.
var loner = &http.Client{
	Transport:     &http.Transport{Proxy: nil, DisableKeepAlives: true, ExpectContinueTimeout: 20 * time.Second},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// into sends as the operator, expects 200 and reads the answer.
func (r *rig) into(answer any, method, path, body string) {
	r.t.Helper()
	got := r.send(request{method: method, path: path, as: "operator", body: body})
	if got.status != http.StatusOK {
		r.t.Fatalf("%s %s: %d %s", method, path, got.status, got.body)
	}
	if answer == nil {
		return
	}
	if err := json.Unmarshal([]byte(got.body), answer); err != nil {
		r.t.Fatalf("%s %s: %v\n%s", method, path, err, got.body)
	}
}

// approve approves fake/main with tools.
func (r *rig) approve(tools ...string) {
	r.t.Helper()
	var asked, offered, chosen api.Decision
	r.into(&asked, "POST", "/v1/plugins/fake/main/ask", "")
	r.into(&offered, "POST", "/v1/decisions/"+asked.ID+"/answer", `{"answer":"allow"}`)
	body, err := json.Marshal(api.Answer{Answer: "allow", Tools: tools, Always: true})
	if err != nil {
		r.t.Fatal(err)
	}
	r.into(&chosen, "POST", "/v1/decisions/"+offered.ID+"/answer", string(body))
	if chosen.State != "allowed" {
		r.t.Fatalf("approved: %+v", chosen)
	}
}

// refused checks an answer for the one shape of errors, without what no error
// may say.
func (r *rig) refused(t *testing.T, what string, got answer) string {
	t.Helper()
	var e api.Error
	decoder := json.NewDecoder(strings.NewReader(got.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&e); err != nil || e.Code == "" || e.Message == "" || !strings.Contains(got.body, `"details":{`) {
		t.Errorf("%s: %d is not the shape of errors: %v %s", what, got.status, err, got.body)
	}
	r.clean(t, what, got)
	return e.Code
}

// clean checks that an answer holds no secret, and an error no absolute path.
func (r *rig) clean(t *testing.T, what string, got answer) {
	t.Helper()
	for name, secret := range map[string]string{
		"the operator's token": r.tokens["operator"], "the companion's token": r.tokens["companion"],
		"an agent's token": r.tokens["agent"], "the parent's environment": sentinel,
	} {
		if strings.Contains(got.body, secret) {
			t.Errorf("%s: the answer shows %s", what, name)
		}
	}
	if got.status >= 400 && strings.Contains(got.body, r.dir) {
		t.Errorf("%s: the error shows an absolute path: %s", what, got.body)
	}
	for name := range got.header {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("%s: the answer has the CORS header %s", what, name)
		}
	}
}

// fits checks an answer against the schema of its route: types, required fields,
// and lists that are lists and never null.
func fits(t *testing.T, route api.Route, got answer) {
	t.Helper()
	zero := fmt.Sprintf("%T", route.Answer)
	name := zero[strings.LastIndexByte(zero, '.')+1:]
	if pkg, _, _ := strings.Cut(zero, "."); pkg != "api" {
		name = strings.ToUpper(pkg[:1]) + pkg[1:] + name
	}
	schema, err := contract().Compile("mem:///openapi.json#/components/schemas/" + name)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(got.body))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		t.Errorf("%s %s answers with what is not %s: %v\n%s", route.Method, route.Path, name, err, got.body)
	}
}

var contract = sync.OnceValue(func() *jsonschema.Compiler {
	raw, err := openapi.Document(api.Routes())
	if err != nil {
		panic(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		panic(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("mem:///openapi.json", document); err != nil {
		panic(err)
	}
	return compiler
})
