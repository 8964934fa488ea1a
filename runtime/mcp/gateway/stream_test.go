package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"sallyport/runtime/plugins"
)

// line is an agent at the other end of a stream.
type line struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
	done chan error
}

func newLine(t *testing.T, limits Limits) (*line, *fake, *Gateway) {
	t.Helper()
	f := newFake()
	f.set("agent", Catalog{Connectors: []Exposed{offer(demo, "echo")}})
	g := New(Config{Backend: f, Version: "1", Limits: limits})
	here, there := net.Pipe()
	l := &line{t: t, conn: here, in: bufio.NewReaderSize(here, 1<<20), done: make(chan error, 1)}
	go func() { l.done <- g.ServeStream(context.Background(), ClientInfo{Name: "agent"}, there) }()
	t.Cleanup(func() {
		here.Close()
		g.Close()
	})
	_ = here.SetDeadline(time.Now().Add(20 * time.Second))
	return l, f, g
}

func (l *line) send(text string) {
	l.t.Helper()
	if _, err := l.conn.Write([]byte(text + "\n")); err != nil {
		l.t.Fatal(err)
	}
}

func (l *line) next() string {
	l.t.Helper()
	text, err := l.in.ReadString('\n')
	if err != nil {
		l.t.Fatal(err)
	}
	return strings.TrimSuffix(text, "\n")
}

func (l *line) ask(text, want string) {
	l.t.Helper()
	l.send(text)
	if got := l.next(); !strings.Contains(got, want) {
		l.t.Errorf("%.200s\ngot  %s\nwant %s", text, got, want)
	}
}

func (l *line) initialize(caps string) {
	l.t.Helper()
	l.ask(request("0", "initialize", `{"protocolVersion":"2025-06-18","capabilities":`+caps+`}`), `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18",`)
	l.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func TestAStreamServesBothGenerations(t *testing.T) {
	l, f, _ := newLine(t, Limits{})
	l.ask(request("1", "tools/list", "{}"), "-32600")
	l.ask(request("1", "ping", "{}"), `{"jsonrpc":"2.0","id":1,"result":{}}`)
	l.initialize("{}")
	result := `{"n":9007199254740993,"e":"\u00e9","t":"<>&"}`
	f.tools["echo"] = func(context.Context, json.RawMessage, Upstream) (json.RawMessage, error) {
		return json.RawMessage(result), nil
	}
	for _, id := range []string{`"init-1"`, `"1"`, `0`, `-5`, `9007199254740993`} {
		l.ask(request(id, "tools/call", echoParams), `{"jsonrpc":"2.0","id":`+id+`,"result":`+result+`}`)
	}
	body, _ := modern(`"m"`, "tools/call", echoParams, "{}")
	l.ask(body, `{"jsonrpc":"2.0","id":"m","result":{"resultType":"complete",`+result[1:]+`}`)
	l.ask(request("1", "server/discover", "{}"), "-32602")
	body, _ = modern("1", "server/discover", "{}", "{}")
	l.ask(body, `"supportedVersions":["2026-07-28",`)
	l.ask(request("1", "initialize", `{"protocolVersion":"2025-06-18"}`), "-32600")
	l.conn.Close()
	if err := <-l.done; err != nil {
		t.Error(err)
	}
}

func TestAStreamSurvivesWhatIsNoMessage(t *testing.T) {
	l, f, _ := newLine(t, Limits{})
	l.initialize("{}")
	for text, want := range map[string]string{
		"[" + request("2", "tools/call", echoParams) + "," + request("3", "ping", "{}") + "]": `"id":null,"error":{"code":-32600`,
		"[]": "-32600", "42": "-32600", `{"jsonrpc":"1.0","id":4,"method":"ping"}`: `"id":4,"error":{"code":-32600`,
		`{"id":5,"method":"ping"}`: `"id":5,"error":{"code":-32600`, "{": "-32700", "\x00": "-32700", "\xff\xfe": "-32700", "hello": "-32700",
		`{"jsonrpc":"2.0","id":6,"method":"ping"} x`: "-32700",
	} {
		l.ask(text, want)
		l.ask(request("1", "ping", "{}")+"\r", `{"jsonrpc":"2.0","id":1,"result":{}}`)
	}
	l.send("\r\n\r\n")
	l.ask("\xef\xbb\xbf"+request("1", "ping", "{}"), `"result":{}`)
	if asked := f.asked(); len(asked) != 0 {
		t.Errorf("something in a refused batch ran: %v", asked)
	}
}

func TestAMessageOverTheLimitEndsTheStream(t *testing.T) {
	l, _, _ := newLine(t, Limits{Body: 1000})
	go func() { _, _ = l.conn.Write([]byte(strings.Repeat("x", 2000))) }()
	if got := l.next(); !strings.Contains(got, "-32600") {
		t.Error(got)
	}
	if err := <-l.done; err == nil {
		t.Error("no error")
	}
}

func TestQuestionsProgressAndCancellationOnAStream(t *testing.T) {
	l, f, _ := newLine(t, Limits{})
	l.initialize(`{"roots":{}}`)
	f.tools["echo"] = func(ctx context.Context, _ json.RawMessage, up Upstream) (json.RawMessage, error) {
		up.Notify("notifications/progress", json.RawMessage(`{"progress":1}`))
		return up.Request(ctx, "roots/list", nil)
	}
	l.send(request("7", "tools/call", `{"name":"demo__main__echo","_meta":{"progressToken":"p"}}`))
	if got := l.next(); got != `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}` {
		t.Error(got)
	}
	if got := l.next(); got != `{"jsonrpc":"2.0","id":1,"method":"roots/list"}` {
		t.Error(got)
	}
	l.ask(request("1", "ping", "{}"), `{"jsonrpc":"2.0","id":1,"result":{}}`) // our id 1 and theirs are apart
	l.ask(`{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`, `{"jsonrpc":"2.0","id":7,"result":{"roots":[]}}`)
	// A second answer is dropped.
	l.send(`{"jsonrpc":"2.0","id":1,"result":{"roots":[2]}}`)

	l.send(request(`"c"`, "tools/call", echoParams))
	if got := l.next(); got != `{"jsonrpc":"2.0","id":2,"method":"roots/list"}` {
		t.Error(got)
	}
	l.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}`)
	if got := l.next(); got != `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}` {
		t.Error(got)
	}
	l.ask(request("9", "ping", "{}"), `"id":9`)

	// The newer generation asks by its result, on a stream too.
	body, _ := modern("20", "tools/call", echoParams, allCaps)
	l.send(body)
	asked := []byte(l.next())
	result, _ := lookup(asked, "result")
	if text(result, "resultType") != "input_required" {
		t.Fatalf("%s", asked)
	}
	body, _ = retry("21", echoParams, `{"roots-list-1":{"roots":[3]}}`, text(result, "requestState"))
	l.ask(body, `{"jsonrpc":"2.0","id":21,"result":{"resultType":"complete","roots":[3]}}`)
}

func TestListeningOnAStream(t *testing.T) {
	l, f, g := newLine(t, Limits{ChangeTime: 5 * time.Millisecond})
	body, _ := modern("5", "subscriptions/listen", `{"notifications":{"toolsListChanged":true}}`, "{}")
	l.ask(body, `"method":"notifications/subscriptions/acknowledged"`)
	eventually(t, "listening", func() bool { g.mu.Lock(); defer g.mu.Unlock(); return len(g.listeners) == 1 })
	f.event(Event{Kind: ToolsChanged, Connector: demo})
	if got := l.next(); got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":5}}}` {
		t.Error(got)
	}
	l.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
	eventually(t, "not listening", func() bool { g.mu.Lock(); defer g.mu.Unlock(); return len(g.listeners) == 0 })
	l.initialize("{}")
	f.event(Event{Kind: ToolsChanged, Connector: plugins.ID{Plugin: "x", Server: "y"}})
	f.event(Event{Kind: PromptsChanged, Connector: demo})
	if got := l.next(); got != `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}` {
		t.Error(got)
	}
}

func TestTheEndOfAStreamEndsWhatIsInFlight(t *testing.T) {
	l, f, g := newLine(t, Limits{})
	l.initialize("{}")
	began, ended := make(chan struct{}, 2), make(chan struct{}, 2)
	f.tools["echo"] = func(ctx context.Context, _ json.RawMessage, up Upstream) (json.RawMessage, error) {
		began <- struct{}{}
		if up.Supports("roots/list") {
			_, _ = up.Request(ctx, "roots/list", nil)
		}
		<-ctx.Done()
		ended <- struct{}{}
		return nil, ctx.Err()
	}
	l.send(request("1", "tools/call", echoParams))
	body, _ := modern("2", "tools/call", echoParams, allCaps)
	l.ask(body, "input_required")
	<-began
	<-began
	l.conn.Close()
	<-ended
	<-ended
	<-l.done
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.streams)+len(g.parked) != 0 {
		t.Error("something of the stream is left")
	}
}

func TestASlowStreamIsGivenUp(t *testing.T) {
	l, f, _ := newLine(t, Limits{Messages: 100})
	l.initialize("{}")
	f.tools["echo"] = func(ctx context.Context, _ json.RawMessage, up Upstream) (json.RawMessage, error) {
		for i := range 200 {
			up.Notify("notifications/progress", json.RawMessage(fmt.Sprintf(`{"progress":%d}`, i)))
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	l.send(request("1", "tools/call", `{"name":"demo__main__echo","_meta":{"progressToken":1}}`))
	if err := <-l.done; err == nil || !strings.Contains(err.Error(), "does not read") {
		t.Error(err)
	}
}

func TestAnAgentThatAsksAndDoesNotReadIsNotRead(t *testing.T) {
	const limit, enough = 4, 100
	l, _, g := newLine(t, Limits{InFlight: limit})
	l.initialize("{}")
	served := func() bool { // all that was taken, but for writing the answers
		g.mu.Lock()
		defer g.mu.Unlock()
		for s := range g.streams {
			s.mu.Lock()
			idle := len(s.calls) == 0
			s.mu.Unlock()
			return idle
		}
		return false
	}
	_ = l.conn.SetWriteDeadline(time.Now().Add(2 * time.Second))
	for i := range enough {
		_, err := l.conn.Write([]byte(request(strconv.Itoa(i+1), "tools/list", "{}") + "\n"))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			l.next() // and once it reads, it is served
			return
		}
		eventually(t, "the request to be served", served)
	}
	t.Errorf("%d requests were taken, and no answer was read", enough)
}
