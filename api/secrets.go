package api

import (
	"net/http"
	"slices"
)

// SecretList is names only: a value never leaves the keyring but for a child.
type SecretList struct {
	Secrets []SecretName `json:"secrets"`
}

// SecretName is a secret that a connector names.
type SecretName struct {
	Name   string   `json:"name"`
	UsedBy []string `json:"usedBy"`
}

var secretRoutes = []Route{{
	Method: http.MethodGet, Path: "/v1/secrets", Access: Watcher,
	Summary: "The names of the secrets that connectors ask for. Never a value.", Answer: SecretList{}, Serve: (*Server).listSecrets,
}}

func (s *Server) listSecrets(_ Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	found, err := s.host.Listing(r.Context())
	if err != nil {
		return nil, err
	}
	users := map[string][]string{}
	for _, c := range found.Connectors() {
		for _, name := range c.Requested.Secrets {
			users[name] = append(users[name], c.ID.String())
		}
	}
	list := SecretList{Secrets: []SecretName{}}
	for name, by := range users {
		list.Secrets = append(list.Secrets, SecretName{Name: name, UsedBy: by})
	}
	slices.SortFunc(list.Secrets, func(a, b SecretName) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return list, nil
}
