package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
)

// Access says who may use a route (spec/local-api.md 6). The zero value is no
// rule at all, which a test over the route table refuses.
type Access int

// The access rules.
const (
	noAccessRule Access = iota
	// Anyone needs no token: health only.
	Anyone
	// Operator needs the operator's token: the person's own CLI or window.
	Operator
	// Watcher is the operator or the companion, which sees and never answers.
	Watcher
	// Agent needs the token of one client, and reaches /mcp only.
	Agent
)

// Caller is who sent a request.
type Caller struct {
	Kind   string // "anyone", "operator", "companion", "agent"
	Client string // the client's name, for an agent
	Via    string // the way in, for decisions: "cli", "api", "companion"
}

// Tokens holds the two tokens that are files of the operator's.
type Tokens struct {
	Operator  string
	Companion string
}

// identify says who the bearer of r's token is.
func (s *Server) identify(r *http.Request) (Caller, error) {
	token, ok := bearer(r)
	if !ok {
		if caller, ok := s.browser(r); ok {
			return caller, nil
		}
		return Caller{Kind: "anyone"}, nil
	}
	switch {
	case sameToken(token, s.window):
		return Caller{Kind: "operator", Via: approvals.ViaGUI}, nil
	case sameToken(token, s.tokens.Operator):
		return Caller{Kind: "operator", Via: via(r)}, nil
	case sameToken(token, s.tokens.Companion):
		return Caller{Kind: "companion", Via: "companion"}, nil
	}
	if gate := s.host.Gate; gate != nil {
		if client, ok := gate.ClientByToken(token); ok {
			return Caller{Kind: "agent", Client: client.Name, Via: "agent"}, nil
		}
		if why := gate.Waiting(); why != nil {
			return Caller{}, why // it may well be known, once that can be checked
		}
	}
	return Caller{}, &coded.Error{Code: "token-unknown", Sentence: "this token is not known here",
		Next: "ask the operator for a new one: sallyport clients add NAME"}
}

// allow compares a caller with a route's rule. The last line is the refusal.
func allow(rule Access, c Caller) error {
	switch {
	case rule == Anyone:
		return nil
	case rule == Operator && c.Kind == "operator":
		return nil
	case rule == Watcher && (c.Kind == "operator" || c.Kind == "companion"):
		return nil
	case rule == Agent && c.Kind == "agent":
		return nil
	case c.Kind == "anyone":
		return coded.New("token-missing", "this address needs a token")
	}
	return coded.New("not-allowed", "this token is not for that")
}

func bearer(r *http.Request) (string, bool) {
	kind, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(kind, "Bearer") && token != ""
}

// sameToken compares in constant time, whatever the lengths, and never matches
// a token that was not set.
func sameToken(given, want string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && want != ""
}

// via is the way in that the operator's own program names. It is a label: the
// window that owns the data folder proves itself by a token of its own, never by
// this header; one that is attached holds the operator's token like any command.
func via(r *http.Request) string {
	switch named := r.Header.Get("X-Sallyport-Via"); named {
	case approvals.ViaCLI, approvals.ViaWindowAttached:
		return named
	}
	return approvals.ViaAPI
}
