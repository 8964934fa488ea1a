package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestGuard is C63: what a foreign page or a confused program sends is refused
// before any routing, on every route, health too.
func TestGuard(t *testing.T) {
	type change = func(*http.Request)
	header := func(name, value string) change { return func(r *http.Request) { r.Header.Set(name, value) } }
	host := func(value string) change { return func(r *http.Request) { r.Host = value } }
	for _, row := range []struct {
		name   string
		method string
		path   string
		body   string
		with   change
		code   string // "" passes
	}{
		{name: "our own address", method: "GET", path: "/api/desktop-health", with: host("127.0.0.1:4321")},
		{name: "localhost with our port", method: "GET", path: "/api/desktop-health", with: host("localhost:4321")},
		{name: "LOCALHOST in capitals is the same host", method: "GET", path: "/v1/status", with: host("LOCALHOST:4321")},
		{name: "another host (DNS rebinding)", method: "GET", path: "/api/desktop-health", with: host("evil.example:4321"), code: "host-refused"},
		{name: "a host that begins as ours", method: "GET", path: "/api/desktop-health", with: host("localhost.evil.example:4321"), code: "host-refused"},
		{name: "another port", method: "GET", path: "/api/desktop-health", with: host("127.0.0.1:4322"), code: "host-refused"},
		{name: "no port", method: "GET", path: "/api/desktop-health", with: host("127.0.0.1"), code: "host-refused"},
		{name: "no host", method: "GET", path: "/api/desktop-health", with: host(""), code: "host-refused"},
		{name: "another loopback address", method: "GET", path: "/api/desktop-health", with: host("127.0.0.2:4321"), code: "host-refused"},
		{name: "IPv6 loopback", method: "GET", path: "/api/desktop-health", with: host("[::1]:4321"), code: "host-refused"},
		{name: "our own origin", method: "GET", path: "/v1/status", with: header("Origin", "http://127.0.0.1:4321")},
		{name: "a foreign origin", method: "GET", path: "/api/desktop-health", with: header("Origin", "http://evil.example"), code: "origin-refused"},
		{name: "a null origin", method: "GET", path: "/v1/status", with: header("Origin", "null"), code: "origin-refused"},
		{name: "an empty origin", method: "GET", path: "/v1/status", with: header("Origin", ""), code: "origin-refused"},
		{name: "our origin over https", method: "GET", path: "/v1/status", with: header("Origin", "https://127.0.0.1:4321"), code: "origin-refused"},
		{name: "our origin on another port", method: "GET", path: "/v1/status", with: header("Origin", "http://127.0.0.1:9"), code: "origin-refused"},
		{name: "a cross-site fetch", method: "GET", path: "/v1/status", with: header("Sec-Fetch-Site", "cross-site"), code: "origin-refused"},
		{name: "a same-site fetch from another port", method: "GET", path: "/v1/status", with: header("Sec-Fetch-Site", "same-site"), code: "origin-refused"},
		{name: "a fetch of our own page", method: "GET", path: "/v1/status", with: header("Sec-Fetch-Site", "same-origin")},
		{name: "an address typed by a person", method: "GET", path: "/v1/status", with: header("Sec-Fetch-Site", "none")},
		{name: "a doubled slash", method: "GET", path: "//api/desktop-health", code: "not-found"},
		{name: "a path that goes up", method: "GET", path: "/api/../v1/status", code: "not-found"},
		{name: "a path that goes up, escaped", method: "GET", path: "/api/%2e%2e/v1/status", code: "not-found"},
		{name: "a form post", method: "POST", path: "/v1/clients", body: "{}", with: header("Content-Type", "text/plain"), code: "content-type"},
		{name: "a post without a type", method: "POST", path: "/v1/clients", body: "{}", code: "content-type"},
		{name: "JSON", method: "POST", path: "/v1/clients", body: "{}", with: header("Content-Type", "application/json; charset=utf-8")},
		{name: "JSON in another encoding", method: "POST", path: "/v1/clients", body: "{}", with: header("Content-Type", "application/json; charset=utf-16"), code: "content-type"},
		{name: "a post without a body", method: "POST", path: "/v1/plugins/scan"},
		{name: "a body over the limit", method: "POST", path: "/v1/clients", body: strings.Repeat(" ", maxBodyBytes+1), with: header("Content-Type", "application/json"), code: "body-too-large"},
	} {
		t.Run(row.name, func(t *testing.T) {
			passed := false
			handler := guard(4321, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed = true }))
			var request *http.Request
			if row.body == "" {
				request = httptest.NewRequest(row.method, "http://127.0.0.1:4321"+row.path, nil)
			} else {
				request = httptest.NewRequest(row.method, "http://127.0.0.1:4321"+row.path, strings.NewReader(row.body))
			}
			if row.with != nil {
				row.with(request)
			}
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, request)
			if passed != (row.code == "") {
				t.Fatalf("passed = %v, answer %s", passed, answer.Body)
			}
			if row.code != "" && !strings.Contains(answer.Body.String(), `"code":"`+row.code+`"`) {
				t.Errorf("the answer is %s, not %s", answer.Body, row.code)
			}
			for name := range answer.Header() {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("the answer has a CORS header: %s", name)
				}
			}
		})
	}
}
