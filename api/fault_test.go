package api_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/api"
	"sallyport/runtime/host"
)

// TestADamagedStoreClosesEveryRoute: nothing is listed, asked or run from what
// cannot be read, and every answer says why (spec/approval.md 5.5).
func TestADamagedStoreClosesEveryRoute(t *testing.T) {
	r := &rig{t: t, dir: t.TempDir()}
	places := host.PlacesIn(r.dir)
	if err := os.MkdirAll(filepath.Dir(places.Database()), 0o700); err != nil {
		t.Fatal(err)
	}
	damaged := []byte(strings.Repeat("this is no database\n", 500))
	if err := os.WriteFile(places.Database(), damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	r.open(places)
	if r.host.Fault() == nil {
		t.Fatal("the host opened a damaged store")
	}
	r.listen()
	r.tokens = map[string]string{"operator": r.host.Tokens.Operator, "companion": r.host.Tokens.Companion, "garbage": "x", "agent": "none is known"}
	answered := 0
	for _, route := range api.Routes() {
		if route.Access == api.Agent || route.Path == "/v1/events" || isOfPages(route) {
			continue
		}
		path := strings.NewReplacer("{plugin}", "fake", "{server}", "main", "{id}", "d-1", "{name}", "n").Replace(route.Path)
		q := request{method: route.Method, path: path, as: "operator"}
		if route.Body != nil {
			q.body = map[string]string{"/v1/clients": `{"name":"n"}`, "/v1/connectors": `{"name":"n","command":"x"}`, "/v1/connectors/n/rename": `{"name":"m"}`, "/v1/secrets": `{"name":"N","value":""}`, "/v1/seal-key/move": `{"to":"file"}`}[path]
			if q.body == "" {
				q.body = map[bool]string{true: `{"answer":"allow"}`, false: `{"tool":"echo"}`}[strings.HasPrefix(path, "/v1/decisions")]
			}
		}
		got := r.send(q)
		answered++
		what := route.Method + " " + path
		r.clean(t, what, got)
		switch path {
		case "/v1/status":
			if got.status != http.StatusOK || !strings.Contains(got.body, `"ok":false`) || !strings.Contains(got.body, "store-") {
				t.Errorf("%s: %d %s", what, got.status, got.body)
			}
		case "/v1/diagnostics", "/v1/diagnostics/save": // they are what helps then
			if got.status != http.StatusOK {
				t.Errorf("%s: %d %s", what, got.status, got.body)
			}
		case "/api/desktop-health":
			if got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, `"problems":["store-`) {
				t.Errorf("%s: %d %s", what, got.status, got.body)
			}
		default:
			if code := r.refused(t, what, got); got.status != http.StatusServiceUnavailable || !strings.HasPrefix(code, "store-") {
				t.Errorf("%s: %d %s", what, got.status, got.body)
			}
		}
	}
	if answered < 20 {
		t.Errorf("only %d routes were asked", answered)
	}
	if got := r.send(request{method: "POST", path: "/mcp", as: "garbage", body: `{}`}); got.status != http.StatusUnauthorized {
		t.Errorf("an agent gets %d: no token is known without a store", got.status)
	}
	if now, err := os.ReadFile(places.Database()); err != nil || string(now) != string(damaged) {
		t.Error("the damaged file was written to")
	}
}

// isOfPages: a person signs a browser in to see what is wrong with the store.
func isOfPages(route api.Route) bool {
	return route.Path == "/v1/session" || route.Path == "/v1/pages/link"
}
