package api

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/secrets"
)

// SecretList is names only: a value never leaves the keyring but for a child.
type SecretList struct {
	Secrets []SecretName `json:"secrets"`
	// State is how the keyring is, as far as it was asked: "ok", "not-asked", or
	// why it cannot be used.
	State string `json:"state"`
	Where string `json:"where"` // which keyring, or the encrypted file
	Says  string `json:"says,omitempty"`
	Next  string `json:"next,omitempty"`
}

// SecretName is a secret that is kept, that a connector asks for, or both.
type SecretName struct {
	Name   string     `json:"name"`
	Kept   bool       `json:"kept"`
	SetAt  *time.Time `json:"setAt,omitempty"`
	UsedBy []string   `json:"usedBy"`
}

// NewSecret is a value to keep, in standard base64 so that every byte arrives.
type NewSecret struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

var secretRoutes = []Route{{
	Method: http.MethodGet, Path: "/v1/secrets", Access: Watcher,
	Summary: "The names of the secrets that are kept or asked for. Never a value.", Answer: SecretList{}, Serve: (*Server).listSecrets,
}, {
	Method: http.MethodPost, Path: "/v1/secrets", Access: Operator,
	Summary: "Keeps a value under a name; servers that use it restart.", Body: NewSecret{}, Answer: Done{}, Serve: (*Server).setSecret,
}, {
	Method: http.MethodDelete, Path: "/v1/secrets/{name}", Access: Operator,
	Summary: "Forgets a value.", Answer: Done{}, Serve: (*Server).deleteSecret,
}, {
	Method: http.MethodPost, Path: connectorPath + "/move-secrets", Access: Operator,
	Summary: "Keeps credentials that are written out in the keyring, and refers to them from there.", Body: MoveSecrets{}, Answer: MovedSecrets{}, Serve: (*Server).moveSecrets,
}, {
	Method: http.MethodPost, Path: connectorPath + "/not-secret", Access: Operator,
	Summary: "Says that what looks like a credential is none, or takes that back. The approval ends.", Body: NotSecret{}, Answer: Connector{}, Serve: (*Server).notSecret,
}}

// MoveSecrets says what to move: the variables or headers of these names, or all that
// look like credentials.
type MoveSecrets struct {
	Names []string `json:"names,omitempty"`
	// As is another name for the secret, where one value is moved.
	As string `json:"as,omitempty"`
}

// MovedSecrets is what refers to the keyring now.
type MovedSecrets struct {
	ID    string        `json:"id"`
	Moved []MovedSecret `json:"moved"`
}

// MovedSecret is one value that was moved.
type MovedSecret struct {
	Name   string `json:"name"`   // of the variable or header
	Secret string `json:"secret"` // its name in the keyring
	File   string `json:"file"`   // that refers to it
	// LeftIn says that the package's own files, which nobody changes, still hold it.
	LeftIn bool `json:"leftIn"`
}

// NotSecret names a variable, a header, "args[2]" or "url".
type NotSecret struct {
	Name string `json:"name"`
	Undo bool   `json:"undo,omitempty"`
}

func (s *Server) moveSecrets(c Caller, r *http.Request) (any, error) {
	id, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	var given MoveSecrets
	if err := read(r, &given); err != nil {
		return nil, err
	}
	moved, err := s.host.MoveLiterals(r.Context(), id, given.Names, given.As, s.by(c))
	if err != nil {
		return nil, err
	}
	answer := MovedSecrets{ID: id.String(), Moved: []MovedSecret{}}
	for _, one := range moved {
		answer.Moved = append(answer.Moved, MovedSecret(one))
	}
	return answer, nil
}

func (s *Server) notSecret(c Caller, r *http.Request) (any, error) {
	id, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	var given NotSecret
	if err := read(r, &given); err != nil {
		return nil, err
	}
	if given.Name == "" {
		return nil, coded.New("bad-request", "the name is missing")
	}
	if err := s.host.NotSecret(r.Context(), id, given.Name, given.Undo, s.by(c)); err != nil {
		return nil, err
	}
	return s.line(r.Context(), id), nil
}

func (s *Server) listSecrets(_ Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	found, err := s.host.Listing(r.Context())
	if err != nil {
		return nil, err
	}
	kept, err := s.host.Secrets.List(r.Context())
	if err != nil {
		return nil, err
	}
	byName := map[string]*SecretName{}
	entry := func(name string) *SecretName {
		if byName[name] == nil {
			byName[name] = &SecretName{Name: name, UsedBy: []string{}}
		}
		return byName[name]
	}
	for _, c := range found.Connectors() {
		for _, name := range c.Requested.Secrets {
			one := entry(name)
			one.UsedBy = append(one.UsedBy, c.ID.String())
		}
	}
	for _, k := range kept {
		one := entry(k.Name)
		one.Kept, one.SetAt = true, &k.SetAt
	}
	return secretList(byName, s.host.Secrets.State(r.Context())), nil
}

func secretList(byName map[string]*SecretName, state secrets.State) SecretList {
	list := SecretList{Secrets: []SecretName{}, State: state.Status, Where: state.Backend, Says: state.Sentence, Next: state.Next}
	for _, one := range byName {
		list.Secrets = append(list.Secrets, *one)
	}
	slices.SortFunc(list.Secrets, func(a, b SecretName) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (s *Server) setSecret(c Caller, r *http.Request) (any, error) {
	var given NewSecret
	if err := read(r, &given); err != nil {
		return nil, err
	}
	if given.Name == "" {
		return nil, coded.New("bad-request", "the secret has no name")
	}
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	if err := s.host.SetSecret(r.Context(), given.Name, given.Value, s.by(c)); err != nil {
		return nil, err
	}
	return Done{OK: true}, nil
}

func (s *Server) deleteSecret(c Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	if err := s.host.DeleteSecret(r.Context(), r.PathValue("name"), s.by(c)); err != nil {
		return nil, err
	}
	return Done{OK: true}, nil
}
