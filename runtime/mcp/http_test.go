package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/coded"
	"sallyport/runtime/plugins"
)

// sdkServer is the official server behind HTTP, with one tool.
func sdkServer(t *testing.T, json bool, wrap func(http.Handler) http.Handler) (url string, server *sdk.Server) {
	t.Helper()
	server = sdk.NewServer(&sdk.Implementation{Name: "official", Version: "1"}, nil)
	server.AddTool(&sdk.Tool{Name: "echo", InputSchema: map[string]any{"type": "object"}},
		func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if token := r.Params.GetProgressToken(); token != nil {
				for i := range 3 {
					r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: float64(i)})
				}
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(r.Params.Arguments)}}}, nil
		})
	handler := http.Handler(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{JSONResponse: json}))
	if wrap != nil {
		handler = wrap(handler)
	}
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	return web.URL, server
}

func dialled(t *testing.T, url string, o Options) *Conn {
	t.Helper()
	conn, err := Dial(url, map[string]string{"X-Key": "k"}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAndWait(t, conn) })
	if _, err := Handshake(t.Context(), conn, "1"); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestADialledServerAnswers(t *testing.T) {
	for _, asJSON := range []bool{true, false} {
		t.Run(fmt.Sprint("JSON ", asJSON), func(t *testing.T) {
			var keys, versions, deletes atomic.Int64
			url, _ := sdkServer(t, asJSON, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("X-Key") == "k" {
						keys.Add(1)
					}
					if r.Header.Get("Mcp-Protocol-Version") == "2025-11-25" {
						versions.Add(1)
					}
					if r.Method == http.MethodDelete {
						deletes.Add(1)
					}
					h.ServeHTTP(w, r)
				})
			})
			conn := dialled(t, url, Options{})
			for range 5 {
				result, err := callTool(t.Context(), conn, "echo", `{"z":1,"a":9007199254740993}`)
				if err != nil || !strings.Contains(string(result), `9007199254740993`) {
					t.Fatalf("%s, %v", result, err)
				}
			}
			if !asJSON {
				up := agent(nil)
				params := `{"name":"echo","arguments":{},"_meta":{"progressToken":"mine"}}`
				if _, err := conn.Call(t.Context(), "tools/call", json.RawMessage(params), up); err != nil || len(up.seen()) != 3 || !strings.Contains(up.seen()[0], `"mine"`) {
					t.Fatal(up.seen(), err)
				}
			}
			closeAndWait(t, conn)
			if keys.Load() < 7 || versions.Load() < 6 || deletes.Load() != 1 {
				t.Fatalf("%d keys, %d versions, %d deletes", keys.Load(), versions.Load(), deletes.Load())
			}
		})
	}
}

func TestADialledServersQuestions(t *testing.T) {
	url, server := sdkServer(t, false, nil)
	server.AddTool(&sdk.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}},
		func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			roots, err := r.Session.ListRoots(ctx, nil)
			if err != nil {
				return nil, err
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: roots.Roots[0].URI}}}, nil
		})
	conn := dialled(t, url, Options{})
	up := agent(map[string]func(context.Context, json.RawMessage) (json.RawMessage, error){
		"roots/list": func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"roots":[{"uri":"file:///here"}]}`), nil
		},
	})
	if result, err := conn.Call(t.Context(), "tools/call", args("ask", "{}"), up); err != nil || !strings.Contains(string(result), "file:///here") {
		t.Fatalf("%s, %v", result, err)
	}
}

func TestADialledServerHearsOfACancellation(t *testing.T) {
	for _, asJSON := range []bool{true, false} {
		begun, cancelled := make(chan struct{}), make(chan struct{})
		url, server := sdkServer(t, asJSON, nil)
		server.AddTool(&sdk.Tool{Name: "wait", InputSchema: map[string]any{"type": "object"}},
			func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				close(begun)
				select {
				case <-ctx.Done():
					close(cancelled)
				case <-t.Context().Done(): // the test has failed: the server must be able to close
				}
				return nil, ctx.Err()
			})
		conn := dialled(t, url, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-begun // the call has arrived: what is told now is about a call that is known
			cancel()
		}()
		if _, err := callTool(ctx, conn, "wait", "{}"); err == nil {
			t.Fatal("it answered")
		}
		select {
		case <-cancelled:
		case <-time.After(5 * time.Second):
			t.Fatal("the server was not told")
		}
	}
}

func TestADialledServersListChangesAreHeard(t *testing.T) {
	heard := make(chan string, 16)
	url, server := sdkServer(t, false, nil)
	dialled(t, url, Options{Notification: func(method string, _ json.RawMessage) { heard <- method }})
	tick := time.NewTicker(50 * time.Millisecond) // until the stream is open
	defer tick.Stop()
	for n := 0; ; n++ {
		server.AddTool(&sdk.Tool{Name: fmt.Sprint("new", n), InputSchema: map[string]any{"type": "object"}}, nil)
		select {
		case got := <-heard:
			if got != "notifications/tools/list_changed" {
				t.Fatal(got)
			}
			return
		case <-tick.C:
		}
	}
}

func TestNoHeaderFollowsARedirect(t *testing.T) {
	var reached atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer other.Close()
	web := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer web.Close()
	conn, err := Dial(web.URL, map[string]string{"Authorization": "secret"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeAndWait(t, conn)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := conn.Call(ctx, "ping", nil, nil); coded.Of(err) != "http-status" || reached.Load() != 0 {
		t.Fatal(err, reached.Load())
	}
}

// A status of HTTP's own ends a call and no connection; the handshake has to hear
// of it all the same, and at once.
func TestAStatusEndsTheHandshake(t *testing.T) {
	for _, status := range []int{http.StatusTemporaryRedirect, http.StatusUnauthorized, http.StatusForbidden, http.StatusInternalServerError} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://127.0.0.1:9/")
			w.WriteHeader(status)
		}))
		conn, err := Dial(web.URL, nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if _, err := Handshake(ctx, conn, "1"); coded.Of(err) != "http-status" {
			t.Errorf("%d: got %v", status, err)
		}
		cancel()
		closeAndWait(t, conn)
		web.Close()
	}
}

func TestWhatMayBeDialled(t *testing.T) {
	for url, ok := range map[string]bool{
		"http://127.0.0.1:1/mcp": true, "http://[::1]:1/mcp": true, "http://localhost:1": true, "https://example.org/mcp": true,
		"http://example.org/mcp": false, "ftp://127.0.0.1/": false, "https://u:p@example.org/": false, "http://127.0.0.1.example.org/": false, "%": false,
		"https://bücher.example/mcp": false, "https://example.org:0/mcp": false, "https://example.org:99999/mcp": false, "http://10.0.0.1/mcp": false,
	} {
		conn, err := Dial(url, nil, Options{})
		if (err == nil) != ok || err != nil && coded.Of(err) != "endpoint-refused" {
			t.Errorf("%s: %v", url, err)
		}
		if conn != nil {
			closeAndWait(t, conn)
		}
	}
}

func TestANameThatStandsForThisMachineIsDialled(t *testing.T) {
	url, _ := sdkServer(t, true, nil)
	c, err := Dial(strings.Replace(url, "127.0.0.1", "localhost", 1), nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { c.Close(nil); <-c.Gone() }()
	if _, err := Handshake(t.Context(), c, "0"); err != nil {
		t.Error(err)
	}
}

func TestADialledServersFaults(t *testing.T) {
	for _, row := range []struct{ name, kind, body, code string }{
		{"bad JSON", "application/json", `{"jsonrpc"`, MalformedJSON},
		{"a bad event", "text/event-stream", "event: message\ndata: {}\n\n", InvalidMessage},
		{"no answer", "text/event-stream", ": nothing\n\n", TransportClosed},
		{"another type", "text/html", "<p>", TransportClosed},
		{"too much", "application/json", `"` + strings.Repeat("x", 2000) + `"`, FrameTooLarge},
		{"too much in an event", "text/event-stream", "data: " + strings.Repeat("x", 2000) + "\n\n", FrameTooLarge},
		{"an event of two lines is one message", "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\r\ndata:\"id\":1,\"result\":{}}\r\n\r\n", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", row.kind)
				io.WriteString(w, row.body)
			}))
			defer web.Close()
			conn, err := Dial(web.URL, nil, Options{MaxFrame: 1000})
			if err != nil {
				t.Fatal(err)
			}
			defer closeAndWait(t, conn)
			if _, err := conn.Call(t.Context(), "ping", nil, nil); coded.Of(err) != row.code {
				t.Fatal(err)
			}
		})
	}
}

func TestAServerThatIsNotThere(t *testing.T) {
	web := httptest.NewServer(nil)
	web.Close()
	p, g := newTestPool(t, "polite", Config{})
	pass, _ := newPass(demo, plugins.StreamableHTTP, web.URL)
	if _, err := p.probe(t.Context(), pass, nil); coded.Of(err) != TransportClosed || strings.Contains(err.Error(), web.URL) {
		t.Fatal(err)
	}
	if _, starts := g.count(); starts != 0 {
		t.Fatal("a process was started")
	}
}

func TestAPoolDials(t *testing.T) {
	url, _ := sdkServer(t, true, nil)
	p, _ := newTestPool(t, "polite", Config{})
	pass, _ := newPass(demo, plugins.StreamableHTTP, url)
	offer, err := p.probe(t.Context(), pass, nil)
	if err != nil || len(offer.Tools) != 1 {
		t.Fatalf("%+v, %v", offer, err)
	}
	pass, _ = newPass(demo, "smoke-signals", url)
	if _, err := p.probe(t.Context(), pass, nil); coded.Of(err) != "transport-unsupported" {
		t.Fatal(err)
	}
}
