package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"sallyport/runtime/plugins"
)

const allCaps = `{"sampling":{},"elicitation":{},"roots":{}}`

// retry is the request that brings the answers.
func retry(id, params, responses, state string) (string, headers) {
	params = params[:len(params)-1] + `,"inputResponses":` + responses + `,"requestState":` + string(quote(state)) + `}`
	return modern(id, "tools/call", params, allCaps)
}

func (r *rig) call(body string, with headers) (string, []byte) {
	r.t.Helper()
	answer := r.send("POST", body, with)
	messages := answer.messages()
	last := []byte(messages[len(messages)-1])
	if result, ok := lookup(last, "result"); ok {
		return text(result, "resultType"), result
	}
	failed, _ := lookup(last, "error")
	code, _ := lookup(failed, "code")
	return string(code), failed
}

func TestAQuestionBecomesInputRequiredAndTheCallGoesOn(t *testing.T) {
	r := newRig(t, Limits{})
	calls := 0
	r.fake.tools["echo"] = func(ctx context.Context, _ json.RawMessage, up Upstream) (json.RawMessage, error) {
		calls++
		up.Notify("notifications/progress", json.RawMessage(`{"progress":1,"progressToken":3}`))
		a, err := up.Request(ctx, "elicitation/create", json.RawMessage(`{"q":1e400}`))
		if err != nil {
			return nil, err
		}
		b, err := up.Request(ctx, "sampling/createMessage", json.RawMessage(`{}`))
		if err != nil {
			return nil, err
		}
		return json.RawMessage(`{"content":[` + string(a) + `,` + string(b) + `]}`), nil
	}
	params := `{"name":"demo__main__echo","arguments":{"x": 9007199254740993}}`
	body, with := modern("1", "tools/call", params, allCaps)
	kind, first := r.call(body, with)
	state := text(first, "requestState")
	if kind != "input_required" || !strings.Contains(string(first), `"inputRequests":{"elicitation-create-1":{"method":"elicitation/create","params":{"q":1e400}}}`) || len(state) < 40 {
		t.Fatalf("%s", first)
	}
	answers := `{"elicitation-create-1":{"action":"accept","n":1e400},"extra":{}}`
	steal, stealHeaders := retry("2", params, answers, state)
	stealHeaders["X-Client"] = "thief"
	r.fake.set("thief", Catalog{Connectors: []Exposed{offer(demo, "echo")}})
	other, otherHeaders := retry("2", `{"name":"demo__main__echo","arguments":{"x":1}}`, answers, state)
	guess, guessHeaders := retry("2", params, answers, state+"x")
	for what, try := range map[string]func() (string, []byte){
		"another client":   func() (string, []byte) { return r.call(steal, stealHeaders) },
		"another request":  func() (string, []byte) { return r.call(other, otherHeaders) },
		"a changed state":  func() (string, []byte) { return r.call(guess, guessHeaders) },
		"a state made up":  func() (string, []byte) { b, h := retry("2", params, answers, statePrefix+"x"); return r.call(b, h) },
		"another method's": func() (string, []byte) { return r.promptWith(state) },
		"a missing request": func() (string, []byte) {
			b, h := retry("2", `{"name":"demo__main__echo"}`, answers, state)
			return r.call(b, h)
		},
	} {
		if code, raw := try(); code != "-32602" {
			t.Errorf("%s: %s %s", what, code, raw)
		}
	}
	// An answer that is missing is asked for again, under a new state.
	body, with = retry("3", params, `{"wrong":{}}`, state)
	kind, again := r.call(body, with)
	next := text(again, "requestState")
	if kind != "input_required" || next == state || !strings.Contains(string(again), `"elicitation-create-1"`) {
		t.Fatalf("%s", again)
	}
	// The keys may come in another order and with other spaces.
	body, with = retry("4", `{ "arguments" : {"x":9007199254740993},"name":"demo__main__echo" }`, answers, next)
	kind, second := r.call(body, with)
	if kind != "input_required" || !strings.Contains(string(second), `"sampling-createMessage-2"`) {
		t.Fatalf("%s", second)
	}
	if code, _ := r.call(body, with); code != "-32602" {
		t.Errorf("a state was used twice: %s", code)
	}
	body, with = retry("5", params, `{"sampling-createMessage-2":{"role":"x"}}`, text(second, "requestState"))
	if kind, last := r.call(body, with); string(last) != `{"resultType":"complete","content":[{"action":"accept","n":1e400},{"role":"x"}]}` {
		t.Fatalf("%s %s", kind, last)
	}
	if calls != 1 {
		t.Errorf("the tool ran %d times", calls)
	}
}

func (r *rig) promptWith(state string) (string, []byte) {
	body, with := modern("9", "prompts/get", `{"name":"demo__main__echo","arguments":{"x":9007199254740993},"requestState":`+string(quote(state))+`}`, allCaps)
	return r.call(body, with)
}

func TestQuestionsOfOneMomentComeTogether(t *testing.T) {
	r := newRig(t, Limits{Gather: 100 * time.Millisecond})
	r.fake.tools["echo"] = func(ctx context.Context, _ json.RawMessage, up Upstream) (json.RawMessage, error) {
		done := make(chan error, 3)
		for _, method := range []string{"roots/list", "elicitation/create", "sampling/createMessage"} {
			go func() {
				_, err := up.Request(ctx, method, json.RawMessage(`{}`))
				done <- err
			}()
		}
		for range 3 {
			if err := <-done; err != nil {
				return nil, err
			}
		}
		return json.RawMessage(`{}`), nil
	}
	body, with := modern("1", "tools/call", echoParams, allCaps)
	_, asked := r.call(body, with)
	requests, _ := lookup(asked, "inputRequests")
	answers, n := "{", 0
	for walk := members(requests); ; n++ {
		f, ok := walk.next()
		if !ok {
			break
		}
		answers += string(f.key) + `:{},`
	}
	if n != 3 {
		t.Fatalf("%s", asked)
	}
	body, with = retry("2", echoParams, trimComma(answers)+"}", text(asked, "requestState"))
	if kind, last := r.call(body, with); kind != "complete" {
		t.Errorf("%s", last)
	}
}

func TestWaitingCallsAreBoundedInNumberAndTime(t *testing.T) {
	r := newRig(t, Limits{Rounds: 2, RoundTime: 300 * time.Millisecond})
	ended := make(chan error, 8)
	r.fake.tools["echo"] = func(ctx context.Context, _ json.RawMessage, up Upstream) (json.RawMessage, error) {
		_, err := up.Request(ctx, "roots/list", nil)
		ended <- err
		return nil, err
	}
	body, with := modern("1", "tools/call", echoParams, allCaps)
	for range 2 {
		if kind, got := r.call(body, with); kind != "input_required" {
			t.Fatalf("%s", got)
		}
	}
	if code, got := r.call(body, with); code != "-32010" || !strings.Contains(string(got), "too-many-requests") {
		t.Errorf("%s", got)
	}
	for range 3 {
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Fatal("a call waits for ever")
		}
	}
	r.gateway.mu.Lock()
	defer r.gateway.mu.Unlock()
	if len(r.gateway.parked) != 0 || r.gateway.clients["agent"].waiting != 0 {
		t.Error("a call that ended is still kept")
	}
}

func TestHangingUpCancelsTheRequest(t *testing.T) {
	r := newRig(t, Limits{})
	began, ended := make(chan struct{}), make(chan struct{})
	r.fake.tools["echo"] = func(ctx context.Context, _ json.RawMessage, _ Upstream) (json.RawMessage, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}
	ctx, leave := context.WithCancel(context.Background())
	body, with := modern("1", "tools/call", echoParams, "{}")
	go func() {
		if response, err := r.do(ctx, "POST", body, with); err == nil {
			response.Body.Close()
		}
	}()
	<-began
	leave()
	<-ended
}

func TestEachRequestHasItsOwnLevelAndToken(t *testing.T) {
	r := newRig(t, Limits{})
	r.fake.tools["echo"] = func(_ context.Context, _ json.RawMessage, up Upstream) (json.RawMessage, error) {
		up.Notify("notifications/message", json.RawMessage(`{"level":"info","data":1}`))
		up.Notify("notifications/progress", json.RawMessage(`{"progress":1,"progressToken":3}`))
		return json.RawMessage(`{}`), nil
	}
	for meta, want := range map[string]int{
		``: 1,
		`"io.modelcontextprotocol/logLevel":"error",`: 1,
		`"io.modelcontextprotocol/logLevel":"debug",`: 2,
		`"progressToken":"p",`:                        2,
	} {
		body, with := modern("1", "tools/call", echoParams, "{}")
		body = strings.Replace(body, `"_meta":{`, `"_meta":{`+meta, 1)
		got := r.send("POST", body, with).messages()
		if len(got) != want {
			t.Errorf("%s: %q", meta, got)
		}
	}
	// The server is of the older generation: it saw none of the keys.
	for _, seen := range r.fake.asked() {
		if strings.Contains(seen, metaPrefix) {
			t.Error(seen)
		}
	}
}

func TestAServerOfTheNewerGenerationSeesWhatTheAgentWrote(t *testing.T) {
	r := newRig(t, Limits{})
	e := offer(demo, "echo")
	e.Modern = true
	r.fake.set("agent", Catalog{Connectors: []Exposed{e}})
	answers := []string{
		`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"elicitation/create","params":{"n":1e400}}},"requestState":"theirs"}`,
		`{"content":[],"resultType":"complete"}`,
	}
	round := 0
	r.fake.tools["echo"] = func(context.Context, json.RawMessage, Upstream) (json.RawMessage, error) {
		round++
		return json.RawMessage(answers[(round-1)%2]), nil
	}
	body, with := modern("1", "tools/call", echoParams, allCaps)
	if _, got := r.call(body, with); string(got) != answers[0] {
		t.Errorf("%s", got)
	}
	body, with = retry("2", echoParams, `{"a":{},"b":{}}`, "theirs")
	if _, got := r.call(body, with); string(got) != answers[1] {
		t.Errorf("%s", got)
	}
	params, _ := lookup([]byte(body), "params")
	if got, want := r.fake.asked()[1], "demo/main echo "+strings.Replace(string(params), "demo__main__echo", "echo", 1); got != want {
		t.Errorf("%s\n%s", got, want)
	}

	// For an agent of the older generation the gateway asks, and calls again.
	session := r.open("agent", `{"roots":{},"elicitation":{}}`)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	stream := r.stream(ctx, "POST", request(`"x"`, "tools/call", `{"name":"demo__main__echo","arguments":{"z":1e400},"_meta":{"progressToken":1}}`), session)
	for range 2 {
		question := []byte(stream.next())
		id, _ := lookup(question, "id")
		r.send("POST", `{"jsonrpc":"2.0","id":`+string(id)+`,"result":{"for":"`+text(question, "method")+`"}}`, session)
	}
	if last := stream.next(); last != `{"jsonrpc":"2.0","id":"x","result":`+answers[1]+`}` {
		t.Error(last)
	}
	asked := r.fake.asked()
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{},"elicitation":{}},"io.modelcontextprotocol/logLevel":"info","progressToken":1}`
	if want := `demo/main echo {"inputResponses":{"a":{"for":"roots/list"},"b":{"for":"elicitation/create"}},"requestState":"theirs","name":"echo","arguments":{"z":1e400},` + meta + `}`; asked[3] != want {
		t.Errorf("%s\n%s", asked[3], want)
	}
}

func TestListening(t *testing.T) {
	r := newRig(t, Limits{ChangeTime: 10 * time.Millisecond, KeepAlive: 20 * time.Millisecond})
	r.fake.requests["resources/list"] = func(context.Context, json.RawMessage, Upstream) (json.RawMessage, error) {
		return json.RawMessage(`{"resources":[{"uri":"a://1"}]}`), nil
	}
	ctx, leave := context.WithTimeout(context.Background(), 10*time.Second)
	defer leave()
	body, with := modern(`"sub"`, "subscriptions/listen", `{"notifications":{"toolsListChanged":true,"promptsListChanged":false,"resourceSubscriptions":["a://1"]}}`, "{}")
	stream := r.stream(ctx, "POST", body, with)
	tag := `"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}`
	if got := stream.next(); got != `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{`+tag+`,"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a://1"]}}}` {
		t.Fatal(got)
	}
	eventually(t, "the listener is registered", func() bool {
		r.gateway.mu.Lock()
		defer r.gateway.mu.Unlock()
		return len(r.gateway.listeners) == 1
	})
	r.fake.event(Event{Kind: PromptsChanged, Connector: demo})
	r.fake.event(Event{Kind: ToolsChanged, Connector: plugins.ID{Plugin: "other", Server: "s"}})
	r.fake.event(Event{Kind: ResourceUpdated, Connector: demo, Params: json.RawMessage(`{"uri":"a://2"}`)})
	r.fake.event(Event{Kind: ResourceUpdated, Connector: demo, Params: json.RawMessage(`{"uri":"a://1","_meta":{"io.modelcontextprotocol/subscriptionId":"forged","x":1}}`)})
	if got := stream.next(); got != `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://1","_meta":{"io.modelcontextprotocol/subscriptionId":"sub","x":1}}}` {
		t.Error(got)
	}
	r.fake.event(Event{Kind: ToolsChanged, Connector: demo})
	if got := stream.next(); got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{`+tag+`}}` {
		t.Error(got)
	}
	leave()
	eventually(t, "the server is told that nobody listens any more", func() bool {
		return strings.Contains(fmt.Sprint(r.fake.asked()), `resources/unsubscribe {"uri":"a://1"}`)
	})
}

func TestParametersInHeaders(t *testing.T) {
	r := newRig(t, Limits{})
	definition := `{"name":"echo","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}}`
	r.fake.set("agent", Catalog{Connectors: []Exposed{{ID: demo, Tools: []Tool{{"echo", json.RawMessage(definition)}}}}})
	for _, row := range []struct {
		what, arguments string
		with            headers
		ok              bool
	}{
		{"nothing to repeat", `{}`, nil, true},
		{"null is nothing", `{"region":null}`, nil, true},
		{"repeated", `{"region":"eu"}`, headers{"Mcp-Param-Region": "eu"}, true},
		{"not repeated", `{"region":"eu"}`, nil, false},
		{"another value", `{"region":"eu"}`, headers{"Mcp-Param-Region": "us"}, false},
		{"repeated without a value", `{}`, headers{"Mcp-Param-Region": "eu"}, false},
		{"base64", `{"region":"Hello"}`, headers{"Mcp-Param-Region": "=?base64?SGVsbG8=?="}, true},
		{"bad padding", `{"region":"Hello"}`, headers{"Mcp-Param-Region": "=?base64?SGVsbG8?="}, false},
		{"a literal that ends early", `{"region":"=?base64?SGVsbG8="}`, headers{"Mcp-Param-Region": "=?base64?SGVsbG8="}, true},
		{"a number by value", `{"deep":{"n":42}}`, headers{"Mcp-Param-N": "42.0"}, true},
		{"another number", `{"deep":{"n":42}}`, headers{"Mcp-Param-N": "43"}, false},
		{"a number that no double holds", `{"deep":{"n":9007199254740993}}`, headers{"Mcp-Param-N": "9007199254740993"}, false},
	} {
		body, with := modern("1", "tools/call", `{"name":"demo__main__echo","arguments":`+row.arguments+`}`, "{}")
		for key, value := range row.with {
			with[key] = value
		}
		got := r.send("POST", body, with)
		if (got.status == 200) != row.ok || !row.ok && !strings.Contains(got.body, "-32020") {
			t.Errorf("%s: %d %s", row.what, got.status, got.body)
		}
	}
}
