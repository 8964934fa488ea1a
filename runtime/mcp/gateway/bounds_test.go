package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestEqualIDsAndTokensStayApart(t *testing.T) {
	r := newRig(t, Limits{})
	const clients = 8
	for i := range clients {
		r.fake.set(fmt.Sprint("c", i), Catalog{Connectors: []Exposed{offer(demo, "echo")}})
	}
	r.fake.tools["echo"] = func(_ context.Context, params json.RawMessage, up Upstream) (json.RawMessage, error) {
		args, _ := lookup(params, "arguments")
		who, _ := lookup(args, "who")
		up.Notify("notifications/progress", json.RawMessage(`{"progressToken":1,"message":`+string(who)+`}`))
		return json.RawMessage(`{"who":` + string(who) + `}`), nil
	}
	var all sync.WaitGroup
	for i := range clients {
		client := fmt.Sprint("c", i)
		session := r.open(client, "{}")
		all.Go(func() {
			for range 30 {
				got := r.send("POST", request("1", "tools/call", `{"name":"demo__main__echo","arguments":{"who":"`+client+`"},"_meta":{"progressToken":1}}`), session)
				if m := got.messages(); len(m) != 2 || !strings.Contains(m[0], `"`+client+`"`) || m[1] != `{"jsonrpc":"2.0","id":1,"result":{"who":"`+client+`"}}` {
					t.Errorf("%s: %q", client, m)
				}
			}
		})
	}
	all.Wait()
}

func TestAnIDInFlightCannotBeUsedAgain(t *testing.T) {
	r := newRig(t, Limits{InFlight: 2})
	release := make(chan struct{})
	began := make(chan struct{}, 2)
	r.fake.tools["echo"] = func(context.Context, json.RawMessage, Upstream) (json.RawMessage, error) {
		began <- struct{}{}
		<-release
		return json.RawMessage(`{}`), nil
	}
	session := r.open("agent", "{}")
	var all sync.WaitGroup
	all.Go(func() { r.send("POST", request("1", "tools/call", echoParams), session) })
	<-began
	if got := r.send("POST", request("1", "ping", "{}"), session); got.status != 400 || !strings.Contains(got.body, "-32600") {
		t.Error(got.body)
	}
	all.Go(func() { r.send("POST", request(`"1"`, "tools/call", echoParams), session) })
	<-began
	if got := r.send("POST", request("2", "ping", "{}"), session); !strings.Contains(got.body, "too-many-requests") {
		t.Error(got.body)
	}
	body, with := modern("1", "tools/call", echoParams, "{}")
	for range 2 {
		all.Go(func() { r.send("POST", body, with) })
		<-began
	}
	if got := r.send("POST", body, with); got.status != 429 || !strings.Contains(got.body, "too-many-requests") {
		t.Error(got.status, got.body)
	}
	close(release)
	all.Wait()
}

func TestACallOfAToolThatIsNotShownIsRefusedAndRecorded(t *testing.T) {
	r := newRig(t, Limits{})
	r.fake.set("agent", Catalog{Connectors: []Exposed{offer(demo, "echo")}})
	r.fake.set("another", Catalog{Connectors: []Exposed{offer(demo, "echo", "hidden")}})
	session := r.open("agent", "{}")
	var said [2]string
	for i, name := range []string{"demo__main__hidden", "demo__main__nothing"} {
		got := r.send("POST", request("1", "tools/call", `{"name":"`+name+`"}`), session).body
		if !strings.Contains(got, `"code":"permission-denied"`) {
			t.Error(got)
		}
		said[i] = strings.ReplaceAll(got, name, "NAME")
	}
	if said[0] != said[1] {
		t.Errorf("an agent can tell them apart: %q", said)
	}
	r.fake.mu.Lock()
	defer r.fake.mu.Unlock()
	if !slices.Equal(r.fake.unknown, []string{"agent", "agent"}) {
		t.Errorf("the backend was told of %q", r.fake.unknown)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	r := newRig(t, Limits{Sessions: 2})
	first, second := r.open("agent", "{}"), r.open("agent", "{}")
	r.send("POST", request("1", "ping", "{}"), first)
	third := r.open("agent", "{}")
	for _, row := range []struct {
		session headers
		status  int
	}{{first, 200}, {second, 404}, {third, 200}} {
		if got := r.send("POST", request("1", "ping", "{}"), row.session); got.status != row.status {
			t.Errorf("%d, want %d: the one idle for longest makes room", got.status, row.status)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.stream(ctx, "GET", "", first)
	r.stream(ctx, "GET", "", third)
	got := r.send("POST", request("1", "initialize", `{"protocolVersion":"2025-11-25"}`), nil)
	if got.status != 503 || !strings.Contains(got.body, "session-limit") {
		t.Errorf("all are in use: %d %s", got.status, got.body)
	}
	r.open("another", "{}")
}

func TestIdleSessionsEnd(t *testing.T) {
	r := newRig(t, Limits{})
	idle, used := r.open("agent", "{}"), r.open("agent", "{}")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.stream(ctx, "GET", "", used)
	r.gateway.sweep(time.Now().Add(2 * time.Hour))
	if got := r.send("POST", request("1", "ping", "{}"), idle); got.status != 404 {
		t.Error(got.status)
	}
	if got := r.send("POST", request("1", "ping", "{}"), used); got.status != 200 {
		t.Error("a session with an open stream ended")
	}
}

func TestWhatARemovedClientHasOpenEnds(t *testing.T) {
	r := newRig(t, Limits{})
	r.fake.set("another", Catalog{Connectors: []Exposed{offer(demo, "echo")}})
	removed, stays := r.open("agent", "{}"), r.open("another", "{}")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	get := r.stream(ctx, "GET", "", removed)
	body, with := modern("1", "subscriptions/listen", `{"notifications":{"toolsListChanged":true}}`, "{}")
	listening := r.stream(ctx, "POST", body, with)
	listening.next() // that it is acknowledged
	here, there := net.Pipe()
	defer here.Close()
	served := make(chan error, 1)
	go func() { served <- r.gateway.ServeStream(ctx, ClientInfo{Name: "agent"}, there) }()
	eventually(t, "all of it is open", func() bool {
		r.gateway.mu.Lock()
		defer r.gateway.mu.Unlock()
		return len(r.gateway.streams) == 1 && len(r.gateway.listeners) == 1
	})
	r.gateway.Forget("agent", "the client was removed")
	if err := <-served; err == nil || !strings.Contains(err.Error(), "removed") {
		t.Error("the stream:", err)
	}
	for name, stream := range map[string]*events{"the session's stream": get, "the listener": listening} {
		if _, err := io.Copy(io.Discard, stream.response.Body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, row := range []struct {
		session headers
		status  int
	}{{removed, 404}, {stays, 200}} {
		if got := r.send("POST", request("2", "ping", "{}"), row.session); got.status != row.status {
			t.Errorf("%d, want %d", got.status, row.status)
		}
	}
}

func TestACallOfAnAgentThatLeftDoesNotKeepItsSession(t *testing.T) {
	r := newRig(t, Limits{})
	began, ended := make(chan struct{}), make(chan error, 1)
	r.fake.tools["echo"] = func(ctx context.Context, _ json.RawMessage, _ Upstream) (json.RawMessage, error) {
		close(began)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}
	session := r.open("agent", "{}")
	ctx, leave := context.WithCancel(context.Background())
	go func() {
		if response, err := r.do(ctx, "POST", request("1", "tools/call", echoParams), session); err == nil {
			response.Body.Close()
		}
	}()
	<-began
	later := time.Now().Add(2 * time.Hour)
	r.gateway.sweep(later)
	select {
	case <-ended:
		t.Fatal("a call that somebody waits for was ended")
	default:
	}
	leave()
	eventually(t, "the session ends with its call", func() bool {
		r.gateway.sweep(later)
		return len(ended) == 1
	})
}

// unread is a connection that sends a request and reads nothing.
func (r *rig) unread(body string, with headers) {
	r.t.Helper()
	address := strings.TrimPrefix(r.url, "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	_ = conn.(*net.TCPConn).SetReadBuffer(4096)
	request, _ := http.NewRequest("POST", r.url, bytes.NewBufferString(body))
	request.Header.Set("Content-Type", jsonType)
	request.Header.Set("Accept", jsonType+", "+eventType)
	for key, value := range with {
		request.Header.Set(key, value)
	}
	if err := request.Write(conn); err != nil {
		r.t.Fatal(err)
	}
}

func TestASlowReaderHoldsUpNobody(t *testing.T) {
	r := newRig(t, Limits{Bytes: 1 << 20, Messages: 1 << 20, WriteTime: 20 * time.Second})
	ended := make(chan error, 1)
	longest := time.Duration(0)
	r.fake.tools["flood"] = func(ctx context.Context, _ json.RawMessage, up Upstream) (json.RawMessage, error) {
		filler := strings.Repeat("x", 64<<10)
		for i := 0; ctx.Err() == nil && i < 10_000; i++ {
			began := time.Now()
			up.Notify("notifications/progress", json.RawMessage(`{"message":"`+filler+`"}`))
			longest = max(longest, time.Since(began))
		}
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	}
	r.fake.set("agent", Catalog{Connectors: []Exposed{offer(demo, "echo", "flood")}})
	session := r.open("agent", "{}")
	r.unread(request("1", "tools/call", `{"name":"demo__main__flood","_meta":{"progressToken":1}}`), session)
	for range 20 {
		if got := r.send("POST", request("2", "tools/call", echoParams), session); got.status != 200 {
			t.Error(got.status)
		}
	}
	select {
	case cause := <-ended:
		if cause != error(errGone) {
			t.Error(cause)
		}
	case <-time.After(15 * time.Second):
		t.Fatal("the flood never ended")
	}
	if longest > time.Second {
		t.Errorf("a notification waited for the reader: %s", longest)
	}
	eventually(t, "the request is over", func() bool {
		return r.gateway.find("agent", session[sessionHeader]).idle()
	})
}

// Agents give up when nothing at all comes for minutes: a long call says that it
// is alive.
func TestALongCallKeepsItsConnection(t *testing.T) {
	r := newRig(t, Limits{KeepAlive: 10 * time.Millisecond})
	release := make(chan struct{})
	r.fake.tools["echo"] = func(context.Context, json.RawMessage, Upstream) (json.RawMessage, error) {
		<-release
		return json.RawMessage(`{}`), nil
	}
	body, with := modern("1", "tools/call", echoParams, "{}")
	for _, try := range []struct {
		body string
		with headers
	}{{request("1", "tools/call", echoParams), r.open("agent", "{}")}, {body, with}} {
		stream := r.stream(context.Background(), "POST", try.body, try.with) // the head came
		for comments := 0; comments < 3 && stream.lines.Scan(); {
			if stream.lines.Text() == ": " {
				comments++
			}
		}
		release <- struct{}{}
		if got := stream.next(); !strings.Contains(got, `"result":{`) {
			t.Error(got)
		}
	}
}

// The deadline of one write must not fail a later answer on the same connection.
func TestAnOldDeadlineDoesNotOutliveItsAnswer(t *testing.T) {
	r := newRig(t, Limits{WriteTime: 50 * time.Millisecond})
	r.fake.tools["echo"] = func(_ context.Context, _ json.RawMessage, up Upstream) (json.RawMessage, error) {
		up.Notify("notifications/progress", json.RawMessage(`{}`))
		return json.RawMessage(`{"x":"` + strings.Repeat("x", 100_000) + `"}`), nil
	}
	session := r.open("agent", "{}")
	for _, params := range []string{echoParams, `{"name":"demo__main__echo","_meta":{"progressToken":1}}`} {
		if got := r.send("POST", request("1", "tools/call", params), session); got.status != 200 {
			t.Error(got.status)
		}
		time.Sleep(80 * time.Millisecond) // longer than the deadline that was set
		if got := r.send("POST", request("1", "ping", "{}"), session); got.status != 200 {
			t.Error(got.status)
		}
	}
}

func TestLineBreaksInsideOfMessagesAreSpaces(t *testing.T) {
	r := newRig(t, Limits{})
	r.fake.tools["echo"] = func(_ context.Context, params json.RawMessage, up Upstream) (json.RawMessage, error) {
		if bytes.ContainsAny(params, "\r\n") {
			t.Errorf("a line break reached the server: %q", params)
		}
		up.Notify("notifications/progress", json.RawMessage("{\r\n\"progress\":1}"))
		return json.RawMessage("{\r\"a\":\n\"\\r\\n\"\n}"), nil
	}
	session := r.open("agent", "{}")
	got := r.send("POST", request("1", "tools/call", "{\r\n\"name\":\"demo__main__echo\",\"arguments\":{\"t\":\"\\n\"},\n\"_meta\":{\"progressToken\":1}}"), session)
	messages := got.messages()
	if len(messages) != 2 || messages[1] != `{"jsonrpc":"2.0","id":1,"result":{ "a": "\r\n" }}` {
		t.Errorf("%q", got.body)
	}
}

func TestClosingEndsEverything(t *testing.T) {
	r := newRig(t, Limits{})
	began := make(chan struct{}, 2)
	r.fake.tools["echo"] = func(ctx context.Context, _ json.RawMessage, _ Upstream) (json.RawMessage, error) {
		began <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	session := r.open("agent", "{}")
	standing := r.stream(context.Background(), "GET", "", session)
	listen, with := modern("1", "subscriptions/listen", `{"notifications":{"toolsListChanged":true}}`, "{}")
	listening := r.stream(context.Background(), "POST", listen, with)
	listening.next()
	var all sync.WaitGroup
	all.Go(func() { r.send("POST", request("1", "tools/call", echoParams), session) })
	body, with := modern("1", "tools/call", echoParams, "{}")
	all.Go(func() { r.send("POST", body, with) })
	<-began
	<-began
	r.gateway.Close()
	all.Wait()
	if got := standing.next(); got != "" {
		t.Error(got)
	}
	if got := listening.next(); !strings.Contains(got, `"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1}}`) {
		t.Errorf("the subscription did not end with its result: %s", got)
	}
	if got := r.send("POST", request("1", "ping", "{}"), session); got.status != 503 {
		t.Error(got.status)
	}
}
