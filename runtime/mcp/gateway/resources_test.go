package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sallyport/runtime/plugins"
)

var second = plugins.ID{Plugin: "second", Server: "s"}

// listing answers resources/list with the pages, one cursor a page.
func listing(pages ...string) tool {
	return func(_ context.Context, params json.RawMessage, _ Upstream) (json.RawMessage, error) {
		at := 0
		fmt.Sscan(text(params, "cursor"), &at)
		next := ""
		if at+1 < len(pages) {
			next = fmt.Sprintf(`,"nextCursor":"%d"`, at+1)
		}
		return json.RawMessage(`{"resources":[` + pages[at] + `]` + next + `}`), nil
	}
}

func TestResourcesAreMergedAndRoutedByTheirURI(t *testing.T) {
	r := newRig(t, Limits{Page: 2})
	a, b := offer(demo), offer(second)
	a.Templates = []json.RawMessage{json.RawMessage(`{"name":"t","uriTemplate":"file:///{+path}"}`), json.RawMessage(`{"name":"u","uriTemplate":"both://{id}"}`)}
	b.Templates = []json.RawMessage{json.RawMessage(`{"name":"t","uriTemplate":"db://{table}/rows"}`), json.RawMessage(`{"name":"u","uriTemplate":"both://{id}"}`)}
	broken := offer(plugins.ID{Plugin: "broken", Server: "s"})
	r.fake.set("agent", Catalog{Connectors: []Exposed{b, broken, a}})
	r.fake.requests["demo/main resources/list"] = listing(`{"uri":"x://1","n":1e400},{"uri":"same://"}`, `{"uri":"x://2"}`)
	r.fake.requests["second/s resources/list"] = listing(`{"uri":"y://1"},{"uri":"same://"}`)
	r.fake.requests["broken/s resources/list"] = func(context.Context, json.RawMessage, Upstream) (json.RawMessage, error) {
		return nil, errors.New("no")
	}
	r.fake.requests["resources/read"] = func(context.Context, json.RawMessage, Upstream) (json.RawMessage, error) {
		return json.RawMessage(`{"contents":[1e400]}`), nil
	}
	session := r.open("agent", "{}")
	var uris []string
	for cursor := "{}"; cursor != ""; {
		result, _ := lookup([]byte(r.send("POST", request("1", "resources/list", cursor), session).body), "result")
		items, _ := lookup(result, "resources")
		for _, item := range elements(items) {
			uris = append(uris, text(item, "uri"))
		}
		cursor = ""
		if next, more := lookup(result, "nextCursor"); more {
			cursor = `{"cursor":` + string(next) + `}`
		}
	}
	if got := strings.Join(uris, " "); got != "x://1 same:// x://2 y://1 same://" {
		t.Error(got)
	}
	for uri, want := range map[string]string{
		"x://2": "demo/main", "y://1": "second/s", "file:///a/b": "demo/main", "db://t/rows": "second/s",
		"same://": "resource-ambiguous", "both://1": "resource-ambiguous", "db://a/b/rows": "-32002", "z://": "-32002",
	} {
		before := len(r.fake.asked())
		params := `{ "uri":"` + uri + `","n":1e400}`
		got := r.send("POST", request("1", "resources/read", params), session).body
		asked := r.fake.asked()[before:]
		if strings.Contains(want, "/") {
			if got != `{"jsonrpc":"2.0","id":1,"result":{"contents":[1e400]}}` || asked[len(asked)-1] != want+" resources/read "+params {
				t.Errorf("%s: %s %v", uri, got, asked)
			}
		} else if !strings.Contains(got, want) {
			t.Errorf("%s: %s", uri, got)
		}
	}
	if got := r.send("POST", request("1", "resources/read", `{"uri":"same://"}`), session).body; !strings.Contains(got, "demo/main and second/s") {
		t.Errorf("the refusal does not name both: %s", got)
	}
	answer := r.modern("resources/read", `{"uri":"z://\u00e9"}`)
	if !strings.Contains(answer.body, `"code":-32602,"message":"Resource not found","data":{"uri":"z://é"}`) {
		t.Error(answer.body)
	}
	if got := r.modern("resources/read", `{"uri":"x://1"}`).body; got != `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","contents":[1e400]}}` {
		t.Error(got)
	}
}

func TestAHostileTemplateCostsNothing(t *testing.T) {
	began := time.Now()
	fits(strings.Repeat("{+a}x", 200)+"!", strings.Repeat("x", 4000))
	if took := time.Since(began); took > 5*time.Second {
		t.Error(took)
	}
}

func TestSubscriptionsAreCountedAtTheServer(t *testing.T) {
	r := newRig(t, Limits{})
	r.fake.set("second", Catalog{Connectors: []Exposed{offer(demo)}})
	count := func(method string) (n int) {
		for _, seen := range r.fake.asked() {
			if strings.Contains(seen, method+" ") {
				n++
			}
		}
		return n
	}
	one, two := r.open("agent", "{}"), r.open("second", "{}")
	for _, session := range []headers{one, two} {
		r.send("POST", request("1", "resources/subscribe", `{"uri":"a://"}`), session)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	a, b := r.stream(ctx, "GET", "", one), r.stream(ctx, "GET", "", two)
	r.fake.event(Event{Kind: ResourceUpdated, Connector: second, Params: json.RawMessage(`{"uri":"a://","from":"another"}`)})
	r.fake.event(Event{Kind: ResourceUpdated, Connector: demo, Params: json.RawMessage(`{"uri":"a://","n":1e400}`)})
	for _, stream := range []*events{a, b} {
		if got := stream.next(); got != `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://","n":1e400}}` {
			t.Error(got)
		}
	}
	r.send("POST", request("2", "resources/unsubscribe", `{"uri":"a://"}`), one)
	if n := count("resources/unsubscribe"); n != 0 {
		t.Errorf("the server was told while another session still listens")
	}
	r.send("DELETE", "", two)
	eventually(t, "the server is told with the last one", func() bool { return count("resources/unsubscribe") == 1 })
}

func TestAClientHearsNothingOfWhatItMayNoLongerSee(t *testing.T) {
	r := newRig(t, Limits{})
	r.fake.set("agent", Catalog{Connectors: []Exposed{offer(demo), offer(second)}})
	r.fake.requests["demo/main resources/list"] = listing(`{"uri":"a://","name":"x"}`)
	r.fake.requests[second.String()+" resources/list"] = listing(`{"uri":"b://","name":"x"}`)
	session := r.open("agent", "{}")
	for _, uri := range []string{"a://", "b://"} {
		r.send("POST", request("1", "resources/subscribe", `{"uri":"`+uri+`"}`), session)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	stream := r.stream(ctx, "GET", "", session)
	r.fake.set("agent", Catalog{Connectors: []Exposed{offer(second)}})
	r.fake.event(Event{Kind: ResourceUpdated, Connector: demo, Params: json.RawMessage(`{"uri":"a://"}`)})
	r.fake.event(Event{Kind: ResourceUpdated, Connector: second, Params: json.RawMessage(`{"uri":"b://"}`)})
	if got := stream.next(); !strings.Contains(got, "b://") {
		t.Error(got)
	}
}

func TestSubscriptionsAreBounded(t *testing.T) {
	r := newRig(t, Limits{})
	session := r.open("agent", "{}")
	subscribe := func(uri string) string {
		return r.send("POST", request("1", "resources/subscribe", `{"uri":"`+uri+`"}`), session).body
	}
	if got := subscribe("a://" + strings.Repeat("x", maxWatchedURI)); !strings.Contains(got, "too-many-subscriptions") {
		t.Error("an address that is too long:", got)
	}
	for i := range maxWatches {
		if got := subscribe(fmt.Sprintf("a://%d", i)); !strings.Contains(got, `"result":`) {
			t.Fatal(i, got)
		}
	}
	if got := subscribe("a://0"); !strings.Contains(got, `"result":`) {
		t.Error("one that is there already:", got)
	}
	if got := subscribe("a://more"); !strings.Contains(got, "too-many-subscriptions") {
		t.Error("one too many:", got)
	}
}

func TestPromptsAndCompletionPassByteForByte(t *testing.T) {
	r := newRig(t, Limits{})
	e := offer(demo)
	e.Prompts = []json.RawMessage{json.RawMessage(`{"name":"ask me"}`)}
	r.fake.set("agent", Catalog{Connectors: []Exposed{e}})
	shown := ExposedName(demo, "ask me")
	for _, method := range []string{"prompts/get", "completion/complete"} {
		r.fake.requests[method] = func(context.Context, json.RawMessage, Upstream) (json.RawMessage, error) {
			return json.RawMessage(`{"x":1e400}`), nil
		}
	}
	session := r.open("agent", "{}")
	for _, row := range []struct{ method, sent, got string }{
		{"prompts/get", `{"arguments":{"z":1e400}, "name":"` + shown + `"}`, `{"arguments":{"z":1e400}, "name":"ask me"}`},
		{"completion/complete", `{"argument":{"v":1e400},"ref":{"x":1, "name":"` + shown + `","type":"ref/prompt"}}`, `{"argument":{"v":1e400},"ref":{"x":1, "name":"ask me","type":"ref/prompt"}}`},
		{"completion/complete", `{"ref":{"type":"ref/resource","uri":"a://{x}"}, "n":1}`, `{"ref":{"type":"ref/resource","uri":"a://{x}"}, "n":1}`},
	} {
		if got := r.send("POST", request("1", row.method, row.sent), session).body; got != `{"jsonrpc":"2.0","id":1,"result":{"x":1e400}}` {
			t.Error(got)
		}
		asked := r.fake.asked()
		if last := asked[len(asked)-1]; last != "demo/main "+row.method+" "+row.got {
			t.Error(last)
		}
	}
	for method, params := range map[string]string{"prompts/get": `{"name":"ask me"}`, "completion/complete": `{"ref":{"type":"ref/else"}}`} {
		if got := r.send("POST", request("1", method, params), session).body; !strings.Contains(got, "-32602") {
			t.Error(got)
		}
	}
}
