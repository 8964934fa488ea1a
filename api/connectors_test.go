package api_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"sallyport/api"
)

// What comes in over the API is data that nobody approved: it is written down, it is
// listed, and nothing of it runs or is dialled.
func TestConnectorsEnterAsDataThatNobodyApproved(t *testing.T) {
	r := newRig(t)
	var added api.Connector
	r.into(&added, "POST", "/v1/connectors", `{"name":"a/b c","command":"node","args":["x.js"],"env":{"TOKEN":"secret:T"}}`)
	if added.ID != "connectors/a/b c" || added.State != "approval_required" && added.State != "invalid" || added.Running {
		t.Errorf("got %+v", added)
	}
	if running := r.host.Pool.Running(); len(running) != 0 {
		t.Errorf("something runs: %+v", running)
	}
	r.into(&added, "POST", "/v1/connectors", `{"name":"far","url":"https://mcp.example.com/mcp","headers":{"Authorization":"Bearer ${secret:FAR}"}}`)
	var list api.ConnectorList
	r.into(&list, "GET", "/v1/connectors", "")
	if len(list.Connectors) != 2 || list.Connectors[0].Server != "a/b c" || list.Connectors[1].Declares.URL != "https://mcp.example.com/mcp" ||
		strings.Join(list.Connectors[0].Declares.Env, " ") != "TOKEN" {
		t.Errorf("got %+v", list)
	}
	var renamed api.Connector
	r.into(&renamed, "POST", "/v1/connectors/a%2Fb%20c/rename", `{"name":"plain"}`)
	if renamed.ID != "connectors/plain" {
		t.Errorf("got %+v", renamed)
	}
	var done api.Done
	r.into(&done, "DELETE", "/v1/connectors/plain", "")
	list = api.ConnectorList{}
	if r.into(&list, "GET", "/v1/connectors", ""); len(list.Connectors) != 1 {
		t.Errorf("got %+v", list)
	}
}

func TestConnectorsThatAreRefused(t *testing.T) {
	r := newRig(t)
	for what, row := range map[string]struct {
		method, path, body, code string
		status                   int
	}{
		"no name":                 {"POST", "/v1/connectors", `{"command":"x"}`, "bad-request", 400},
		"a field of another":      {"POST", "/v1/connectors", `{"name":"a","command":"x","root":"/"}`, "bad-request", 400},
		"neither":                 {"POST", "/v1/connectors", `{"name":"a"}`, "server-invalid", 409},
		"both":                    {"POST", "/v1/connectors", `{"name":"a","command":"x","url":"https://example.com"}`, "server-contradictory", 409},
		"a credential":            {"POST", "/v1/connectors", `{"name":"a","command":"x","env":{"K":"ghp_0123456789abcdef0123456789abcdef0123"}}`, "literal-secret", 409},
		"one that is not there":   {"DELETE", "/v1/connectors/absent", "", "connector-unknown", 404},
		"a rename of none":        {"POST", "/v1/connectors/absent/rename", `{"name":"b"}`, "connector-unknown", 404},
		"a wider list of secrets": {"POST", "/v1/connectors", `{"name":"a","command":"x","permissions":{"secrets":["a b"]}}`, "server-invalid", 409},
	} {
		got := r.send(request{method: row.method, path: row.path, body: row.body, as: "operator"})
		if code := r.refused(t, what, got); code != row.code || got.status != row.status || strings.Contains(got.body, "ghp_") {
			t.Errorf("%s: %d %s", what, got.status, got.body)
		}
	}
	if _, err := os.Stat(r.host.Places.ConnectorsFile()); !os.IsNotExist(err) {
		t.Errorf("something was written: %v", err)
	}
	if err := os.WriteFile(r.host.Places.ConnectorsFile(), []byte("{ oh"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := r.send(request{method: "POST", path: "/v1/connectors", body: `{"name":"a","command":"x"}`, as: "operator"})
	if code := r.refused(t, "a file that is no JSON", got); code != "connectors-syntax" || got.status >= http.StatusInternalServerError {
		t.Errorf("a file that is no JSON: %d %s", got.status, got.body)
	}
	if raw, _ := os.ReadFile(r.host.Places.ConnectorsFile()); string(raw) != "{ oh" {
		t.Errorf("it was written to: %q", raw)
	}
}
