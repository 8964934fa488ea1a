package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sallyport/runtime/plugins"
)

func TestMain(m *testing.M) {
	if os.Getenv(echoServer) != "" {
		serveEcho()
		return
	}
	goleak.VerifyTestMain(m)
}

// tool is what a fake server does when a tool is called.
type tool func(ctx context.Context, params json.RawMessage, up Upstream) (json.RawMessage, error)

// fake is a Backend in memory that remembers what it was asked.
type fake struct {
	mu       sync.Mutex
	catalogs map[string]Catalog
	tools    map[string]tool // by original name
	requests map[string]tool // by method
	seen     []string        // "ID what params"
	unknown  []string        // clients
	event    func(Event)
	revision atomic.Uint64
}

func newFake() *fake {
	return &fake{catalogs: map[string]Catalog{}, tools: map[string]tool{}, requests: map[string]tool{}}
}

func (f *fake) Catalog(_ context.Context, client string) (Catalog, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.catalogs[client]
	c.Revision = f.revision.Load() + 1
	return c, nil
}

func (f *fake) note(id plugins.ID, what string, params json.RawMessage) {
	f.mu.Lock()
	f.seen = append(f.seen, fmt.Sprintf("%s %s %s", id, what, params))
	f.mu.Unlock()
}

func (f *fake) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.seen...)
}

func (f *fake) Call(ctx context.Context, _ string, id plugins.ID, name string, params json.RawMessage, up Upstream) (json.RawMessage, error) {
	f.note(id, name, params)
	f.mu.Lock()
	do := f.tools[name]
	f.mu.Unlock()
	if do == nil {
		return json.RawMessage(`{"content":[{"type":"text","text":"` + name + `"}]}`), nil
	}
	return do(ctx, params, up)
}

func (f *fake) Request(ctx context.Context, _ string, id plugins.ID, method string, params json.RawMessage, up Upstream) (json.RawMessage, error) {
	f.note(id, method, params)
	f.mu.Lock()
	do := f.requests[id.String()+" "+method]
	if do == nil {
		do = f.requests[method]
	}
	f.mu.Unlock()
	if do == nil {
		return json.RawMessage(`{}`), nil
	}
	return do(ctx, params, up)
}

func (f *fake) Unknown(client string) {
	f.mu.Lock()
	f.unknown = append(f.unknown, client)
	f.mu.Unlock()
}

func (f *fake) Subscribe(event func(Event)) func() {
	f.event = event
	return func() {}
}

func (f *fake) set(client string, c Catalog) {
	f.mu.Lock()
	f.catalogs[client] = c
	f.mu.Unlock()
	f.revision.Add(1)
}

var demo = plugins.ID{Plugin: "demo", Server: "main"}

// offer is a catalog of one connector with tools that take anything.
func offer(id plugins.ID, tools ...string) Exposed {
	e := Exposed{ID: id, Resources: true}
	for _, name := range tools {
		e.Tools = append(e.Tools, Tool{Name: name, Definition: json.RawMessage(`{"name":` + string(quote(name)) + `,"inputSchema":{"type":"object"}}`)})
	}
	return e
}

// rig is a gateway behind a real HTTP server. The client is who the header
// X-Client names.
type rig struct {
	t       testing.TB
	fake    *fake
	gateway *Gateway
	url     string
}

func newRig(t testing.TB, limits Limits) *rig {
	t.Helper()
	f := newFake()
	f.set("agent", Catalog{Connectors: []Exposed{offer(demo, "echo")}})
	g := New(Config{
		Backend: f, Version: "1.2.3", Limits: limits,
		Client: func(r *http.Request) (ClientInfo, bool) {
			name := r.Header.Get("X-Client")
			if name == "" {
				name = "agent"
			}
			return ClientInfo{Name: name}, name != "nobody"
		},
	})
	server := httptest.NewServer(g.Handler())
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		server.CloseClientConnections()
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return &rig{t: t, fake: f, gateway: g, url: server.URL}
}

// got is an HTTP answer, read whole.
type got struct {
	status int
	header http.Header
	body   string
}

// messages returns the JSON messages of a body in either form.
func (g got) messages() []string {
	if !strings.HasPrefix(g.header.Get("Content-Type"), eventType) {
		return []string{g.body}
	}
	var out []string
	for line := range strings.Lines(g.body) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			out = append(out, strings.TrimSpace(data))
		}
	}
	return out
}

type headers map[string]string

func (r *rig) do(ctx context.Context, method, body string, with headers) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, r.url, bytes.NewBufferString(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", jsonType)
	request.Header.Set("Accept", jsonType+", "+eventType)
	for key, value := range with {
		request.Header.Del(key)
		if value != "" {
			request.Header.Set(key, value)
		}
		if key == "Host" {
			request.Host = value
		}
	}
	return http.DefaultClient.Do(request)
}

func (r *rig) send(method, body string, with headers) got {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	response, err := r.do(ctx, method, body, with)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return got{response.StatusCode, response.Header, string(raw)}
}

// open initializes a session of the older generation.
func (r *rig) open(client, caps string) headers {
	r.t.Helper()
	answer := r.send("POST", `{"jsonrpc":"2.0","id":"init-1","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":`+caps+`,"clientInfo":{"name":"t","version":"1"}}}`,
		headers{"X-Client": client})
	id := answer.header.Get(sessionHeader)
	if answer.status != 200 || id == "" {
		r.t.Fatalf("initialize: %d %s", answer.status, answer.body)
	}
	return headers{"X-Client": client, sessionHeader: id, versionHeader: "2025-11-25"}
}

// modern returns a request of the newer generation with what it must carry.
func modern(id, method, params, caps string) (string, headers) {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + caps + `}`
	if params == "" || params == "{}" {
		params = `{` + meta + `}`
	} else {
		params = params[:len(params)-1] + `,` + meta + `}`
	}
	with := headers{versionHeader: modernVersion, "Mcp-Method": method}
	if name := text([]byte(params), "name"); name != "" {
		with["Mcp-Name"] = name
	}
	if uri := text([]byte(params), "uri"); uri != "" {
		with["Mcp-Name"] = uri
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`, with
}

func (r *rig) modern(method, params string) got {
	r.t.Helper()
	body, with := modern("1", method, params, "{}")
	return r.send("POST", body, with)
}

// eventually waits for a condition, with a deadline.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
