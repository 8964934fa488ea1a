package api

import (
	"net/http"
	"strings"
	"testing"
)

// TestEveryRouteHasAnAccessRule walks the whole contract (spec/local-api.md 6).
func TestEveryRouteHasAnAccessRule(t *testing.T) {
	routes := Routes()
	if len(routes) < 25 {
		t.Fatalf("only %d routes were found", len(routes))
	}
	seen := map[string]bool{}
	for _, r := range routes {
		name := r.Method + " " + r.Path
		if r.Access == noAccessRule {
			t.Errorf("%s has no access rule", name)
		}
		if r.Access == Anyone && r.Path != "/api/desktop-health" && name != "POST /v1/session" {
			t.Errorf("%s needs no token; only health and the code of a one-time link may", name)
		}
		if (r.Access == Agent) != strings.HasPrefix(r.Path, "/mcp") {
			t.Errorf("%s: the agents' token is for /mcp, and /mcp for the agents' token", name)
		}
		if r.Method != http.MethodGet && r.Access == Watcher {
			t.Errorf("%s changes something and is open to the companion, which only sees", name)
		}
		if (r.Serve == nil) == (r.Stream == nil) {
			t.Errorf("%s has to have exactly one of Serve and Stream", name)
		}
		if r.Summary == "" || !strings.HasSuffix(r.Summary, ".") {
			t.Errorf("%s has no summary, or it is no sentence", name)
		}
		if r.Serve != nil && r.Answer == nil {
			t.Errorf("%s does not say what it answers", name)
		}
		if seen[name] {
			t.Errorf("%s stands twice", name)
		}
		seen[name] = true
	}
}

func TestWhoMayUseWhat(t *testing.T) {
	anyone, operator := Caller{Kind: "anyone"}, Caller{Kind: "operator"}
	companion, agent := Caller{Kind: "companion"}, Caller{Kind: "agent", Client: "claude"}
	for _, row := range []struct {
		rule Access
		may  []Caller
		not  []Caller
	}{
		{Anyone, []Caller{anyone, operator, companion, agent}, nil},
		{Operator, []Caller{operator}, []Caller{anyone, companion, agent}},
		{Watcher, []Caller{operator, companion}, []Caller{anyone, agent}},
		{Agent, []Caller{agent}, []Caller{anyone, operator, companion}},
		{noAccessRule, nil, []Caller{anyone, operator, companion, agent}},
		{Access(99), nil, []Caller{anyone, operator, companion, agent}},
	} {
		for _, c := range row.may {
			if err := allow(row.rule, c); err != nil {
				t.Errorf("rule %d refuses the %s: %v", row.rule, c.Kind, err)
			}
		}
		for _, c := range row.not {
			if allow(row.rule, c) == nil {
				t.Errorf("rule %d lets the %s through", row.rule, c.Kind)
			}
		}
	}
}

func TestTokensAreComparedWholeAndNeverWithNothing(t *testing.T) {
	for _, row := range []struct {
		given, want string
		same        bool
	}{
		{"secret", "secret", true},
		{"secre", "secret", false},
		{"secret ", "secret", false},
		{"", "", false},
		{"x", "", false},
	} {
		if got := sameToken(row.given, row.want); got != row.same {
			t.Errorf("sameToken(%q, %q) = %v", row.given, row.want, got)
		}
	}
}
