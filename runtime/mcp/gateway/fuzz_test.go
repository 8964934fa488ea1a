package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sallyport/runtime/mcp"
)

// FuzzBody posts a body as each generation. Whatever it is, the answer is JSON or
// nothing, an answer to a request carries its id byte for byte, and the next
// request is served.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		request("1", "ping", "{}"), request(`"1"`, "tools/call", echoParams), `[]`, `42`, `{"id":5}`, ``, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":null,"error":{}}`,
		request("1", "resources/read", `{"uri":"a"}`), request("1", "completion/complete", `{"ref":{"type":"ref/prompt","name":"x"}}`),
		request("1", "tools/list", `{"cursor":"dG9vbHMAeA"}`),
		request("1", "tools/call", `{"name":"demo__main__echo","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`),
		request("1", "tools/call", `{"name":"demo__main__echo","requestState":"sallyport:x","inputResponses":{}}`),
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`,
	} {
		f.Add([]byte(seed))
	}
	backend := newFake()
	backend.set("agent", Catalog{Connectors: []Exposed{offer(demo, "echo")}})
	g := New(Config{Backend: backend, Client: func(*http.Request) (ClientInfo, bool) { return ClientInfo{Name: "agent"}, true }})
	f.Cleanup(func() { g.Close() })
	post := func(body []byte, with headers) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/mcp", bytes.NewReader(body))
		r.Host = "127.0.0.1"
		r.Header.Set("Content-Type", jsonType)
		for key, value := range with {
			r.Header.Set(key, value)
		}
		w := httptest.NewRecorder()
		g.Handler().ServeHTTP(w, r)
		return w
	}
	session := headers{sessionHeader: post([]byte(request("0", "initialize", `{"protocolVersion":"2025-11-25"}`)), nil).Header().Get(sessionHeader)}
	f.Fuzz(func(t *testing.T, body []byte) {
		if bytes.Contains(body, []byte("subscriptions")) { // which stays open
			return
		}
		var parser mcp.Parser
		oneLined := bytes.Clone(body)
		oneLine(oneLined)
		e, err := parser.Parse(oneLined)
		for _, with := range []headers{session, {versionHeader: modernVersion, "Mcp-Method": string(e.Method), "Mcp-Name": "demo__main__echo"}} {
			w := post(bytes.Clone(body), with)
			answer := w.Body.Bytes()
			if len(answer) > 0 && !strings.HasPrefix(w.Header().Get("Content-Type"), eventType) && !json.Valid(answer) {
				t.Fatalf("%d %q", w.Code, answer)
			}
			if err == nil && e.Kind == mcp.Request && !bytes.Contains(answer, append([]byte(`"id":`), e.ID...)) {
				t.Fatalf("the id %s is not in %q", e.ID, answer)
			}
			if err != nil && w.Code != 400 {
				t.Fatalf("%d %q for what is no message", w.Code, answer)
			}
		}
		if w := post([]byte(request("7", "ping", "{}")), session); w.Body.String() != `{"jsonrpc":"2.0","id":7,"result":{}}` {
			t.Fatal(w.Body)
		}
	})
}

// FuzzObject walks any text, and in JSON finds the members where encoding/json
// finds them.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{`{"a":1,"b":[{"c":"\""}],"d\u0041":"x"}`, `{`, `{"a":`, `[1,[2],"]"]`, `{"a":{"b":"\\"},"c":1e400}`, ` { "a" : null } `} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		n := 0
		for walk := members(raw); ; n++ {
			one, ok := walk.next()
			if !ok {
				break
			}
			_ = one.named("a")
			_ = one.resembles("a")
		}
		elements(raw)
		var object map[string]json.RawMessage
		if json.Valid(raw) && json.Unmarshal(raw, &object) == nil && object != nil {
			for key, want := range object {
				found := false
				for walk := members(raw); ; {
					one, ok := walk.next()
					if !ok {
						break
					}
					if unquote(one.key) == key && bytes.Equal(one.value(raw), want) {
						found = true
					}
				}
				if !found {
					t.Fatalf("%q: %q is not found", raw, key)
				}
			}
			if kept := without(raw, func(field) bool { return false }); !bytes.Equal(kept, raw) {
				t.Fatalf("%q became %q", raw, kept)
			}
			if !json.Valid(prepend(raw, `"x":1`)) || !json.Valid(without(raw, func(field) bool { return true })) {
				t.Fatalf("%q", raw)
			}
		}
		var array []json.RawMessage
		if json.Valid(raw) && json.Unmarshal(raw, &array) == nil {
			got := elements(raw)
			if len(got) != len(array) {
				t.Fatalf("%q: %q", raw, got)
			}
			for i := range array {
				if !bytes.Equal(got[i], array[i]) {
					t.Fatalf("%q: %q", raw, got)
				}
			}
		}
		// Any text is taken for a template and a header too.
		fits(string(raw), string(raw))
		decodeHeader(string(raw))
		headerBindings(append([]byte(`{"inputSchema":{"x-mcp-header":1},"x":`), raw...))
		fingerprint("m", raw)
	})
}
