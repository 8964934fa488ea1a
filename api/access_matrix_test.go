package api_test

import (
	"net/http"
	"strings"
	"testing"

	"sallyport/api"
)

// mayUse says which tokens open a route (spec/local-api.md 6).
var mayUse = map[api.Access]map[string]bool{
	api.Anyone:   {"anyone": true, "operator": true, "companion": true, "agent": true, "garbage": true, "removed client": true},
	api.Operator: {"operator": true},
	api.Watcher:  {"operator": true, "companion": true},
	api.Agent:    {"agent": true},
}

// TestEveryRouteForEveryCaller asks every route as everybody. Nothing in the
// addresses exists, so a caller who may use a route is refused by its handler.
func TestEveryRouteForEveryCaller(t *testing.T) {
	r := newRig(t)
	routes := api.Routes()
	if len(routes) < 25 {
		t.Fatalf("only %d routes were found", len(routes))
	}
	for _, route := range routes {
		path := strings.NewReplacer("{plugin}", "absent", "{server}", "main", "{id}", "d-absent", "{name}", "absent").Replace(route.Path)
		for as := range mayUse[api.Anyone] {
			what := route.Method + " " + path + " as " + as
			q := request{method: route.Method, path: path, as: as}
			if route.Body != nil {
				q.body = `{}`
			}
			if strings.HasSuffix(path, "/session") {
				q.path = strings.Replace(path, "absent", "operator", 1) // would make a client of any other name
			}
			got := r.send(q)
			r.clean(t, what, got)
			if mayUse[route.Access][as] {
				if got.status == http.StatusUnauthorized || got.status == http.StatusForbidden || got.status >= 500 {
					t.Errorf("%s: %d %s", what, got.status, got.body)
				}
				if got.status == http.StatusOK && route.Answer != nil {
					fits(t, route, got)
				}
				continue
			}
			want := map[string]struct {
				status int
				code   string
			}{"anyone": {401, "token-missing"}, "garbage": {401, "token-unknown"}, "removed client": {401, "token-unknown"}}[as]
			if want.status == 0 {
				want.status, want.code = 403, "not-allowed"
			}
			if code := r.refused(t, what, got); got.status != want.status || code != want.code {
				t.Errorf("%s: %d %s, not %d %s", what, got.status, code, want.status, want.code)
			}
			if (got.header.Get("WWW-Authenticate") != "") != (got.status == 401) {
				t.Errorf("%s: WWW-Authenticate is %q with %d", what, got.header.Get("WWW-Authenticate"), got.status)
			}
		}
	}
}

// TestOnlyTheOperatorAnswers: an open question stays open whoever else answers,
// and whatever else they say they are.
func TestOnlyTheOperatorAnswers(t *testing.T) {
	r := newRig(t)
	var asked, now api.Decision
	r.into(&asked, "POST", "/v1/plugins/fake/main/ask", "")
	for _, as := range []string{"anyone", "companion", "agent", "garbage", "removed client"} {
		for _, q := range []request{
			{path: "/v1/decisions/" + asked.ID + "/answer", body: `{"answer":"allow"}`},
			{path: "/v1/decisions/" + asked.ID + "/answer", body: `{"answer":"deny"}`},
			{path: "/v1/plugins/fake/main/deny"},
			{path: "/v1/plugins/fake/main/ask"},
			{path: "/v1/plugins/fake/main/call", body: `{"tool":"echo"}`},
		} {
			for _, via := range []string{"", "cli", "gui", "operator"} {
				q.method, q.as, q.header = "POST", as, map[string]string{"X-Sallyport-Via": via}
				got := r.send(q)
				r.refused(t, q.path+" as "+as, got)
				if got.status != 401 && got.status != 403 {
					t.Errorf("%s as %s by %q: %d", q.path, as, via, got.status)
				}
			}
		}
	}
	r.into(&now, "GET", "/v1/decisions/"+asked.ID, "")
	if now.State != "open" || now.AnsweredBy != nil {
		t.Errorf("the decision is %+v", now)
	}
	if running := r.host.Pool.Running(); len(running) != 0 {
		t.Errorf("something runs: %+v", running)
	}
}

// TestATokenIsTakenFromTheHeaderOnly, and as a whole.
func TestATokenIsTakenFromTheHeaderOnly(t *testing.T) {
	r := newRig(t)
	token := r.tokens["operator"]
	for name, q := range map[string]request{
		"in the query":        {path: "/v1/status?token=" + token + "&access_token=" + token},
		"as a cookie":         {path: "/v1/status", header: map[string]string{"Cookie": "token=" + token}},
		"as another kind":     {path: "/v1/status", header: map[string]string{"Authorization": "Basic " + token}},
		"without its kind":    {path: "/v1/status", header: map[string]string{"Authorization": token}},
		"with one letter off": {path: "/v1/status", header: map[string]string{"Authorization": "Bearer " + token[1:]}},
		"with one more":       {path: "/v1/status", header: map[string]string{"Authorization": "Bearer " + token + "A"}},
		"twice":               {path: "/v1/status", header: map[string]string{"Authorization": "Bearer " + token + "," + token}},
	} {
		q.method = "GET"
		if got := r.send(q); got.status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := r.send(request{method: "GET", path: "/v1/status", header: map[string]string{"Authorization": "bearer  " + token}}); got.status != 200 {
		t.Errorf("the kind's case and a second space are no difference (RFC 9110 11.1): %d", got.status)
	}
}
