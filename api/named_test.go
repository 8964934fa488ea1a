package api_test

import (
	"strings"
	"testing"

	"sallyport/api"
)

// TestANameWithAWrongLetterIsNoName: a scope or a rule about what does not exist would say
// nothing and look as if it did; it is refused with what was meant. A plugin's name alone
// stands for its one server.
func TestANameWithAWrongLetterIsNoName(t *testing.T) {
	r := newRig(t)
	r.approve("echo")
	r.into(&api.ClientToken{}, "POST", "/v1/clients", `{"name":"claude","scope":{"only":["two/a"]}}`)
	grant := func(line string) request {
		return request{method: "POST", path: "/v1/clients/claude/grant", as: "operator", body: `{"only":["` + line + `"]}`}
	}
	rule := func(tool string) request {
		return request{method: "POST", path: "/v1/policy", as: "operator", body: `{"tool":"` + tool + `","verdict":"deny"}`}
	}
	for name, row := range map[string]struct {
		q          request
		code, next string
	}{
		"a grant of nothing that is there":                          {grant("nope/x"), "plugin-unknown", "plugins list"},
		"a grant with a wrong letter":                               {grant("fkae/main"), "plugin-unknown", "did you mean fake/main?"},
		"a grant of a plugin of two servers":                        {grant("two"), "plugin-ambiguous", "PLUGIN/SERVER"},
		"a grant of a tool with a slip":                             {grant("fake/main:ehco"), "tool-unknown", "did you mean echo?"},
		"a rule about no connector":                                 {rule("nope/x:echo"), "plugin-unknown", "plugins list"},
		"a rule about a tool with a slip":                           {rule("fake/main:eco"), "tool-unknown", "did you mean echo?"},
		"a new client that sees a slip":                             {request{method: "POST", path: "/v1/clients", as: "operator", body: `{"name":"x","scope":{"only":["fake/mian"]}}`}, "plugin-unknown", "fake/main"},
		"a process with nearly the name of a client that sees less": {request{method: "POST", path: "/v1/clients/cluade/session", as: "operator"}, "client-unknown", "clients add cluade"},
	} {
		got := r.send(row.q)
		if code := r.refused(t, name, got); code != row.code || !strings.Contains(got.body, row.next) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	var now api.Client
	r.into(&now, "POST", "/v1/clients/claude/grant", `{"only":["fake"]}`)
	if len(now.Scope.Only) != 2 || now.Scope.Only[0] != "fake/main" {
		t.Errorf("a plugin's name alone is %q", now.Scope.Only)
	}
	for name, q := range map[string]request{
		"a rule about a tool that is allowed":                      rule("fake/main:echo"),
		"a rule about a tool of a connector that nobody looked at": rule("two/b:anything"),
	} {
		if got := r.send(q); got.status != 200 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	var first, second api.ClientToken
	r.into(&first, "POST", "/v1/clients/another/session", "")
	r.into(&second, "POST", "/v1/clients/another/session", "")
	if !first.Added || second.Added {
		t.Errorf("a client of a new name is said to be added: %v, and then %v", first.Added, second.Added)
	}
}
