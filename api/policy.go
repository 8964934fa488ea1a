package api

import (
	"net/http"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/permissions"
)

// PolicyChange sets or removes one rule. It is about a class or about a tool, for
// every client or for one.
type PolicyChange struct {
	Class  permissions.Class `json:"class,omitempty"`
	Tool   string            `json:"tool,omitempty"` // PLUGIN/SERVER:TOOL
	Client string            `json:"client,omitempty"`
	// Verdict is "allow", "ask" or "deny"; "remove" takes the rule away, and the
	// standing answers for this tool and this client with it.
	Verdict string `json:"verdict"`
}

var policyRoutes = []Route{{
	Method: http.MethodGet, Path: "/v1/policy", Access: Watcher,
	Summary: "What decides whether a call is asked about: rules, answers that hold, and tools approved without asking.",
	Answer:  approvals.Policy{}, Serve: (*Server).showPolicy,
}, {
	Method: http.MethodPost, Path: "/v1/policy", Access: Operator,
	Summary: "Sets or removes one rule, or takes back an answer that holds.",
	Body:    PolicyChange{}, Answer: approvals.Policy{}, Serve: (*Server).changePolicy,
}}

func (s *Server) showPolicy(Caller, *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	return s.policy(), nil
}

func (s *Server) changePolicy(c Caller, r *http.Request) (any, error) {
	var change PolicyChange
	if err := read(r, &change); err != nil {
		return nil, err
	}
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	rule := approvals.Rule{Class: change.Class, Tool: change.Tool, Client: change.Client}
	var err error
	if rule.Tool != "" && change.Verdict != "remove" && rule.Class == "" {
		if rule.Tool, err = s.host.Named(r.Context(), rule.Tool); err != nil {
			return nil, err
		}
	}
	switch change.Verdict {
	case "remove":
		err = s.host.Gate.RemoveRule(r.Context(), rule, s.by(c))
	case "allow", "ask", "deny":
		rule.Verdict = approvals.Verdict(change.Verdict)
		err = s.host.Gate.SetRule(r.Context(), rule, s.by(c))
	default:
		err = coded.New("bad-request", `verdict is "allow", "ask", "deny" or "remove"`)
	}
	if err != nil {
		return nil, err
	}
	return s.policy(), nil
}

func (s *Server) policy() approvals.Policy {
	p := s.host.Gate.Policy()
	p.Rules = present(p.Rules)
	return p
}
