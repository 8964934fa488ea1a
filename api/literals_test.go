package api_test

import (
	"strings"
	"testing"
)

// spec/child-environment.md 5.1: what looks like a credential is hidden from everybody
// who lists or looks, and refused with what to do.
func TestALiteralIsHiddenAndRefused(t *testing.T) {
	r := newRig(t)
	r.plugin("written", map[string][]string{"main": {"polite", "--token=" + sentinel}})
	if err := r.host.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, as := range []string{"operator", "companion"} {
		for _, path := range []string{"/v1/plugins", "/v1/plugins/written", "/v1/plugins/written/main"} {
			got := r.send(request{method: "GET", path: path, as: as})
			r.clean(t, path+" as "+as, got)
			if got.status != 200 || strings.HasSuffix(path, "main") && !strings.Contains(got.body, `"--token=(hidden)"`) {
				t.Errorf("%s as %s: %d %s", path, as, got.status, got.body)
			}
		}
	}
	const at = "/v1/plugins/written/main"
	r.play([]scenario{
		{name: "it is refused, with the command that mends it", request: post(at+"/ask", ""), status: 409, code: "literal-secret", has: []string{"sallyport plugins not-secret written/main 'args[1]'"}},
		{name: "an argument cannot be moved", request: post(at+"/move-secrets", `{}`), status: 409, code: "literal-fixed"},
		{name: "a variable that is not there", request: post(at+"/move-secrets", `{"names":["NOBODY"]}`), status: 404, code: "literal-unknown"},
		{name: "no name", request: post(at+"/not-secret", `{}`), status: 400, code: "bad-request"},
		{name: "a name that is none", request: post(at+"/not-secret", `{"name":"args[0]"}`), status: 404, code: "literal-unknown"},
		{name: "an unknown field", request: post(at+"/not-secret", `{"name":"args[1]","value":"x"}`), status: 400, code: "bad-request"},
		{name: "the word of the operator", request: post(at+"/not-secret", `{"name":"args[1]"}`), status: 200, has: []string{`"state":"approval_required"`}},
		{name: "it is taken back", request: post(at+"/not-secret", `{"name":"args[1]","undo":true}`), status: 200, has: []string{`"reason":"literal-secret"`}},
		{name: "and was", request: post(at+"/not-secret", `{"name":"args[1]","undo":true}`), status: 404, code: "literal-unknown"},
		{name: "where nothing is written out", request: post("/v1/plugins/fake/main/move-secrets", `{}`), status: 409, code: "literal-none"},
		{name: "a connector that is not there", request: post("/v1/plugins/absent/main/not-secret", `{"name":"A"}`), status: 404, code: "connector-unknown"},
	})
}
