package api

import (
	"net/http"
	"slices"
	"strings"

	"sallyport/runtime/secrets"
)

// Keyring is how the place of the secrets is now, asked for this answer.
type Keyring struct {
	State string `json:"state"` // "ok", or why it cannot be used
	Where string `json:"where"` // which keyring, or the encrypted file
	Code  string `json:"code,omitempty"`
	Says  string `json:"says,omitempty"`
	Next  string `json:"next,omitempty"`
	// What and Steps explain it for the system that Sallyport runs on.
	What  string        `json:"what,omitempty"`
	Steps []KeyringStep `json:"steps,omitempty"`
	// Needs are the connectors that ask for a secret.
	Needs   []KeyringNeed `json:"needs"`
	SealKey SealKey       `json:"sealKey"`
}

// KeyringStep is one thing to do, and the commands to type for it.
type KeyringStep struct {
	Do   string   `json:"do"`
	Type []string `json:"type,omitempty"`
	// Instead is true for what takes the keyring's place for secrets and opens none: it
	// does not help a seal key that is waited for.
	Instead bool `json:"instead,omitempty"`
}

// KeyringNeed is a connector and the secrets it asks for.
type KeyringNeed struct {
	ID      string   `json:"id"`
	Secrets []string `json:"secrets"`
}

var keyringRoutes = []Route{{
	Method: http.MethodGet, Path: "/v1/keyring", Access: Operator,
	Summary: "Asks whether the keyring could be used now, within its time limit and without asking a person; what waits for it, and what to do.",
	Answer:  Keyring{}, Serve: (*Server).probeKeyring,
}}

func (s *Server) probeKeyring(_ Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	found, err := s.host.Listing(r.Context())
	if err != nil {
		return nil, err
	}
	state, help := s.host.ProbeKeyring(r.Context())
	answer := KeyringOf(state, help)
	answer.SealKey = s.sealKey()
	for _, c := range found.Connectors() {
		if len(c.Requested.Secrets) > 0 {
			answer.Needs = append(answer.Needs, KeyringNeed{ID: c.ID.String(), Secrets: c.Requested.Secrets})
		}
	}
	slices.SortFunc(answer.Needs, func(a, b KeyringNeed) int { return strings.Compare(a.ID, b.ID) })
	return answer, nil
}

// KeyringOf is the answer about a state, without what waits for it.
func KeyringOf(state secrets.State, help secrets.Help) Keyring {
	answer := Keyring{State: state.Status, Where: state.Backend, Code: state.Code, Says: state.Sentence, Next: state.Next,
		What: help.What, Needs: []KeyringNeed{}}
	for _, step := range help.Steps {
		answer.Steps = append(answer.Steps, KeyringStep{step.Do, step.Type, step.Instead})
	}
	return answer
}
