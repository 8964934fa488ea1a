package api

import (
	"net/http"
	"time"

	"sallyport/runtime/approvals"
)

// Client is one agent client and what it may see.
type Client struct {
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"createdAt"`
	Scope     Scope     `json:"scope"`
}

// Scope is what a client may see: everything that is enabled, or only some.
type Scope struct {
	All bool `json:"all"`
	// Only lists PLUGIN/SERVER or PLUGIN/SERVER:TOOL.
	Only []string `json:"only"`
	// OriginalNames exposes the server's own tool names; for exactly one connector.
	OriginalNames bool `json:"originalNames,omitempty"`
}

// NewClient asks for a client. Without a scope it sees everything that is enabled.
type NewClient struct {
	Name  string `json:"name"`
	Scope *Scope `json:"scope,omitempty"`
}

// ClientToken is a client's token, shown this once.
type ClientToken struct {
	Name  string `json:"name"`
	Token string `json:"token"`
}

// ClientList holds every client.
type ClientList struct {
	Clients []Client `json:"clients"`
}

// Done is the answer of what has nothing to say but that it was done.
type Done struct {
	OK bool `json:"ok"`
}

var clientRoutes = []Route{{
	Method: http.MethodGet, Path: "/v1/clients", Access: Operator,
	Summary: "The agent clients.", Answer: ClientList{}, Serve: (*Server).listClients,
}, {
	Method: http.MethodPost, Path: "/v1/clients", Access: Operator,
	Summary: "Adds a client and shows its token once.", Body: NewClient{}, Answer: ClientToken{}, Serve: (*Server).addClient,
}, {
	Method: http.MethodDelete, Path: "/v1/clients/{name}", Access: Operator,
	Summary: "Removes a client: its token and its sessions end.", Answer: Done{}, Serve: (*Server).removeClient,
}, {
	Method: http.MethodPost, Path: "/v1/clients/{name}/session", Access: Operator,
	Summary: "A token for one process of a client, for sallyport mcp; it ends with this sidecar.",
	Answer:  ClientToken{}, Serve: (*Server).clientSession,
}}

func (s *Server) listClients(_ Caller, _ *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	list := ClientList{Clients: []Client{}}
	for _, c := range s.host.Gate.Clients() {
		list.Clients = append(list.Clients, Client{Name: c.Name, CreatedAt: c.At,
			Scope: Scope{All: c.Scope.All, Only: present(c.Scope.Only), OriginalNames: c.Scope.OriginalNames}})
	}
	return list, nil
}

func (s *Server) addClient(c Caller, r *http.Request) (any, error) {
	var asked NewClient
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	scope := approvals.Scope{All: true}
	if asked.Scope != nil {
		scope = approvals.Scope{All: asked.Scope.All, Only: asked.Scope.Only, OriginalNames: asked.Scope.OriginalNames}
	}
	token, err := s.host.Gate.AddClient(r.Context(), asked.Name, scope, s.by(c))
	if err != nil {
		return nil, err
	}
	return ClientToken{Name: asked.Name, Token: token}, nil
}

func (s *Server) removeClient(c Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	if err := s.host.Gate.RemoveClient(r.Context(), name, s.by(c)); err != nil {
		return nil, err
	}
	return Done{OK: true}, nil
}

func (s *Server) clientSession(c Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	token, err := s.host.SessionToken(r.Context(), name, s.by(c))
	if err != nil {
		return nil, err
	}
	return ClientToken{Name: name, Token: token}, nil
}
