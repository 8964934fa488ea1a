package gateway

import (
	"strings"
	"testing"
)

func TestHTTPStatusCodes(t *testing.T) {
	r := newRig(t, Limits{Body: 1000})
	session := r.open("agent", "{}")
	ping := request("1", "ping", "{}")
	list, modernList := modern("1", "tools/list", "{}", "{}")
	call, modernCall := modern("1", "tools/call", echoParams, "{}")
	and := func(base headers, more headers) headers {
		out := headers{}
		for _, from := range []headers{base, more} {
			for key, value := range from {
				out[key] = value
			}
		}
		return out
	}
	meta := func(text string) string {
		return request("1", "tools/list", `{"_meta":{`+text+`}}`)
	}
	const version = `"io.modelcontextprotocol/protocolVersion":`
	const caps = `"io.modelcontextprotocol/clientCapabilities":`
	for _, row := range []struct {
		what, method, body string
		with               headers
		status             int
		contains           string
	}{
		{"no token", "POST", ping, headers{"X-Client": "nobody"}, 401, ""},
		{"another Host", "POST", ping, headers{"Host": "evil.example"}, 403, ""},
		{"another Origin", "POST", ping, headers{"Origin": "http://evil.example"}, 403, ""},
		{"a null Origin", "POST", ping, headers{"Origin": "null"}, 403, ""},
		{"a request in a session", "POST", ping, session, 200, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{"a notification", "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session, 202, ""},
		{"an answer nobody waits for", "POST", `{"jsonrpc":"2.0","id":9,"result":{}}`, session, 202, ""},
		{"an error without an id", "POST", `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}`, session, 202, ""},
		{"no session", "POST", ping, nil, 400, "Mcp-Session-Id"},
		{"an unknown session", "POST", ping, headers{sessionHeader: "x"}, 404, "session"},
		{"another client's session", "POST", ping, and(session, headers{"X-Client": "thief"}), 404, "session"},
		{"the method of no protocol", "POST", request("1", "made/up", "{}"), session, 200, "-32601"},
		{"a method of the newer generation", "POST", request("1", "server/discover", "{}"), session, 200, "-32601"},
		{"PUT", "PUT", ping, session, 405, ""},
		{"GET without a session", "GET", "", nil, 400, ""},
		{"GET that takes no events", "GET", "", and(session, headers{"Accept": jsonType}), 406, ""},
		{"GET in the newer generation", "GET", "", headers{versionHeader: modernVersion}, 405, ""},
		{"DELETE in the newer generation", "DELETE", "", headers{versionHeader: modernVersion}, 405, ""},
		{"DELETE without a session", "DELETE", "", nil, 400, ""},
		{"text", "POST", ping, and(session, headers{"Content-Type": "text/plain"}), 415, ""},
		{"no content type", "POST", ping, and(session, headers{"Content-Type": ""}), 415, ""},
		{"a charset", "POST", ping, and(session, headers{"Content-Type": "application/json; charset=utf-8"}), 200, ""},
		{"JSON only", "POST", ping, and(session, headers{"Accept": jsonType}), 406, ""},
		{"anything", "POST", ping, and(session, headers{"Accept": "*/*"}), 200, ""},
		{"no Accept", "POST", ping, and(session, headers{"Accept": ""}), 200, ""},
		{"parameters in Accept", "POST", ping, and(session, headers{"Accept": "text/event-stream;q=0.9, APPLICATION/JSON"}), 200, ""},
		{"an older version", "POST", ping, and(session, headers{versionHeader: "2025-03-26"}), 200, ""},
		{"no version", "POST", ping, and(session, headers{versionHeader: ""}), 200, ""},
		{"an unknown version", "POST", ping, and(session, headers{versionHeader: "1999-01-01"}), 400, `"code":-32022`},
		{"a body over the limit", "POST", request("1", "ping", `{"x":"`+strings.Repeat("x", 1000)+`"}`), session, 413, ""},
		{"no body", "POST", "", session, 400, "-32700"},
		{"no JSON", "POST", `{"jsonrpc":`, session, 400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700`},
		{"bad UTF-8", "POST", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", session, 400, "-32700"},
		{"trailing text", "POST", ping + "x", session, 400, "-32700"},
		{"a batch", "POST", "[" + ping + "]", session, 400, `"id":null,"error":{"code":-32600,"message":"Invalid request: batches`},
		{"an empty batch", "POST", "[]", session, 400, "-32600"},
		{"a number", "POST", "42", session, 400, "-32600"},
		{"another JSON-RPC", "POST", `{"jsonrpc":"1.0","id":4,"method":"ping"}`, session, 400, `"id":4,"error":{"code":-32600`},
		{"no JSON-RPC", "POST", `{"id":"5","method":"ping"}`, session, 400, `"id":"5","error":{"code":-32600`},
		{"an id that is null", "POST", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, session, 400, "-32600"},
		{"an id twice", "POST", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, session, 400, "-32600"},
		{"a key in other letters", "POST", `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"x"}`, session, 400, "-32600"},
		{"six lines", "POST", "{\n\"jsonrpc\":\"2.0\",\r\n\"id\":1,\n\"method\":\n\"ping\"\n}\n", session, 200, `"result":{}`},
		{"the next one after all that", "POST", ping, session, 200, `"result":{}`},
		{"initialize without a version", "POST", request("1", "initialize", "{}"), nil, 200, "-32602"},
		{"initialize twice makes two sessions", "POST", request("1", "initialize", `{"protocolVersion":"2024-11-05"}`), session, 200, `"protocolVersion":"2024-11-05"`},
		{"initialize with an unknown version", "POST", request("1", "initialize", `{"protocolVersion":"2030-01-01"}`), nil, 200, `"protocolVersion":"2025-11-25"`},
		{"initialize with the newer version", "POST", request("1", "initialize", `{"protocolVersion":"2026-07-28"}`), nil, 200, `"protocolVersion":"2025-11-25"`},

		{"newer: a request", "POST", list, modernList, 200, `"resultType":"complete"`},
		{"newer: a call", "POST", call, modernCall, 200, `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content"`},
		{"newer: a session header is ignored", "POST", list, and(modernList, headers{sessionHeader: "x"}), 200, ""},
		{"newer: a notification", "POST", `{"jsonrpc":"2.0","method":"notifications/x"}`, headers{versionHeader: modernVersion}, 202, ""},
		{"newer: an answer", "POST", `{"jsonrpc":"2.0","id":1,"result":{}}`, headers{versionHeader: modernVersion}, 400, ""},
		{"newer: no version header", "POST", list, and(modernList, headers{versionHeader: ""}), 400, `"id":1,"error":{"code":-32020`},
		{"newer: another version header", "POST", list, and(modernList, headers{versionHeader: "2025-11-25"}), 400, "-32020"},
		{"newer: no _meta", "POST", request("1", "tools/list", "{}"), modernList, 400, "-32602"},
		{"newer: no version", "POST", meta(caps + "{}"), modernList, 400, "-32602"},
		{"newer: no capabilities", "POST", meta(version + `"2026-07-28"`), modernList, 400, "-32602"},
		{"newer: bad capabilities", "POST", meta(version + `"2026-07-28",` + caps + `1`), modernList, 400, "-32602"},
		{"newer: an unknown version", "POST", meta(version + `"v999",` + caps + `{}`), and(modernList, headers{versionHeader: "v999"}), 400, `"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28",`},
		{"newer: no Mcp-Method", "POST", list, and(modernList, headers{"Mcp-Method": ""}), 400, "-32020"},
		{"newer: another Mcp-Method", "POST", list, and(modernList, headers{"Mcp-Method": "TOOLS/LIST"}), 400, "-32020"},
		{"newer: no Mcp-Name", "POST", call, and(modernCall, headers{"Mcp-Name": ""}), 400, "-32020"},
		{"newer: another Mcp-Name", "POST", call, and(modernCall, headers{"Mcp-Name": "x"}), 400, "-32020"},
		{"newer: Mcp-Name in base64", "POST", call, and(modernCall, headers{"Mcp-Name": "=?base64?ZGVtb19fbWFpbl9fZWNobw==?="}), 200, ""},
		{"newer: Mcp-Name in bad base64", "POST", call, and(modernCall, headers{"Mcp-Name": "=?base64?ZGVtb19fbWFpbl9fZWNobw?="}), 400, "-32020"},
		{"newer: a removed method", "POST", request("1", "ping", `{"_meta":{`+version+`"2026-07-28",`+caps+`{}}}`), and(modernList, headers{"Mcp-Method": "ping"}), 404, `"id":1,"error":{"code":-32601`},
		{"newer: unknown tool", "POST", strings.Replace(call, "demo__main__echo", "x", 1), and(modernCall, headers{"Mcp-Name": "x"}), 400, "-32602"},
	} {
		got := r.send(row.method, row.body, row.with)
		if got.status != row.status || !strings.Contains(got.body, row.contains) {
			t.Errorf("%s: %d %s\nwant %d …%s…", row.what, got.status, got.body, row.status, row.contains)
		}
		if got.status == 405 && got.header.Get("Allow") == "" {
			t.Errorf("%s: no Allow", row.what)
		}
	}
	if calls := r.fake.asked(); len(calls) != 2 {
		t.Errorf("a refused request reached a server: %v", calls)
	}
}
