package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/coded"
	"sallyport/runtime/permissions"
	"sallyport/runtime/plugins"
)

// sdkStream is the official server behind the older transport.
func sdkStream(t *testing.T, wrap func(http.Handler) http.Handler) (url string, server *sdk.Server) {
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
	handler := http.Handler(sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return server }, nil))
	if wrap != nil {
		handler = wrap(handler)
	}
	web := httptest.NewServer(handler)
	t.Cleanup(func() {
		web.CloseClientConnections() // its streams have no end of their own
		web.Close()
	})
	return web.URL + "/sse", server
}

func dialledStream(t *testing.T, url string, o Options) *Conn {
	t.Helper()
	conn, err := DialSSE(url, map[string]string{"X-Key": "k"}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAndWait(t, conn) })
	if _, err := Handshake(t.Context(), conn, "1"); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestAStreamedServerAnswers(t *testing.T) {
	var keys, posts atomic.Int64
	url, _ := sdkStream(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Key") == "k" {
				keys.Add(1)
			}
			if r.Method == http.MethodPost {
				posts.Add(1)
			}
			h.ServeHTTP(w, r)
		})
	})
	conn := dialledStream(t, url, Options{})
	for range 5 {
		result, err := callTool(t.Context(), conn, "echo", `{"z":1,"a":9007199254740993}`)
		if err != nil || !strings.Contains(string(result), `9007199254740993`) {
			t.Fatalf("%s, %v", result, err)
		}
	}
	up := agent(nil)
	params := `{"name":"echo","arguments":{},"_meta":{"progressToken":"mine"}}`
	if _, err := conn.Call(t.Context(), "tools/call", json.RawMessage(params), up); err != nil || len(up.seen()) != 3 || !strings.Contains(up.seen()[0], `"mine"`) {
		t.Fatal(up.seen(), err)
	}
	closeAndWait(t, conn)
	if posts.Load() < 8 || keys.Load() != posts.Load()+1 { // the stream too
		t.Fatalf("%d keys, %d posts", keys.Load(), posts.Load())
	}
}

func TestAStreamedServersQuestionsCancellationsAndChanges(t *testing.T) {
	heard := make(chan string, 16)
	url, server := sdkStream(t, nil)
	server.AddTool(&sdk.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}},
		func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			roots, err := r.Session.ListRoots(ctx, nil)
			if err != nil {
				return nil, err
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: roots.Roots[0].URI}}}, nil
		})
	begun, cancelled := make(chan struct{}), make(chan struct{})
	server.AddTool(&sdk.Tool{Name: "wait", InputSchema: map[string]any{"type": "object"}},
		func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			close(begun)
			select {
			case <-ctx.Done():
				close(cancelled)
			case <-t.Context().Done():
			}
			return nil, ctx.Err()
		})
	conn := dialledStream(t, url, Options{Notification: func(method string, _ json.RawMessage) { heard <- method }})
	up := agent(map[string]func(context.Context, json.RawMessage) (json.RawMessage, error){
		"roots/list": func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"roots":[{"uri":"file:///here"}]}`), nil
		},
	})
	if result, err := conn.Call(t.Context(), "tools/call", args("ask", "{}"), up); err != nil || !strings.Contains(string(result), "file:///here") {
		t.Fatalf("%s, %v", result, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if _, err := callTool(ctx, conn, "wait", "{}"); err == nil {
		t.Fatal("it answered")
	}
	select {
	case <-cancelled:
	case <-time.After(5 * time.Second):
		t.Fatal("the server was not told")
	}
	server.AddTool(&sdk.Tool{Name: "new", InputSchema: map[string]any{"type": "object"}}, nil)
	select {
	case got := <-heard:
		if got != "notifications/tools/list_changed" {
			t.Fatal(got)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("the change was not heard")
	}
}

// scripted answers a stream with text as it is, keeps it open until the client
// goes, and answers each message with a status.
func scripted(t *testing.T, text string, status int) (url string, posts *atomic.Int64) {
	t.Helper()
	posts = new(atomic.Int64)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			posts.Add(1)
			w.WriteHeader(status)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, text)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	return web.URL + "/sse", posts
}

func TestAStreamedServersFaults(t *testing.T) {
	const here = "event: endpoint\ndata: /messages?session=1\n\n"
	for _, row := range []struct {
		name, text string
		status     int
		code       string
		posts      int64
	}{
		{"an address on another host", "event: endpoint\ndata: http://127.0.0.2:1/messages\n\n", 202, "endpoint-cross-origin", 0},
		{"an address on another port", "event: endpoint\ndata: http://127.0.0.1:1/messages\n\n", 202, "endpoint-cross-origin", 0},
		{"an address without its scheme", "event: endpoint\ndata: //127.0.0.2/messages\n\n", 202, "endpoint-cross-origin", 0},
		{"an address over another scheme", "event: endpoint\ndata: https://127.0.0.1/messages\n\n", 202, "endpoint-cross-origin", 0},
		{"an address with a password", "event: endpoint\ndata: http://u:p@HOST/messages\n\n", 202, "endpoint-cross-origin", 0},
		{"an address of no host", "event: endpoint\ndata: javascript:alert(1)\n\n", 202, "endpoint-cross-origin", 0},
		{"an address that is none", "event: endpoint\ndata: http://[/\n\n", 202, InvalidMessage, 0},
		{"an address without end", "event: endpoint\ndata: /" + strings.Repeat("x", 5000) + "\n\n", 202, InvalidMessage, 0},
		{"a message before the address", "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n", 202, InvalidMessage, 0},
		{"a line without end", "event: endpoint\ndata: " + strings.Repeat("x", 20000), 202, FrameTooLarge, 0},
		{"an event without end", "event: endpoint\n" + strings.Repeat("data: "+strings.Repeat("x", 100)+"\n", 200), 202, FrameTooLarge, 0},
		{"a message without end", here + "data: " + strings.Repeat("x", 20000), 202, FrameTooLarge, -1},
		{"bad JSON", here + "data: {\n\n", 202, MalformedJSON, -1},
		{"a message that is refused", here, 500, "http-status", 1},
		{"a message that is sent elsewhere", here, 307, "http-status", 1},
		{"a session that is gone", here, 404, TransportClosed, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			url, posts := scripted(t, row.text, row.status)
			conn, err := DialSSE(url, map[string]string{"Authorization": "hush"}, Options{MaxFrame: 10000})
			if err != nil {
				t.Fatal(err)
			}
			defer closeAndWait(t, conn)
			if _, err := conn.Call(t.Context(), "ping", nil, nil); coded.Of(err) != row.code {
				t.Fatalf("got %v, want %s", err, row.code)
			}
			if got := posts.Load(); row.posts >= 0 && got != row.posts {
				t.Errorf("%d messages were posted", got)
			}
		})
	}
}

func TestAStreamThatDoesNotOpen(t *testing.T) {
	for _, row := range []struct {
		name    string
		code    string
		handler http.HandlerFunc
	}{
		{"it ends without an address", TransportClosed, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, ": hello\n\n")
		}},
		{"it is no stream", InvalidMessage, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }},
		{"it leads elsewhere", "http-status", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/other", http.StatusTemporaryRedirect)
		}},
		{"it is refused", "http-status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }},
		{"it is not there", TransportClosed, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			web := httptest.NewServer(row.handler)
			defer web.Close()
			conn, err := DialSSE(web.URL, nil, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer closeAndWait(t, conn)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if _, err := Handshake(ctx, conn, "1"); coded.Of(err) != row.code {
				t.Fatalf("got %v, want %s", err, row.code)
			}
		})
	}
}

// A server that never names an address is waited for as long as a start may take.
func TestAStreamWithoutAnAddressIsGivenUp(t *testing.T) {
	url, posts := scripted(t, ": hello\n", 202)
	conn, err := DialSSE(url, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeAndWait(t, conn)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Handshake(ctx, conn, "1"); coded.Of(err) != "start-timeout" || posts.Load() != 0 {
		t.Fatal(err, posts.Load())
	}
}

func TestAStreamThatEndsFailsTheCallsInFlight(t *testing.T) {
	release := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusAccepted)
			close(release)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: endpoint\ndata: messages\n\n")
		w.(http.Flusher).Flush()
		<-release
	}))
	defer web.Close()
	conn, err := DialSSE(web.URL, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeAndWait(t, conn)
	if _, err := conn.Call(t.Context(), "ping", nil, nil); coded.Of(err) != TransportClosed {
		t.Fatal(err)
	}
}

func TestAStreamIsDialledAsPermitted(t *testing.T) {
	w := &wires{answers: [][]string{{"10.0.0.7"}}}
	conn, err := DialSSE("https://api.example.com/sse", nil, Options{Network: w.network()})
	if err != nil {
		t.Fatal(err)
	}
	defer closeAndWait(t, conn)
	if _, err := Handshake(t.Context(), conn, "1"); coded.Of(err) != "permission-denied" || len(w.seen()) != 0 {
		t.Fatal(err, w.seen())
	}
	granted, err := DialSSE("https://api.example.com/sse", nil, Options{Network: w.network(), Allowed: permissions.Set{Net: []string{"api.example.com"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer closeAndWait(t, granted)
	want := netip.MustParseAddrPort("10.0.0.7:443").String()
	if _, err := Handshake(t.Context(), granted, "1"); coded.Of(err) != TransportClosed || len(w.seen()) != 1 || w.seen()[0] != want {
		t.Fatal(err, w.seen())
	}
}

func TestAPoolDialsTheOlderTransport(t *testing.T) {
	url, _ := sdkStream(t, nil)
	p, _ := newTestPool(t, "polite", Config{})
	pass, _ := newPass(demo, plugins.SSE, url)
	offer, err := p.probe(t.Context(), pass, nil)
	if err != nil || len(offer.Tools) != 1 {
		t.Fatalf("%+v, %v", offer, err)
	}
}

// FuzzStream: whatever a stream holds, it ends in one of the known ways and nothing
// is posted to another place than the server's own.
func FuzzStream(f *testing.F) {
	f.Add("event: endpoint\ndata: /messages\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n")
	f.Add("event: endpoint\ndata: http://evil.example/\n\n")
	f.Add("data\n\nevent\n\n:\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		inner, err := newEndpoint("https://api.example.com/sse", nil, Options{MaxFrame: 1000})
		if err != nil {
			t.Fatal(err)
		}
		inner.conn = newConn(Options{})
		s := &eventStream{endpoint: inner, opened: make(chan struct{})}
		if err := s.events(strings.NewReader(text), s.event); err == nil {
			t.Fatal("it has no end")
		}
		if s.to != "" && !strings.HasPrefix(s.to, "https://api.example.com/") && s.to != "https://api.example.com" && !strings.HasPrefix(s.to, "https://api.example.com?") {
			t.Fatal(s.to)
		}
	})
}
