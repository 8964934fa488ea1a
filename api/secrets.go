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
}}

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
