//go:build linux && amd64

package conformance

import (
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/runtime/mcp"
	"sallyport/runtime/mcp/gateway"
	"sallyport/runtime/plugins"
)

var everything = plugins.ID{Plugin: "everything", Server: "main"}

// child is a process as package process would give it, without its protections.
type child struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  io.Reader
	done chan struct{}
}

func start(t *testing.T, path string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(path), done: make(chan struct{})}
	c.cmd.Env = []string{}
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if c.out, err = c.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = c.cmd.Process.Wait()
		close(c.done)
	}()
	return c
}

func (c *child) PID() int              { return c.cmd.Process.Pid }
func (c *child) Stdin() io.WriteCloser { return c.in }
func (c *child) Stdout() io.Reader     { return c.out }
func (c *child) Tail() []string        { return nil }
func (c *child) Done() <-chan struct{} { return c.done }
func (c *child) Status() string        { return "" }
func (c *child) Kill()                 { _ = c.cmd.Process.Kill() }

func (c *child) Stop(context.Context, error) error {
	c.in.Close()
	select {
	case <-c.done:
	case <-time.After(2 * time.Second):
		c.Kill()
	}
	return nil
}

// host is a backend of one server to which everybody has access.
type host struct {
	conn     *mcp.Conn
	exposed  atomic.Pointer[gateway.Exposed]
	revision atomic.Uint64
	event    func(gateway.Event)
	modern   bool
}

// newHost starts the server. With modern, requests of 2026-07-28 reach it as such.
func newHost(t *testing.T, path string, modern bool) *host {
	t.Helper()
	h := &host{modern: modern, event: func(gateway.Event) {}}
	changes := make(chan string, 64)
	process := start(t, path)
	h.conn = mcp.Connect(process, mcp.Options{Notification: func(method string, params json.RawMessage) {
		switch method {
		case "notifications/resources/updated":
			h.event(gateway.Event{Kind: gateway.ResourceUpdated, Connector: everything, Params: params})
		default:
			changes <- method
		}
	}})
	ctx, cancel := context.WithCancel(context.Background())
	if modern {
		h.discover(ctx, t)
	} else if _, err := mcp.Handshake(ctx, h.conn, "0"); err != nil {
		t.Fatal(err)
	}
	h.list(ctx, t)
	go func() {
		for {
			select {
			case method := <-changes:
				h.changed(ctx, t, method)
			case <-h.conn.Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		h.conn.Close(nil)
		<-h.conn.Gone()
	})
	return h
}

const modernMeta = `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// discover begins a connection of 2026-07-28 and listens for what changes.
func (h *host) discover(ctx context.Context, t *testing.T) {
	if _, err := h.conn.Call(ctx, "server/discover", json.RawMessage(modernMeta+"}"), nil); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = h.conn.Call(ctx, "subscriptions/listen", json.RawMessage(modernMeta+
			`,"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}}`), nil)
	}()
}

func (h *host) changed(ctx context.Context, t *testing.T, method string) {
	h.list(ctx, t)
	kind := map[string]gateway.EventKind{
		"notifications/tools/list_changed":     gateway.ToolsChanged,
		"notifications/prompts/list_changed":   gateway.PromptsChanged,
		"notifications/resources/list_changed": gateway.ResourcesChanged,
	}[method]
	h.event(gateway.Event{Kind: kind, Connector: everything})
}

// list records what the server offers, as the host does at an approval.
func (h *host) list(ctx context.Context, t *testing.T) {
	e := &gateway.Exposed{ID: everything, Resources: true, Modern: h.modern}
	var tools struct{ Tools []json.RawMessage }
	h.ask(ctx, t, "tools/list", &tools)
	for _, definition := range tools.Tools {
		var named struct{ Name string }
		if err := json.Unmarshal(definition, &named); err != nil {
			t.Error(err)
		}
		e.Tools = append(e.Tools, gateway.Tool{Name: named.Name, Definition: definition})
	}
	var prompts struct{ Prompts []json.RawMessage }
	h.ask(ctx, t, "prompts/list", &prompts)
	e.Prompts = prompts.Prompts
	var templates struct{ ResourceTemplates []json.RawMessage }
	h.ask(ctx, t, "resources/templates/list", &templates)
	e.Templates = templates.ResourceTemplates
	h.exposed.Store(e)
	h.revision.Add(1)
}

func (h *host) ask(ctx context.Context, t *testing.T, method string, into any) {
	params := "{}"
	if h.modern {
		params = modernMeta + "}"
	}
	raw, err := h.conn.Call(ctx, method, json.RawMessage(params), nil)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil && ctx.Err() == nil && h.conn.Cause() == nil {
		t.Errorf("%s: %v", method, err)
	}
}

func (h *host) Catalog(context.Context, string) (gateway.Catalog, error) {
	return gateway.Catalog{
		Connectors: []gateway.Exposed{*h.exposed.Load()}, OriginalNames: true, Revision: h.revision.Load(),
	}, nil
}

func (h *host) Call(ctx context.Context, _ string, _ plugins.ID, _ string, params json.RawMessage, up gateway.Upstream) (json.RawMessage, error) {
	return h.conn.Call(ctx, "tools/call", params, up)
}

func (h *host) Request(ctx context.Context, _ string, _ plugins.ID, method string, params json.RawMessage, up gateway.Upstream) (json.RawMessage, error) {
	if h.modern && (method == "resources/subscribe" || method == "resources/unsubscribe" || method == "logging/setLevel") {
		return json.RawMessage("{}"), nil
	}
	return h.conn.Call(ctx, method, params, up)
}

func (h *host) Unknown(string) {}

func (h *host) Subscribe(event func(gateway.Event)) func() {
	h.event = event
	return func() {}
}
