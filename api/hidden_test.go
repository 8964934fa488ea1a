package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"sallyport/api"
	"sallyport/runtime/approvals"
)

// agentOf is one agent's session of the older generation over HTTP.
type agentOf struct {
	r       *rig
	as      string
	session string
}

const legacy = "2025-11-25"

func (r *rig) agentWith(name string, only ...string) *agentOf {
	r.t.Helper()
	token, err := r.host.Gate.AddClient(r.t.Context(), name, approvals.Scope{Only: only}, approvals.By{User: "tester", Via: "api"})
	if err != nil {
		r.t.Fatal(err)
	}
	r.tokens[name] = token
	a := &agentOf{r: r, as: name}
	got := a.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + legacy + `","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if a.session = got.header.Get("Mcp-Session-Id"); a.session == "" {
		r.t.Fatalf("initialize: %d %s", got.status, got.body)
	}
	return a
}

func (a *agentOf) header() map[string]string {
	h := map[string]string{"Accept": "application/json, text/event-stream"}
	if a.session != "" {
		h["Mcp-Session-Id"], h["Mcp-Protocol-Version"] = a.session, legacy
	}
	return h
}

func (a *agentOf) post(body string) answer {
	a.r.t.Helper()
	return a.r.send(request{method: "POST", path: "/mcp", as: a.as, body: body, header: a.header()})
}

func (a *agentOf) ask(method, params string) answer {
	a.r.t.Helper()
	return a.post(`{"jsonrpc":"2.0","id":2,"method":"` + method + `","params":` + params + `}`)
}

// modern is ask in the generation without sessions.
func (a *agentOf) modern(method, params string) answer {
	a.r.t.Helper()
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	if params != "{}" {
		meta = "," + meta
	}
	var named struct{ Name, URI string }
	if err := json.Unmarshal([]byte(params), &named); err != nil {
		a.r.t.Fatal(err)
	}
	header := map[string]string{"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method}
	if name := named.Name + named.URI; name != "" {
		header["Mcp-Name"] = name
	}
	body := `{"jsonrpc":"2.0","id":2,"method":"` + method + `","params":` + strings.TrimSuffix(params, "}") + meta + `}}`
	return a.r.send(request{method: "POST", path: "/mcp", as: a.as, body: body, header: header})
}

// listen opens the stream for what belongs to no request and returns what comes.
func (a *agentOf) listen() <-chan string {
	a.r.t.Helper()
	ctx, cancel := context.WithCancel(a.r.t.Context())
	a.r.t.Cleanup(cancel)
	out, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/mcp", a.r.port), nil)
	if err != nil {
		a.r.t.Fatal(err)
	}
	out.Header.Set("Authorization", "Bearer "+a.r.tokens[a.as])
	for name, value := range a.header() {
		out.Header.Set(name, value)
	}
	response, err := loner.Do(out)
	if err != nil || response.StatusCode != http.StatusOK {
		a.r.t.Fatalf("listening: %v %v", err, response)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		defer response.Body.Close()
		for scanner := bufio.NewScanner(response.Body); scanner.Scan(); {
			if data, ok := strings.CutPrefix(scanner.Text(), "data: "); ok && strings.HasPrefix(data, "{") {
				lines <- data
			}
		}
	}()
	return lines
}

// approveOther approves a connector that is not fake/main.
func (r *rig) approveOther(id string, tools ...string) {
	r.t.Helper()
	var asked, offered api.Decision
	r.into(&asked, "POST", "/v1/plugins/"+id+"/ask", "")
	r.into(&offered, "POST", "/v1/decisions/"+asked.ID+"/answer", `{"answer":"allow"}`)
	body, err := json.Marshal(api.Answer{Answer: "allow", Tools: tools, Always: true})
	if err != nil {
		r.t.Fatal(err)
	}
	r.into(nil, "POST", "/v1/decisions/"+offered.ID+"/answer", string(body))
}

// TestWhatAClientMayNotUseItCannotTellFromWhatIsNotThere: for everything that can be
// named, the answer about what is there for others is, byte for byte, the answer about
// what is there for nobody (spec/permissions.md 6).
func TestWhatAClientMayNotUseItCannotTellFromWhatIsNotThere(t *testing.T) {
	r := newRig(t)
	r.approve("echo", "pid", "change")
	r.approveOther("two/a", "echo", "change")
	narrow := r.agentWith("narrow", "fake/main:echo")
	wide := r.agentWith("wide", "fake/main", "two/a")
	for _, row := range []struct{ what, method, there, absent string }{
		{"a tool of another connector", "tools/call", `{"name":"two__a__echo"}`, `{"name":"six__a__echo"}`},
		{"another tool of the same connector", "tools/call", `{"name":"fake__main__pid"}`, `{"name":"fake__main__pit"}`},
		{"a tool that nobody was granted", "tools/call", `{"name":"fake__main__env"}`, `{"name":"fake__main__enw"}`},
		{"a tool of a plugin that nobody approved", "tools/call", `{"name":"two__b__echo"}`, `{"name":"two__c__echo"}`},
		{"a prompt of another connector", "prompts/get", `{"name":"two__a__greet"}`, `{"name":"six__a__greet"}`},
		{"a prompt of a connector that it sees in part", "prompts/get", `{"name":"fake__main__greet"}`, `{"name":"fake__main__great"}`},
		{"a resource", "resources/read", `{"uri":"fake://one"}`, `{"uri":"fake://two"}`},
		{"a subscription", "resources/subscribe", `{"uri":"fake://one"}`, `{"uri":"fake://two"}`},
		{"the completion of a prompt", "completion/complete", `{"ref":{"type":"ref/prompt","name":"two__a__greet"},"argument":{"name":"a","value":""}}`, `{"ref":{"type":"ref/prompt","name":"six__a__greet"},"argument":{"name":"a","value":""}}`},
		{"the completion of a resource", "completion/complete", `{"ref":{"type":"ref/resource","uri":"fake://{name}"},"argument":{"name":"a","value":""}}`, `{"ref":{"type":"ref/resource","uri":"fake://{nome}"},"argument":{"name":"a","value":""}}`},
	} {
		for generation, ask := range map[string]func(string, string) answer{"2025-11-25": narrow.ask, "2026-07-28": narrow.modern} {
			there, absent := ask(row.method, row.there), ask(row.method, row.absent)
			same := strings.NewReplacer("six__a", "two__a", "pit", "pid", "enw", "env", "two__c", "two__b", "great", "greet", "fake://two", "fake://one", "nome", "name").Replace
			if there.status != absent.status || there.body != same(absent.body) || !strings.Contains(there.body, `"error"`) {
				t.Errorf("%s (%s): %d %s\nbut of what is not there %d %s", row.what, generation, there.status, there.body, absent.status, absent.body)
			}
		}
	}
	for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list", "logging/setLevel"} {
		for generation, ask := range map[string]func(string, string) answer{"2025-11-25": narrow.ask, "2026-07-28": narrow.modern} {
			got := ask(method, map[bool]string{true: `{"level":"debug"}`, false: `{}`}[method == "logging/setLevel"])
			for _, hidden := range []string{"two", "pid", "greet", "fake://"} {
				if strings.Contains(got.body, hidden) {
					t.Errorf("%s (%s) shows %q: %s", method, generation, hidden, got.body)
				}
			}
		}
	}
	if got := narrow.modern("server/discover", "{}"); strings.Contains(got.body, "two/a") || !strings.Contains(got.body, "fake/main") {
		t.Errorf("it is told of %s", got.body)
	}
	stolen, guessed := *narrow, *narrow
	stolen.session, guessed.session = wide.session, strings.Repeat("A", len(wide.session))
	if a, b := stolen.ask("ping", "{}"), guessed.ask("ping", "{}"); a.status != http.StatusNotFound || a.status != b.status || a.body != b.body {
		t.Errorf("another client's session: %d %s\none that is not: %d %s", a.status, a.body, b.status, b.body)
	}
}

// TestAClientHearsOnlyOfItsOwn: what changes for others is not told, and what its own
// scope gains and loses is told at once.
func TestAClientHearsOnlyOfItsOwn(t *testing.T) {
	r := newRig(t)
	r.approve("echo", "pid")
	r.approveOther("two/a", "echo", "change")
	narrow := r.agentWith("narrow", "fake/main:echo")
	narrow.ask("tools/list", "{}")
	heard := narrow.listen()
	wide := r.agentWith("wide", "fake/main", "two/a")
	wide.ask("tools/list", "{}")
	others := wide.listen()
	r.into(nil, "POST", "/v1/plugins/two/a/call", `{"tool":"change"}`)
	next(t, others, "notifications/tools/list_changed")
	for _, change := range []struct{ path, body, has string }{
		{"grant", `{"only":["two/a:echo"]}`, "two__a__echo"},
		{"revoke", `{"only":["fake/main:echo"]}`, "two__a__echo"},
		{"grant", `{"only":["fake/main:pid"]}`, "fake__main__pid"},
	} {
		r.into(nil, "POST", "/v1/clients/narrow/"+change.path, change.body)
		if list := narrow.ask("tools/list", "{}"); !strings.Contains(list.body, change.has) || change.path == "revoke" && strings.Contains(list.body, "fake__") {
			t.Errorf("after %s %s it sees %s", change.path, change.body, list.body)
		}
		next(t, heard, "notifications/tools/list_changed")
	}
	r.send(request{method: "DELETE", path: "/mcp", as: "narrow", header: narrow.header()})
	for more := range heard { // one for each change of its own, and none for the others'
		t.Errorf("it hears %s", more)
	}
}

func next(t *testing.T, lines <-chan string, want string) {
	t.Helper()
	select {
	case line, ok := <-lines:
		if !ok || !strings.Contains(line, want) {
			t.Errorf("it hears %q (open: %v), not %s", line, ok, want)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("it never hears %s", want)
	}
}
