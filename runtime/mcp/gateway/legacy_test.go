package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/mcp"
	"sallyport/runtime/plugins"
)

func request(id, method, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`
}

const echoParams = `{"name":"demo__main__echo","arguments":{}}`

func TestACallPassesByteForByte(t *testing.T) {
	r := newRig(t, Limits{})
	result := `{"structuredContent":{"n":9007199254740993,"big":1e400,"e":"\u00e9","t":"<>&","z":1,"a":-0.0},"content":[]}`
	r.fake.tools["echo"] = func(context.Context, json.RawMessage, Upstream) (json.RawMessage, error) {
		return json.RawMessage(result), nil
	}
	params := `{ "z":9007199254740993,"name":"demo__main__echo" , "arguments":{"b":1e400,"a":"\u00e9<>&\u0000"},"_meta":{"x":1}}`
	session := r.open("agent", "{}")
	for _, id := range []string{`"init-1"`, `"1"`, `0`, `-5`, `9007199254740993`, `1.50`, `"\u0041"`} {
		answer := r.send("POST", request(id, "tools/call", params), session)
		if want := `{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`; answer.body != want || answer.status != 200 {
			t.Errorf("%d %s\nwant %s", answer.status, answer.body, want)
		}
		if kind := answer.header.Get("Content-Type"); kind != jsonType {
			t.Errorf("nothing came before the result, and it is %s", kind)
		}
	}
	want := "demo/main echo " + strings.Replace(params, "demo__main__echo", "echo", 1)
	for _, seen := range r.fake.asked() {
		if seen != want {
			t.Errorf("the server got %s\nwant %s", seen, want)
		}
	}
}

func TestResultsThatDisagreeWithASchemaPass(t *testing.T) {
	r := newRig(t, Limits{})
	session := r.open("agent", "{}")
	for _, result := range []string{`{"content":[{"type":"text","text":"only text"}]}`, `{"isError":true,"structuredContent":{"x":1}}`, `{"structuredContent":"text"}`, `[]`, `"x"`, `null`} {
		r.fake.tools["echo"] = func(context.Context, json.RawMessage, Upstream) (json.RawMessage, error) {
			return json.RawMessage(result), nil
		}
		if got := r.send("POST", request("1", "tools/call", echoParams), session).body; got != `{"jsonrpc":"2.0","id":1,"result":`+result+`}` {
			t.Error(got)
		}
	}
}

func TestListsShowTheServersOwnBytes(t *testing.T) {
	r := newRig(t, Limits{Page: 2})
	definition := `{ "inputSchema":{"type":"object","x":9007199254740993,"properties":{"p":true}},"name":"echo","z":1e400,"d":"\u00e9<>&"}`
	e := Exposed{ID: demo, Tools: []Tool{{"echo", json.RawMessage(definition)}}}
	for i := range 4 {
		e.Tools = append(e.Tools, offer(demo, fmt.Sprintf("t%d", i)).Tools...)
	}
	e.Prompts = []json.RawMessage{json.RawMessage(`{"name":"ask","arguments":[]}`)}
	e.Templates = []json.RawMessage{json.RawMessage(`{"uriTemplate":"a://{x}","name":"a"}`)}
	r.fake.set("agent", Catalog{Connectors: []Exposed{e}})
	session := r.open("agent", "{}")

	var shown []string
	cursor := `{}`
	for pages := 0; ; pages++ {
		body := r.send("POST", request("1", "tools/list", cursor), session).body
		result, _ := lookup([]byte(body), "result")
		tools, _ := lookup(result, "tools")
		for _, one := range elements(tools) {
			shown = append(shown, string(one))
		}
		next, more := lookup(result, "nextCursor")
		if !more {
			if pages != 2 {
				t.Errorf("%d pages", pages+1)
			}
			break
		}
		cursor = `{"cursor":` + string(next) + `}`
	}
	if len(shown) != 5 || shown[0] != strings.Replace(definition, `"echo"`, `"demo__main__echo"`, 1) {
		t.Errorf("%q", shown)
	}
	for method, want := range map[string]string{
		"prompts/list":             `{"prompts":[{"name":"demo__main__ask","arguments":[]}]}`,
		"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"a://{x}","name":"a"}]}`,
	} {
		if got := r.send("POST", request("1", method, "{}"), session).body; got != `{"jsonrpc":"2.0","id":1,"result":`+want+`}` {
			t.Error(got)
		}
	}
	if got := r.send("POST", request("1", "tools/list", `{"cursor":"bad"}`), session).body; !strings.Contains(got, "-32602") {
		t.Error(got)
	}
	if len(r.fake.asked()) != 0 {
		t.Errorf("a list of the records asked a server: %v", r.fake.asked())
	}
}

func TestRefusalsAreErrorsWithTheirCode(t *testing.T) {
	r := newRig(t, Limits{})
	session := r.open("agent", "{}")
	for _, row := range []struct {
		what string
		err  error
		want string
	}{
		{"a refusal has its sentence, code and next step",
			fmt.Errorf("wrapped: %w", &coded.Error{Code: "artifact-changed", Sentence: "The files of demo changed after they were approved", Next: "Look at them with sallyport diff demo/main"}),
			`{"code":-32010,"message":"The files of demo changed after they were approved [artifact-changed]. Look at them with sallyport diff demo/main","data":{"code":"artifact-changed","next":"Look at them with sallyport diff demo/main"}}`},
		{"the server's own error passes byte for byte",
			&mcp.RPCError{Raw: json.RawMessage(`{"message":"no\u0021","code":-7,"data":9007199254740993}`)},
			`{"message":"no\u0021","code":-7,"data":9007199254740993}`},
		{"anything else says nothing about its inside",
			errors.New("open /home/someone/secret: no"),
			`{"code":-32603,"message":"Internal error: the request failed inside Sallyport; see its log"}`},
	} {
		r.fake.tools["echo"] = func(context.Context, json.RawMessage, Upstream) (json.RawMessage, error) { return nil, row.err }
		answer := r.send("POST", request(`"a"`, "tools/call", echoParams), session)
		if want := `{"jsonrpc":"2.0","id":"a","error":` + row.want + `}`; answer.body != want || answer.status != 200 {
			t.Errorf("%s: %d\n%s\n%s", row.what, answer.status, answer.body, want)
		}
	}
}

func TestWhatIsNotThereIsNotThere(t *testing.T) {
	r := newRig(t, Limits{})
	other := plugins.ID{Plugin: "other", Server: "s"}
	r.fake.set("second", Catalog{Connectors: []Exposed{offer(other, "secret")}})
	session := r.open("agent", "{}")
	names := map[string]string{}
	for _, name := range []string{"other__s__secret", "other__s__nothing", "secret", ""} {
		answer := r.send("POST", request("1", "tools/call", `{"name":"`+name+`"}`), session)
		names[name] = strings.Replace(answer.body, name, "", 1)
	}
	for name, got := range names {
		if got != names[""] {
			t.Errorf("%q: %s", name, got)
		}
	}
	if !strings.Contains(names[""], `"code":-32602`) || len(r.fake.asked()) != 0 {
		t.Errorf("%s %v", names[""], r.fake.asked())
	}
}

func TestANameOfTwoToolsIsRefusedWithItsCode(t *testing.T) {
	r := newRig(t, Limits{})
	r.fake.set("agent", Catalog{Connectors: []Exposed{offer(demo, "twice", "twice", "once")}})
	session := r.open("agent", "{}")
	if got := r.send("POST", request("1", "tools/list", "{}"), session).body; strings.Contains(got, "twice") || !strings.Contains(got, "once") {
		t.Error(got)
	}
	got := r.send("POST", request("1", "tools/call", `{"name":"demo__main__twice"}`), session).body
	if !strings.Contains(got, `"data":{"code":"name-clash"`) || len(r.fake.asked()) != 0 {
		t.Error(got)
	}
	if problems := r.gateway.Problems(); len(problems) != 2 || problems[0].Client != "agent" || problems[0].Name != "twice" {
		t.Error(problems)
	}
}

func TestAnAmbiguousNameIsRefused(t *testing.T) {
	r := newRig(t, Limits{})
	session := r.open("agent", "{}")
	for _, params := range []string{
		`{"name":"demo__main__echo","name":"x"}`, `{"name":"demo__main__echo","Name":"x"}`,
		`{"name":"demo__main__echo","n\u0061me":"x"}`, `{"name":1}`, `{}`, `{"name":"demo__main__echo","NAM\u0045":"x"}`,
	} {
		if got := r.send("POST", request("1", "tools/call", params), session).body; !strings.Contains(got, `"code":-32602`) {
			t.Errorf("%s: %s", params, got)
		}
	}
	if asked := r.fake.asked(); len(asked) != 0 {
		t.Error(asked)
	}
}

func TestProgressComesInOrderAndUnderTheAgentsToken(t *testing.T) {
	r := newRig(t, Limits{})
	r.fake.tools["echo"] = func(_ context.Context, _ json.RawMessage, up Upstream) (json.RawMessage, error) {
		for i := range 5 {
			up.Notify("notifications/progress", json.RawMessage(fmt.Sprintf(`{"progress":%d,"progressToken":77,"total":5}`, i+1)))
		}
		up.Notify("notifications/made/up", json.RawMessage(`{}`))
		return json.RawMessage(`{}`), nil
	}
	session := r.open("agent", "{}")
	for _, token := range []string{`"t"`, `7`, `9007199254740993`} {
		answer := r.send("POST", request("1", "tools/call", `{"name":"demo__main__echo","_meta":{"progressToken":`+token+`}}`), session)
		messages := answer.messages()
		if len(messages) != 6 || messages[5] != `{"jsonrpc":"2.0","id":1,"result":{}}` {
			t.Fatalf("%q", messages)
		}
		for i, message := range messages[:5] {
			if want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":%d,"progressToken":%s,"total":5}}`, i+1, token); message != want {
				t.Errorf("%s\n%s", message, want)
			}
		}
	}
	if got := r.send("POST", request("1", "tools/call", echoParams), session); got.header.Get("Content-Type") != jsonType {
		t.Errorf("progress without a token reached the agent: %s", got.body)
	}
}

func TestACancellationReachesTheBackendAndIsNotAnswered(t *testing.T) {
	r := newRig(t, Limits{})
	began, ended := make(chan struct{}), make(chan error, 1)
	r.fake.tools["echo"] = func(ctx context.Context, _ json.RawMessage, _ Upstream) (json.RawMessage, error) {
		close(began)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	}
	session := r.open("agent", "{}")
	answer := make(chan got, 1)
	go func() { answer <- r.send("POST", request(`"7"`, "tools/call", echoParams), session) }()
	<-began
	// An equal id in another session, and an equal number, are somebody else's.
	other := r.open("second", "{}")
	for _, with := range []headers{other} {
		r.send("POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}}`, with)
	}
	r.send("POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, session)
	select {
	case <-ended:
		t.Fatal("somebody else's cancellation ended the call")
	case <-time.After(50 * time.Millisecond):
	}
	if got := r.send("POST", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}}`, session); got.status != 202 {
		t.Error(got.status)
	}
	if cause := <-ended; cause != errWithdrawn {
		t.Error(cause)
	}
	if got := <-answer; len(got.messages()) != 0 {
		t.Errorf("a withdrawn request was answered: %q", got.body)
	}
}

// events reads an event stream message by message.
type events struct {
	response *http.Response
	lines    *bufio.Scanner
}

func (r *rig) stream(ctx context.Context, method, body string, with headers) *events {
	r.t.Helper()
	response, err := r.do(ctx, method, body, with)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { response.Body.Close() })
	if kind := response.Header.Get("Content-Type"); response.StatusCode != 200 || kind != eventType {
		raw, _ := io.ReadAll(response.Body)
		r.t.Fatalf("%d %s %s", response.StatusCode, kind, raw)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 16<<20)
	return &events{response, lines}
}

// next returns the next message, "" at the end.
func (e *events) next() string {
	for e.lines.Scan() {
		if data, ok := strings.CutPrefix(e.lines.Text(), "data: "); ok {
			return data
		}
	}
	return ""
}

func TestQuestionsGoToTheAgentOfTheCall(t *testing.T) {
	for method, caps := range map[string]string{
		"sampling/createMessage": `{"sampling":{}}`, "elicitation/create": `{"elicitation":{}}`, "roots/list": `{"roots":{"listChanged":true}}`,
	} {
		t.Run(method, func(t *testing.T) {
			r := newRig(t, Limits{})
			r.fake.tools["echo"] = func(ctx context.Context, _ json.RawMessage, up Upstream) (json.RawMessage, error) {
				return up.Request(ctx, method, json.RawMessage(`{"q":9007199254740993}`))
			}
			session := r.open("agent", caps)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			for round, reply := range []string{`"result":{"a":1e400}`, `"error":{"code":-1,"message":"no","x":1}`} {
				stream := r.stream(ctx, "POST", request("1", "tools/call", echoParams), session)
				question := stream.next()
				id := fmt.Sprint(round + 1)
				if question != `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":{"q":9007199254740993}}` {
					t.Fatal(question)
				}
				// Another client cannot answer, not even with the session's id.
				stolen := headers{"X-Client": "thief", sessionHeader: session[sessionHeader], versionHeader: "2025-11-25"}
				if got := r.send("POST", `{"jsonrpc":"2.0","id":`+id+`,"result":{"stolen":1}}`, stolen); got.status != 404 {
					t.Errorf("another client's answer: %d", got.status)
				}
				r.send("POST", `{"jsonrpc":"2.0","id":"`+id+`","result":{"wrong type":1}}`, session)
				if got := r.send("POST", `{"jsonrpc":"2.0","id":`+id+`,`+reply+`}`, session); got.status != 202 {
					t.Errorf("the answer: %d", got.status)
				}
				if answer := stream.next(); answer != `{"jsonrpc":"2.0","id":1,`+reply+`}` {
					t.Error(answer)
				}
			}
			// Without the capability nobody is asked.
			without := r.open("agent", "{}")
			if got := r.send("POST", request("1", "tools/call", echoParams), without); !strings.Contains(got.body, "-32601") {
				t.Error(got.body)
			}
		})
	}
}

func TestAQuestionToAnAgentThatLeftEnds(t *testing.T) {
	r := newRig(t, Limits{})
	ended := make(chan error, 1)
	r.fake.tools["echo"] = func(ctx context.Context, _ json.RawMessage, up Upstream) (json.RawMessage, error) {
		_, err := up.Request(ctx, "roots/list", nil)
		ended <- err
		return nil, err
	}
	session := r.open("agent", `{"roots":{}}`)
	ctx, leave := context.WithCancel(context.Background())
	stream := r.stream(ctx, "POST", request("1", "tools/call", echoParams), session)
	stream.next()
	leave()
	select {
	case err := <-ended:
		if coded.Of(err) != "client-gone" {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the question is still open")
	}
}

func TestTheEndOfASessionEndsEverythingInIt(t *testing.T) {
	r := newRig(t, Limits{})
	began, ended := make(chan struct{}), make(chan struct{})
	r.fake.tools["echo"] = func(ctx context.Context, _ json.RawMessage, _ Upstream) (json.RawMessage, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}
	session := r.open("agent", "{}")
	stream := r.stream(context.Background(), "GET", "", session)
	answer := make(chan got, 1)
	go func() { answer <- r.send("POST", request("1", "tools/call", echoParams), session) }()
	<-began
	if got := r.send("DELETE", "", headers{"X-Client": "thief", sessionHeader: session[sessionHeader]}); got.status != 404 {
		t.Errorf("another client ended the session: %d", got.status)
	}
	if got := r.send("DELETE", "", session); got.status != 204 {
		t.Error(got.status)
	}
	<-ended
	<-answer
	if last := stream.next(); last != "" {
		t.Error(last)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if got := r.send(method, "", session); got.status != 404 {
			t.Errorf("%s: %d", method, got.status)
		}
	}
	if got := r.send("POST", request("1", "ping", "{}"), session); got.status != 404 {
		t.Error(got.status)
	}
}

func TestLoggingKeepsToTheSessionsLevel(t *testing.T) {
	r := newRig(t, Limits{})
	r.fake.tools["echo"] = func(_ context.Context, _ json.RawMessage, up Upstream) (json.RawMessage, error) {
		for _, level := range levels[1:] {
			up.Notify("notifications/message", json.RawMessage(`{"level":"`+level+`","data":1e400}`))
		}
		return json.RawMessage(`{}`), nil
	}
	quiet, loud := r.open("agent", "{}"), r.open("agent", "{}")
	for level, session := range map[string]headers{"error": quiet, "debug": loud} {
		if got := r.send("POST", request("1", "logging/setLevel", `{"level":"`+level+`"}`), session).body; got != `{"jsonrpc":"2.0","id":1,"result":{}}` {
			t.Error(got)
		}
	}
	for _, row := range []struct {
		session headers
		want    int
	}{{quiet, 4}, {loud, 8}, {r.open("agent", "{}"), 7}} {
		if got := r.send("POST", request("1", "tools/call", echoParams), row.session).messages(); len(got) != row.want+1 {
			t.Errorf("%d messages, want %d", len(got)-1, row.want)
		}
	}
	if got := r.send("POST", request("1", "logging/setLevel", `{"level":"loud"}`), quiet).body; !strings.Contains(got, "-32602") {
		t.Error(got)
	}
}

func TestListChangesReachThoseWhoseListsTheyAre(t *testing.T) {
	r := newRig(t, Limits{ChangeTime: 20 * time.Millisecond})
	other := plugins.ID{Plugin: "other", Server: "s"}
	r.fake.set("second", Catalog{Connectors: []Exposed{offer(other, "x")}})
	mine, theirs := r.open("agent", "{}"), r.open("second", "{}")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	a, b := r.stream(ctx, "GET", "", mine), r.stream(ctx, "GET", "", theirs)
	for range 20 {
		r.fake.event(Event{Kind: ToolsChanged, Connector: demo})
	}
	r.fake.event(Event{Kind: PromptsChanged, Connector: other})
	if got := a.next(); got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` {
		t.Error(got)
	}
	if got := b.next(); got != `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}` {
		t.Errorf("the second client heard of somebody else's connector: %s", got)
	}
	// Access: only what differs for the client is told.
	r.fake.set("agent", Catalog{Connectors: []Exposed{offer(demo, "echo", "more")}})
	r.fake.event(Event{Kind: AccessChanged})
	if got := a.next(); got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` {
		t.Error(got)
	}
	r.fake.event(Event{Kind: ResourcesChanged, Connector: other})
	if got := b.next(); !strings.Contains(got, "resources/list_changed") {
		t.Error(got)
	}
}

func TestAStandingStreamGetsWhatCameBeforeAndCanBeTakenOver(t *testing.T) {
	r := newRig(t, Limits{ChangeTime: time.Millisecond})
	session := r.open("agent", "{}")
	r.send("POST", request("1", "resources/subscribe", `{"uri":"a://"}`), session)
	r.fake.event(Event{Kind: ResourceUpdated, Connector: demo, Params: json.RawMessage(`{"uri":"a://","data":0}`)})
	eventually(t, "kept for later", func() bool {
		s := r.gateway.find("agent", session[sessionHeader])
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.backlog) == 1
	})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	first := r.stream(ctx, "GET", "", session)
	if got := first.next(); !strings.Contains(got, `"data":0`) {
		t.Error(got)
	}
	// The connection of the first may be dead without anyone knowing.
	takeover := headers{"Last-Event-ID": "7"}
	for key, value := range session {
		takeover[key] = value
	}
	second := r.stream(ctx, "GET", "", takeover)
	if got := first.next(); got != "" {
		t.Error(got)
	}
	r.fake.event(Event{Kind: ResourceUpdated, Connector: demo, Params: json.RawMessage(`{"uri":"a://","data":1}`)})
	if got := second.next(); !strings.Contains(got, `"data":1`) {
		t.Error(got)
	}
}
