package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sallyport/api"
)

// scenario is one request and what has to come of it.
type scenario struct {
	name string
	request
	status int
	code   string // of an error
	has    []string
	not    []string
}

func (r *rig) play(scenarios []scenario) {
	for _, s := range scenarios {
		r.t.Run(s.name, func(t *testing.T) {
			if s.as == "" {
				s.as = "operator"
			}
			got := r.send(s.request)
			if got.status != s.status {
				t.Errorf("status %d, not %d", got.status, s.status)
			}
			if s.status >= 400 && s.method != http.MethodHead {
				if code := r.refused(t, s.name, got); code != s.code {
					t.Errorf("code %q, not %q", code, s.code)
				}
			}
			r.clean(t, s.name, got)
			for _, text := range s.has {
				if !strings.Contains(got.body, text) {
					t.Errorf("it does not say %q", text)
				}
			}
			for _, text := range s.not {
				if strings.Contains(got.body, text) {
					t.Errorf("it says %q", text)
				}
			}
			if t.Failed() {
				t.Log(got.body)
			}
		})
	}
}

func get(path string) request        { return request{method: "GET", path: path} }
func post(path, body string) request { return request{method: "POST", path: path, body: body} }
func remove(path string) request     { return request{method: "DELETE", path: path} }

func TestBeforeAnythingIsApproved(t *testing.T) {
	newRig(t).play([]scenario{
		{name: "the list has every connector and the rejected plugin", request: get("/v1/plugins"), status: 200,
			has: []string{`"id":"fake/main"`, `"id":"two/a"`, `"id":"broken"`, `"state":"approval_required"`, `"state":"invalid"`}},
		{name: "scanning answers like the list", request: post("/v1/plugins/scan", ""), status: 200, has: []string{`"id":"two/b"`}},
		{name: "a plugin's name alone will do where it has one server", request: get("/v1/plugins/fake"), status: 200, has: []string{`"id":"fake/main"`}},
		{name: "and not where it has two", request: get("/v1/plugins/two"), status: 409, code: "plugin-ambiguous"},
		{name: "a plugin that is not there", request: get("/v1/plugins/absent/main"), status: 404, code: "plugin-unknown"},
		{name: "a server that is not there", request: get("/v1/plugins/fake/absent"), status: 404, code: "plugin-unknown"},
		{name: "a call before approval", request: post("/v1/plugins/fake/main/call", `{"tool":"echo","args":{}}`), status: 409, code: "never-approved"},
		{name: "the review shows what would run", request: get("/v1/plugins/fake/main/review"), status: 200, has: []string{`"command":`, `"digest":"a1:`}},
		{name: "the diff without an approval", request: get("/v1/plugins/fake/main/diff"), status: 200, has: []string{`"files":[`, `"tools":[]`}},
		{name: "the environment is masked", request: get("/v1/plugins/fake/main/env"), status: 200, has: []string{`"PATH"`}, not: []string{"AWS_SECRET_ACCESS_KEY"}},
		{name: "no decisions", request: get("/v1/decisions"), status: 200, has: []string{`{"decisions":[]}`}},
		{name: "no tools", request: get("/v1/tools"), status: 200, has: []string{`{"tools":[]}`}},
		{name: "nothing to configure", request: get("/v1/plugins/fake/main/config"), status: 200, has: []string{`"settings":[],"missing":[]`}},
		{name: "a setting that is not there", request: post("/v1/plugins/fake/main/config", `{"set":{"a":["b"]}}`), status: 404, code: "setting-unknown"},
		{name: "no setting at all", request: post("/v1/plugins/fake/main/config", `{}`), status: 400, code: "bad-request"},
		{name: "no secrets", request: get("/v1/secrets"), status: 200, has: []string{`{"secrets":[],`, `"state":"not-asked"`}},
		{name: "a decision that is not there", request: get("/v1/decisions/d-absent"), status: 404, code: "decision-unknown"},
		{name: "answering one that is not there", request: post("/v1/decisions/d-absent/answer", `{"answer":"deny"}`), status: 404, code: "decision-unknown"},
		{name: "an answer that is neither yes nor no", request: post("/v1/decisions/d-absent/answer", `{"answer":"maybe"}`), status: 400, code: "bad-request"},
		{name: "enabling what was never approved", request: post("/v1/plugins/fake/main/enable", ""), status: 409, code: "never-approved"},
		{name: "the settings say who may answer and where plugins lie", request: get("/v1/settings"), status: 200, has: []string{`"answerOnlyInWindow":false`, `"data/plugins"`, `"bundled"`}},
		{name: "only the window says that only it may answer", request: post("/v1/settings", `{"answerOnlyInWindow":true}`), status: 409, code: "answer-only-in-gui"},
		{name: "and nobody says nothing", request: post("/v1/settings", `{}`), status: 400, code: "bad-request"},
		{name: "the status counts", request: get("/v1/status"), status: 200, has: []string{`"version":"1.2.3"`, `"approval_required":4`, `"problems":[]`}},
	})
}

func TestBodiesAreReadStrictly(t *testing.T) {
	const answer = "/v1/decisions/d-absent/answer"
	newRig(t).play([]scenario{
		{name: "an unknown field", request: post(answer, `{"answer":"allow","force":true}`), status: 400, code: "bad-request"},
		{name: "two documents", request: post(answer, `{"answer":"allow"}{"answer":"deny"}`), status: 400, code: "bad-request"},
		{name: "something behind the document", request: post(answer, `{"answer":"allow"} x`), status: 400, code: "bad-request"},
		{name: "a wrong type", request: post(answer, `{"answer":true}`), status: 400, code: "bad-request"},
		{name: "a list instead of an object", request: post(answer, `["allow"]`), status: 400, code: "bad-request"},
		{name: "no JSON", request: post(answer, `answer=allow`), status: 400, code: "bad-request"},
		{name: "null", request: post(answer, `null`), status: 400, code: "bad-request"},
		{name: "no body", request: post(answer, ""), status: 400, code: "bad-request"},
		{name: "another content type", status: 415, code: "content-type",
			request: request{method: "POST", path: answer, body: `{"answer":"allow"}`, header: map[string]string{"Content-Type": "text/plain"}}},
		{name: "another charset", status: 415, code: "content-type",
			request: request{method: "POST", path: answer, body: `{"answer":"allow"}`, header: map[string]string{"Content-Type": "application/json; charset=utf-16"}}},
		{name: "a form", status: 415, code: "content-type",
			request: request{method: "POST", path: answer, body: `answer=allow`, header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}}},
		{name: "more than 8 MiB, said before", status: 413, code: "body-too-large",
			request: request{method: "POST", path: answer, body: `{"answer":"` + strings.Repeat("a", 8<<20) + `"}`, header: map[string]string{"Expect": "100-continue"}}},
		{name: "more than 8 MiB, not said before", status: 413, code: "body-too-large",
			request: request{method: "POST", path: answer, body: `{"answer":"` + strings.Repeat("a", 8<<20) + `"}`, chunked: true}},
		{name: "a call without a tool", request: post("/v1/plugins/fake/main/call", `{"args":{}}`), status: 400, code: "bad-request"},
		{name: "arguments that are no object", request: post("/v1/plugins/fake/main/call", `{"tool":"echo","args":[1]}`), status: 400, code: "bad-request"},
		{name: "arguments that are null", request: post("/v1/plugins/fake/main/call", `{"tool":"echo","args":null}`), status: 400, code: "bad-request"},
	})
}

func TestMethodsAndAddresses(t *testing.T) {
	r := newRig(t)
	r.play([]scenario{
		{name: "HEAD of health needs no token", request: request{method: "HEAD", path: "/api/desktop-health", as: "anyone"}, status: 200},
		{name: "an address that is nobody's", request: get("/v2/plugins"), status: 404, code: "not-found"},
		{name: "a page that was not built", request: get("/assets"), status: 404, code: "not-found"},
		{name: "a doubled slash", request: get("//v1/plugins"), status: 404, code: "not-found"},
		{name: "a way back", request: get("/v1/decisions/../plugins"), status: 404, code: "not-found"},
		{name: "an encoded way back", request: get("/v1/plugins/fake/%2e%2e"), status: 404, code: "not-found"},
		{name: "an encoded slash in a name", request: get("/v1/plugins/..%2f..%2fetc/main"), status: 404, code: "not-found"},
		{name: "a slash in a server's name", request: get("/v1/plugins/fake/a%2Fb"), status: 404, code: "plugin-unknown"},
		{name: "a name of CJK letters", request: get("/v1/plugins/" + url.PathEscape("插件") + "/main"), status: 400, code: "id-invalid"},
		{name: "a name of 200 letters", request: get("/v1/plugins/" + strings.Repeat("a", 200) + "/main"), status: 400, code: "id-invalid"},
	})
	for _, row := range []struct{ method, path, allow string }{
		{"POST", "/api/desktop-health", "GET, HEAD"},
		{"PUT", "/v1/plugins", "GET, HEAD"},
		{"DELETE", "/v1/plugins/scan", "GET, HEAD, POST"}, // GET: a plugin may be called scan
		{"PATCH", "/v1/clients", "GET, HEAD, POST"},
		{"PATCH", "/v1/clients/absent", "GET, HEAD, DELETE"},
		{"GET", "/v1/clients/absent/grant", "POST"},
		{"OPTIONS", "/v1/status", "GET, HEAD"},
		{"PUT", "/mcp", "GET, HEAD, POST, DELETE"},
	} {
		got := r.send(request{method: row.method, path: row.path, as: "operator"})
		if code := r.refused(t, row.method+" "+row.path, got); got.status != 405 || code != "method-not-allowed" || got.header.Get("Allow") != row.allow {
			t.Errorf("%s %s: %d %s, Allow: %s", row.method, row.path, got.status, code, got.header.Get("Allow"))
		}
	}
}

func TestClientsByTheAPI(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("n", 200)
	r.play([]scenario{
		{name: "a client is added", request: post("/v1/clients", `{"name":"claude"}`), status: 200, has: []string{`"name":"claude"`, `"token":"`}},
		{name: "not twice", request: post("/v1/clients", `{"name":"claude"}`), status: 409, code: "client-exists"},
		{name: "not without a name", request: post("/v1/clients", `{}`), status: 400, code: "client-name-invalid"},
		{name: "not as the operator", request: post("/v1/clients", `{"name":"operator"}`), status: 400, code: "client-name-invalid"},
		{name: "not with 200 letters", request: post("/v1/clients", `{"name":"`+long+`"}`), status: 400, code: "client-name-invalid"},
		{name: "not with a name that is a way back", request: post("/v1/clients", `{"name":"../x"}`), status: 400, code: "client-name-invalid"},
		{name: "not with a name of dots", request: post("/v1/clients", `{"name":".."}`), status: 400, code: "client-name-invalid"},
		{name: "but with one of CJK letters", request: post("/v1/clients", `{"name":"助手 1"}`), status: 200},
		{name: "which can be removed", request: remove("/v1/clients/" + url.PathEscape("助手 1")), status: 200},
		{name: "not with a character that cannot be seen", request: post("/v1/clients", `{"name":"a\u202eb"}`), status: 400, code: "client-name-invalid"},
		{name: "not with a scope that is both", request: post("/v1/clients", `{"name":"x","scope":{"all":true,"only":["fake/main"]}}`), status: 400, code: "scope-invalid"},
		{name: "not with a scope that is no connector", request: post("/v1/clients", `{"name":"x","scope":{"only":["../x"]}}`), status: 400, code: "scope-invalid"},
		{name: "the list has it, without a token", request: get("/v1/clients"), status: 200, has: []string{`"name":"claude"`, `"only":[]`}, not: []string{"token", "hash"}},
		{name: "it is shown", request: get("/v1/clients/claude"), status: 200, has: []string{`"all":true`, `"openSessions":0`}, not: []string{"token", "hash", "seenAt"}},
		{name: "what is not there is not shown", request: get("/v1/clients/absent"), status: 404, code: "client-unknown"},
		{name: "it sees everything already", request: post("/v1/clients/claude/grant", `{"only":["fake/main"]}`), status: 409, code: "scope-all"},
		{name: "less", request: post("/v1/clients/claude/revoke", `{"only":["fake/main"]}`), status: 200, has: []string{`"all":false`, `"only":[]`}},
		{name: "less than that is none", request: post("/v1/clients/claude/revoke", `{"only":["fake/main"]}`), status: 409, code: "scope-absent"},
		{name: "more", request: post("/v1/clients/claude/grant", `{"only":["fake/main:echo"]}`), status: 200, has: []string{`"only":["fake/main:echo"]`}},
		{name: "all again", request: post("/v1/clients/claude/grant", `{"all":true}`), status: 200, has: []string{`"all":true`}},
		{name: "not all and some", request: post("/v1/clients/claude/grant", `{"all":true,"only":["fake/main"]}`), status: 400, code: "scope-invalid"},
		{name: "not nothing", request: post("/v1/clients/claude/grant", `{}`), status: 400, code: "scope-invalid"},
		{name: "not less of all", request: post("/v1/clients/claude/revoke", `{"all":true}`), status: 400, code: "scope-invalid"},
		{name: "not what is no connector", request: post("/v1/clients/claude/revoke", `{"only":["../x"]}`), status: 400, code: "scope-invalid"},
		{name: "another token", request: post("/v1/clients/claude/rotate", ""), status: 200, has: []string{`"token":"sp_`}},
		{name: "for nobody", request: post("/v1/clients/absent/rotate", ""), status: 404, code: "client-unknown"},
		{name: "it is removed", request: remove("/v1/clients/claude"), status: 200, has: []string{`{"ok":true}`}},
		{name: "once", request: remove("/v1/clients/claude"), status: 404, code: "client-unknown"},
		{name: "no session for who was removed", request: post("/v1/clients/claude/session", ""), status: 403, code: "client-removed"},
		{name: "a session for a client that is the operator", request: post("/v1/clients/operator/session", ""), status: 400, code: "client-name-invalid"},
	})
}

// TestFromAskToCall goes the whole way by the API alone, and checks every answer
// against its schema (spec/approval.md 7, local-api.md 8).
func TestFromAskToCall(t *testing.T) {
	r := newRig(t)
	r.approve("echo", "fail")
	r.play([]scenario{
		{name: "a tool that was chosen", request: post("/v1/plugins/fake/main/call", `{"tool":"echo","args":{"n":1.50,"s":"ü"}}`), status: 200, has: []string{`1.50`, `ü`}},
		{name: "an error of the server's own", request: post("/v1/plugins/fake/main/call", `{"tool":"fail","args":{}}`), status: 502, code: "server-error"},
		{name: "a tool that was not", request: post("/v1/plugins/fake/main/call", `{"tool":"env","args":{}}`), status: 403, code: "permission-denied"},
		{name: "a tool that is not there", request: post("/v1/plugins/fake/main/call", `{"tool":"absent","args":{}}`), status: 409, code: "tool-missing"},
		{name: "the tools that may be called", request: get("/v1/tools"), status: 200, has: []string{`"name":"echo"`, `"exposed":"fake__main__echo"`}, not: []string{`"name":"env"`}},
		{name: "it is kept from running", request: post("/v1/plugins/fake/main/disable", ""), status: 200, has: []string{`"state":"disabled"`}},
		{name: "and is refused with the reason", request: post("/v1/plugins/fake/main/call", `{"tool":"echo","args":{}}`), status: 409, code: "disabled"},
		{name: "it may run again", request: post("/v1/plugins/fake/main/enable", ""), status: 200, has: []string{`"state":"enabled"`}},
		{name: "it is revoked", request: post("/v1/plugins/fake/main/revoke", ""), status: 200, has: []string{`"state":"approval_required"`}},
		{name: "and is refused with the reason", request: post("/v1/plugins/fake/main/call", `{"tool":"echo","args":{}}`), status: 409, code: "revoked"},
		{name: "a no", request: post("/v1/plugins/fake/main/deny", ""), status: 200, has: []string{`"state":"denied"`, `"via":"api"`}},
	})
}

// TestEveryAnswerFitsTheContract walks every GET route with something in it.
func TestEveryAnswerFitsTheContract(t *testing.T) {
	r := newRig(t)
	var asked api.Decision
	r.into(&asked, "POST", "/v1/plugins/two/a/ask", "")
	r.approve("echo")
	r.into(nil, "POST", "/v1/plugins/fake/main/call", `{"tool":"echo","args":{}}`)
	var begun api.Installation
	r.into(&begun, "POST", "/v1/installations", r.sourceBody(t, "added"))
	walked := 0
	for _, connector := range []string{"fake/main", "two/a", "two/b"} {
		plugin, server, _ := strings.Cut(connector, "/")
		for _, route := range api.Routes() {
			path := strings.NewReplacer("{plugin}", plugin, "{server}", server, "{id}", asked.ID, "{installation}", begun.ID, "{name}", "agent").Replace(route.Path)
			if route.Method != http.MethodGet || route.Answer == nil || path == "/v1/plugins/two" ||
				strings.HasSuffix(path, "/login") || // nobody signs in here: see the tests of signing in
				strings.HasSuffix(path, "/probe") || // nor is anything tried: see TestAFirstTryByTheAPI
				strings.HasPrefix(path, "/v1/consoles/") { // nor opens a console: see TestAConsoleOverTheAPI
				continue
			}
			if strings.HasSuffix(path, "/file") {
				path += "?path=plugin.json&copy=now"
			}
			got := r.send(request{method: "GET", path: path, as: "operator"})
			if got.status != http.StatusOK {
				t.Errorf("GET %s: %d %s", path, got.status, got.body)
				continue
			}
			walked++
			r.clean(t, path, got)
			fits(t, route, got)
		}
	}
	if walked < 40 {
		t.Errorf("only %d answers were walked", walked)
	}
}

// sourceBody is the body that asks for a plugin of that name from a folder.
func (r *rig) sourceBody(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	manifest := `{"$schema":"https://agent-plugins.org/schemas/1.0.0/plugin.schema.json","name":"` + name + `","version":"1.0.0"}`
	if err := os.WriteFile(filepath.Join(dir, "plugin.json"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(api.NewInstallation{Source: dir})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestABundleGoesIntoPlaceByTheAPIAlone: from the source to the decision and the list.
func TestABundleGoesIntoPlaceByTheAPIAlone(t *testing.T) {
	r := newRig(t)
	var now api.Installation
	r.into(&now, "POST", "/v1/installations", r.sourceBody(t, "added"))
	for now.State == "staging" {
		r.into(&now, "GET", "/v1/installations/"+now.ID+"?wait=10s&after="+strconv.Itoa(now.Revision), "")
	}
	var d api.DecisionDetail
	r.into(&d, "GET", "/v1/decisions/"+now.Decision, "")
	if d.Stage != "bundle" || d.Action != "install" || d.Subject != "added" || d.Bundle == nil || d.Bundle.Digest != d.Digest || !strings.HasPrefix(d.Bundle.Sentence, "added 1.0.0 is to be installed from ") {
		t.Fatalf("the question is %+v", d)
	}
	r.play([]scenario{
		{name: "nothing is there before the answer", request: post("/v1/plugins/added/uninstall", `{}`), status: 404, code: "plugin-unknown"},
		{name: "the yes", request: post("/v1/decisions/"+d.ID+"/answer", `{"answer":"allow"}`), status: 200, has: []string{`"state":"allowed"`, `"via":"api"`}},
		{name: "a second yes", request: post("/v1/decisions/"+d.ID+"/answer", `{"answer":"allow"}`), status: 409, code: "decision-closed"},
		{name: "there is no version before it", request: post("/v1/plugins/added/undo", ""), status: 409, code: "no-previous"},
		{name: "a plugin that somebody else put there", request: post("/v1/plugins/fake/uninstall", `{}`), status: 409, code: "not-installed"},
		{name: "it can be asked to go", request: post("/v1/plugins/added/uninstall", `{"purge":true}`), status: 200, has: []string{`"purge":true`, `"action":"uninstall"`}},
		{name: "a source that is none", request: post("/v1/installations", `{"source":"npm:x@latest"}`), status: 409, code: "source-version-floating"},
		{name: "a relative path is nobody's", request: post("/v1/installations", `{"source":"x"}`), status: 409, code: "source-unknown"},
		{name: "an installation that is none", request: get("/v1/installations/i-none"), status: 404, code: "installation-unknown"},
	})
}

// TestFiveQuestions: one answer says it all (spec/approval.md 7).
func TestFiveQuestions(t *testing.T) {
	r := newRig(t)
	r.approve("echo")
	r.into(nil, "POST", "/v1/plugins/fake/main/call", `{"tool":"echo","args":{}}`)
	var d api.ConnectorDetail
	r.into(&d, "GET", "/v1/plugins/fake/main", "")
	if d.Declares.Command != "./bin/server.exe" || !slices.Equal(d.Declares.Args, []string{"polite"}) || d.Declares.Description != "a fake" {
		t.Errorf("what it declares: %+v", d.Declares)
	}
	if len(d.MayTouch.Words) == 0 {
		t.Errorf("what it may touch: %+v", d.MayTouch)
	}
	actions := map[string]bool{}
	for _, record := range d.Did.Recent {
		actions[record.Action] = true
	}
	for _, action := range []string{"ask", "allow", "start", "call"} {
		if !actions[action] {
			t.Errorf("what it did has no %q: %v", action, actions)
		}
	}
	var page api.AuditPage
	r.into(&page, "GET", d.Did.Audit, "")
	if len(page.Records) < len(d.Did.Recent) {
		t.Errorf("the link %s has %d records, the answer itself %d", d.Did.Audit, len(page.Records), len(d.Did.Recent))
	}
	if d.Approved == nil || d.Approved.By == "" || d.Approved.Via != "api" || d.Approved.At.IsZero() || !slices.Equal(d.Approved.Tools, []string{"echo"}) {
		t.Errorf("who approved it: %+v", d.Approved)
	}
	if len(d.Provides.Tools) != 1 || d.Provides.Tools[0].Name != "echo" || !d.Running || d.Run == nil {
		t.Errorf("what it provides: %+v, running %+v", d.Provides, d.Run)
	}
}

// TestAuditPages walks the record by cursors, and by every filter.
func TestAuditPages(t *testing.T) {
	r := newRig(t)
	r.approve("echo")
	r.into(nil, "POST", "/v1/plugins/fake/main/call", `{"tool":"echo","args":{}}`)
	r.send(request{method: "POST", path: "/v1/plugins/fake/main/call", as: "operator", body: `{"tool":"env","args":{}}`})

	var all, page api.AuditPage
	r.into(&all, "GET", "/v1/plugins/audit?limit=500", "")
	var walked []uint64
	cursor := ""
	for n := 0; n == 0 || cursor != ""; n++ {
		if n > len(all.Records) {
			t.Fatal("the cursors go round")
		}
		r.into(&page, "GET", "/v1/plugins/audit?limit=3&cursor="+url.QueryEscape(cursor), "")
		for _, record := range page.Records {
			walked = append(walked, record.Seq)
		}
		cursor, page = page.Next, api.AuditPage{}
	}
	var want []uint64
	for _, record := range all.Records {
		want = append(want, record.Seq)
	}
	if len(want) < 8 || !slices.Equal(walked, want) || !slices.IsSortedFunc(want, func(a, b uint64) int { return int(b) - int(a) }) {
		t.Errorf("by pages %v, at once %v", walked, want)
	}
	for filter, n := range map[string]int{
		"action=call": 1, "action=refuse": 1, "result=refused": 1, "reason=permission-denied": 1, "client=operator&result=ok": 1,
		"plugin=two": 0, "action=call&plugin=fake": 1, "since=2199-01-01T00:00:00Z": 0, "until=2000-01-01T00:00:00Z": 0,
		fmt.Sprintf("after=%d", want[0]): 0, "before=3": 2,
	} {
		r.into(&page, "GET", "/v1/plugins/audit?"+filter, "")
		if len(page.Records) != n {
			raw, _ := json.Marshal(page.Records)
			t.Errorf("?%s: %d records, not %d: %s", filter, len(page.Records), n, raw)
		}
		page = api.AuditPage{}
	}
	r.play([]scenario{
		{name: "a limit over 500", request: get("/v1/plugins/audit?limit=501"), status: 400, code: "bad-request"},
		{name: "a limit of nothing", request: get("/v1/plugins/audit?limit=0"), status: 400, code: "bad-request"},
		{name: "a time that is none", request: get("/v1/plugins/audit?since=yesterday"), status: 400, code: "bad-request"},
		{name: "a cursor that is none", request: get("/v1/plugins/audit?cursor=%27%3B--"), status: 400, code: "audit-invalid"},
		{name: "an action that is none", request: get("/v1/plugins/audit?action=eat"), status: 400, code: "bad-request", has: []string{"client.add"}},
		{name: "a result that is none", request: get("/v1/plugins/audit?result=maybe"), status: 400, code: "bad-request"},
		{name: "a plugin that is SQL", request: get("/v1/plugins/audit?plugin=" + url.QueryEscape(`x' OR 1=1 --`)), status: 200, has: []string{`"records":[]`}},
		{name: "an export as CSV", request: get("/v1/audit/export?format=csv"), status: 200, has: []string{"seq,at,actor"}},
		{name: "an export as JSON lines", request: get("/v1/audit/export?action=call"), status: 200, has: []string{`"action":"call"`}, not: []string{`"action":"ask"`}},
		{name: "what went on", request: get("/v1/audit/activity"), status: 200, has: []string{`"calls":1,"refused":1,"failed":0`}},
		{name: "what will go on", request: get("/v1/audit/activity?since=2199-01-01T00:00:00Z"), status: 200, has: []string{`"hours":[]`}},
		{name: "what went on since no time", request: get("/v1/audit/activity?since=yesterday"), status: 400, code: "bad-request"},
		{name: "whether it verifies", request: request{method: "POST", path: "/v1/audit/verify", as: "operator"}, status: 200, has: []string{`"headChecked":`}, not: []string{`"break"`}},
		{name: "an export as something else", request: get("/v1/audit/export?format=xml"), status: 400, code: "bad-request"},
	})
	var exports api.AuditPage
	r.into(&exports, "GET", "/v1/plugins/audit?action=export", "")
	if len(exports.Records) != 2 {
		t.Errorf("two exports are %d records", len(exports.Records))
	}
}

// TestViaIsALabel: no header makes an answer count as the window's.
func TestViaIsALabel(t *testing.T) {
	r := newRig(t)
	for header, via := range map[string]string{"cli": "cli", "gui": "api", "companion": "api", "": "api"} {
		var asked, denied api.Decision
		r.into(&asked, "POST", "/v1/plugins/two/b/ask", "")
		got := r.send(request{method: "POST", path: "/v1/decisions/" + asked.ID + "/answer", as: "operator", body: `{"answer":"deny"}`,
			header: map[string]string{"X-Sallyport-Via": header}})
		if err := json.Unmarshal([]byte(got.body), &denied); err != nil || denied.AnsweredBy == nil || denied.AnsweredBy.Via != via {
			t.Errorf("by %q: %s", header, got.body)
		}
	}
}
