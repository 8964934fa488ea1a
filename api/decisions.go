package api

import (
	"net/http"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/permissions"
)

// Decision is a durable question, without the long parts that a review has.
type Decision struct {
	ID      string `json:"id"`
	Kind    string `json:"kind"`
	Stage   string `json:"stage"`
	Action  string `json:"action"`
	Subject string `json:"subject"` // PLUGIN/SERVER
	// Sentence is the question in one line.
	Sentence   string        `json:"sentence"`
	Options    []string      `json:"options"`
	CreatedAt  time.Time     `json:"createdAt"`
	ExpiresAt  time.Time     `json:"expiresAt"`
	State      string        `json:"state"`
	Code       string        `json:"code,omitempty"`
	Answer     string        `json:"answer,omitempty"`
	AnsweredBy *approvals.By `json:"answeredBy,omitempty"`
	AnsweredAt *time.Time    `json:"answeredAt,omitempty"`
	Next       string        `json:"next,omitempty"` // the decision that took its place or follows
	Identity   string        `json:"identity"`
	Digest     string        `json:"digest"`
	Version    string        `json:"version"`
	// Tools are on offer, for the stage "tools".
	Tools []approvals.OfferedTool `json:"tools,omitempty"`
	// Chosen are the tools that were allowed.
	Chosen []string `json:"chosen,omitempty"`
	// Bundle is what a decision of the stage "bundle" is about.
	Bundle *BundleQuestion `json:"bundle,omitempty"`
	// Call is what a decision of the kind "call" is about.
	Call *CallQuestion `json:"call,omitempty"`
}

// CallQuestion is one call that waits for a person.
type CallQuestion struct {
	Sentence  string            `json:"sentence"`
	Tool      string            `json:"tool"` // the server's own name
	Client    string            `json:"client"`
	Class     permissions.Class `json:"class"`
	Arguments string            `json:"arguments"` // as text: secrets masked, at most 4 KiB
	LeftOut   bool              `json:"leftOut"`   // there is more than Arguments shows
	Sent      string            `json:"sent"`      // SHA-256 of the bytes that would be sent
	// For is how long the allow holds.
	For approvals.Lasting `json:"for,omitempty"`
}

// DecisionList is newest first.
type DecisionList struct {
	Decisions []Decision `json:"decisions"`
}

// DecisionDetail adds everything that happened to it.
type DecisionDetail struct {
	Decision
	Journal []approvals.JournalEntry `json:"journal"`
}

// Answer answers a decision. For the stage "tools" an allow names the tools.
type Answer struct {
	Answer  string                       `json:"answer"` // "allow" or "deny"
	Tools   []string                     `json:"tools,omitempty"`
	Classes map[string]permissions.Class `json:"classes,omitempty"`
	// Always, for the stage "tools", lets agents call the tools without asking, as
	// long as this approval stands. Without it each call of a tool that is not
	// confirmed as reading only is asked about.
	Always bool `json:"always,omitempty"`
	// AcceptUnpinned, for the stage "run", accepts that code is fetched at every start
	// which the approval does not fix; without it such an allow is refused.
	AcceptUnpinned bool `json:"acceptUnpinned,omitempty"`
	// For is how long an allow of the kind "call" holds: "once" (which "" is),
	// "session", "8h" or "always".
	For approvals.Lasting `json:"for,omitempty"`
}

var decisionRoutes = []Route{{
	Method: http.MethodGet, Path: "/v1/decisions", Access: Watcher,
	Summary: "The decisions, newest first; ?open=true only those that wait.", Query: []string{"open"},
	Answer: DecisionList{}, Serve: (*Server).listDecisions,
}, {
	Method: http.MethodGet, Path: "/v1/decisions/{id}", Access: Watcher,
	Summary: "One decision with its journal.", Answer: DecisionDetail{}, Serve: (*Server).showDecision,
}, {
	Method: http.MethodPost, Path: "/v1/decisions/{id}/answer", Access: Operator,
	Summary: "Answers a decision once. An allow to run tries the plugin and answers with the next decision.",
	Body:    Answer{}, Answer: Decision{}, Serve: (*Server).answerDecision,
}, {
	Method: http.MethodGet, Path: "/v1/decisions/{id}/probe", Access: Watcher,
	Summary: "How far the first try of what was allowed to run has come: at once, or with ?wait=20s as soon as its revision is above ?after.",
	Query:   []string{"after", "wait"}, Answer: Probe{}, Serve: (*Server).showProbe,
}, {
	Method: http.MethodPost, Path: "/v1/decisions/{id}/cancel", Access: Operator,
	Summary: "Ends the first try and answers once nothing of it is left: nothing is approved, and it may be asked again.",
	Answer:  Decision{}, Serve: (*Server).cancelProbe,
}, {
	Method: http.MethodPost, Path: "/v1/decisions/accept-store", Access: Operator,
	Summary: "Makes a store that was found put back count again: the operator's explicit word.",
	Answer:  Done{}, Serve: (*Server).acceptStore,
}}

func (s *Server) acceptStore(c Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	if err := s.host.Gate.AcceptRollback(r.Context(), false, s.by(c)); err != nil {
		return nil, err
	}
	return Done{OK: true}, nil
}

func (s *Server) listDecisions(_ Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	all, err := s.host.Gate.Decisions(r.Context(), r.FormValue("open") == "true")
	if err != nil {
		return nil, err
	}
	list := DecisionList{Decisions: []Decision{}}
	for _, d := range all {
		list.Decisions = append(list.Decisions, s.decision(r, d))
	}
	return list, nil
}

func (s *Server) showDecision(_ Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	d, err := s.host.Gate.Decision(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	journal, err := s.host.Gate.Journal(r.Context(), d.ID)
	if err != nil {
		return nil, err
	}
	return DecisionDetail{Decision: s.decision(r, d), Journal: present(journal)}, nil
}

func (s *Server) answerDecision(c Caller, r *http.Request) (any, error) {
	var given Answer
	if err := read(r, &given); err != nil {
		return nil, err
	}
	if given.Answer != approvals.Allow && given.Answer != approvals.Deny {
		return nil, coded.New("bad-request", `answer is "allow" or "deny"`)
	}
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	next, err := s.host.Answer(r.Context(), r.PathValue("id"),
		approvals.Answer{Allow: given.Answer == approvals.Allow, Tools: given.Tools, Classes: given.Classes, Always: given.Always,
			AcceptUnpinned: given.AcceptUnpinned, For: given.For}, s.by(c))
	if err != nil {
		return nil, err
	}
	return s.decision(r, next), nil
}

func (s *Server) askConnector(c Caller, r *http.Request) (any, error) {
	id, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	d, err := s.host.Ask(r.Context(), id, s.by(c))
	if err != nil {
		return nil, err
	}
	return s.decision(r, d), nil
}

func (s *Server) askTools(c Caller, r *http.Request) (any, error) {
	id, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	d, err := s.host.AskTools(r.Context(), id, s.by(c))
	if err != nil {
		return nil, err
	}
	return s.decision(r, d), nil
}

// denyConnector answers the open decision with no; where none is open, it asks
// and answers, so that the no is about what is there now.
func (s *Server) denyConnector(c Caller, r *http.Request) (any, error) {
	id, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	decision := s.host.Gate.Status(r.Context(), id).Decision
	if decision == "" {
		asked, err := s.host.Ask(r.Context(), id, s.by(c))
		if err != nil {
			return nil, err
		}
		decision = asked.ID
	}
	d, err := s.host.Answer(r.Context(), decision, approvals.Answer{}, s.by(c))
	if err != nil {
		return nil, err
	}
	return s.decision(r, d), nil
}

func (s *Server) decision(r *http.Request, d approvals.Decision) Decision {
	out := Decision{
		ID: d.ID, Kind: d.Kind, Stage: string(d.Stage), Action: d.Action, Subject: d.Subject().String(), Sentence: d.Sentence(), Options: d.Options,
		CreatedAt: d.CreatedAt, ExpiresAt: d.ExpiresAt, State: string(d.State), Code: d.Code, Answer: d.Answer,
		AnsweredBy: d.AnsweredBy, AnsweredAt: d.AnsweredAt, Next: d.Next, Identity: string(d.Identity),
		Digest: d.Fields.Artifact, Version: d.Fields.Version, Chosen: d.Tools, Bundle: bundleQuestion(d),
	}
	if d.Bundle != nil {
		out.Digest, out.Version = d.Bundle.Digest, d.Bundle.Version
	}
	if q := d.Call; q != nil {
		out.Call = &CallQuestion{q.Sentence(d.Subject()), q.Tool, q.Client, q.Class, q.Arguments, q.LeftOut, q.Sent, d.For}
	}
	if d.Stage != approvals.StageTools {
		return out
	}
	out.Tools = s.host.Gate.Offered(d)
	return out
}
