package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
)

// Client is one agent client and what it may see.
type Client struct {
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"createdAt"`
	Scope     Scope     `json:"scope"`
	// RotatedAt is when it got the token that it has now, if not when it was made.
	RotatedAt *time.Time `json:"rotatedAt,omitempty"`
	// SeenAt is its last request in this run of Sallyport.
	SeenAt *time.Time `json:"seenAt,omitempty"`
	// OpenSessions are its connections that are open now.
	OpenSessions int `json:"openSessions"`
	// Connects is told of one client, and not in the list.
	Connects *Connects `json:"connects,omitempty"`
}

// Connects is what an agent is told to do to reach this installation: dial an address,
// with the token as its bearer token, or start a command, which needs none.
type Connects struct {
	Address string   `json:"address"`
	Command string   `json:"command,omitempty"` // missing where this program lies in no place that stays
	Args    []string `json:"args"`
}

// ScopeChange names what a client is to see, or no longer: PLUGIN/SERVER or
// PLUGIN/SERVER:TOOL.
type ScopeChange struct {
	Only []string `json:"only,omitempty"`
	// All grants everything that is enabled, now and later; with grant alone.
	All bool `json:"all,omitempty"`
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
	// Added is true where the client was not known before and now sees all that is enabled.
	Added bool `json:"added,omitempty"`
	// Connects is there with a token that is to be kept.
	Connects *Connects `json:"connects,omitempty"`
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
	Method: http.MethodGet, Path: "/v1/clients/{name}", Access: Operator,
	Summary: "One client: what it sees, when it was seen, what it has open.", Answer: Client{}, Serve: (*Server).showClient,
}, {
	Method: http.MethodPost, Path: "/v1/clients/{name}/grant", Access: Operator,
	Summary: "Lets a client see more, in open sessions too.", Body: ScopeChange{}, Answer: Client{}, Serve: (*Server).grantClient,
}, {
	Method: http.MethodPost, Path: "/v1/clients/{name}/revoke", Access: Operator,
	Summary: "Lets a client see less, at once: its calls of what it loses are cancelled.", Body: ScopeChange{}, Answer: Client{}, Serve: (*Server).revokeFromClient,
}, {
	Method: http.MethodPost, Path: "/v1/clients/{name}/rotate", Access: Operator,
	Summary: "Gives a client another token, shown once; the old one and its sessions end at once.",
	Answer:  ClientToken{}, Serve: (*Server).rotateClient,
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
		list.Clients = append(list.Clients, s.client(c))
	}
	return list, nil
}

func (s *Server) client(c approvals.Client) Client {
	use := s.host.ClientUse(c.Name)
	out := Client{Name: c.Name, CreatedAt: c.At, OpenSessions: use.Open,
		Scope: Scope{All: c.Scope.All, Only: present(c.Scope.Only), OriginalNames: c.Scope.OriginalNames}}
	if !c.Rotated.IsZero() {
		out.RotatedAt = &c.Rotated
	}
	if !use.Seen.IsZero() {
		out.SeenAt = &use.Seen
	}
	return out
}

func (s *Server) showClient(_ Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	c, err := s.host.Gate.Client(r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	one := s.client(c)
	one.Connects = s.connects(c.Name)
	return one, nil
}

func (s *Server) connects(name string) *Connects {
	out := &Connects{Address: s.address + "/mcp", Args: []string{}}
	if launch, err := s.host.ClientLaunch(name); err == nil {
		out.Command, out.Args = launch.Command, launch.Args
	}
	return out
}

func (s *Server) grantClient(c Caller, r *http.Request) (any, error) {
	return s.changeScope(r, true, func(name string, asked ScopeChange) (approvals.Client, error) {
		only, err := s.named(r.Context(), asked.Only)
		if err != nil {
			return approvals.Client{}, err
		}
		return s.host.GrantClient(r.Context(), name, only, asked.All, s.by(c))
	})
}

// named reads what a scope is to hold; what does not exist is refused.
func (s *Server) named(ctx context.Context, lines []string) ([]string, error) {
	named := slices.Clone(lines)
	for i, line := range lines {
		var err error
		if named[i], err = s.host.Named(ctx, line); err != nil {
			return nil, err
		}
	}
	return named, nil
}

func (s *Server) revokeFromClient(c Caller, r *http.Request) (any, error) {
	return s.changeScope(r, false, func(name string, asked ScopeChange) (approvals.Client, error) {
		return s.host.RevokeClient(r.Context(), name, asked.Only, s.by(c))
	})
}

func (s *Server) changeScope(r *http.Request, mayAll bool, change func(string, ScopeChange) (approvals.Client, error)) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	var asked ScopeChange
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	if asked.All == (len(asked.Only) > 0) || asked.All && !mayAll {
		return nil, &coded.Error{Code: "scope-invalid", Sentence: "name what is to change: PLUGIN/SERVER or PLUGIN/SERVER:TOOL, and nothing besides all"}
	}
	changed, err := change(r.PathValue("name"), asked)
	if err != nil {
		return nil, err
	}
	return s.client(changed), nil
}

func (s *Server) rotateClient(c Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	token, err := s.host.RotateClient(r.Context(), name, s.by(c))
	if err != nil {
		return nil, err
	}
	return ClientToken{Name: name, Token: token, Connects: s.connects(name)}, nil
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
		only, err := s.named(r.Context(), asked.Scope.Only)
		if err != nil {
			return nil, err
		}
		scope = approvals.Scope{All: asked.Scope.All, Only: only, OriginalNames: asked.Scope.OriginalNames}
	}
	token, err := s.host.Gate.AddClient(r.Context(), asked.Name, scope, s.by(c))
	if err != nil {
		return nil, err
	}
	return ClientToken{Name: asked.Name, Token: token, Connects: s.connects(asked.Name)}, nil
}

func (s *Server) removeClient(c Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	if err := s.host.RemoveClient(r.Context(), name, s.by(c)); err != nil {
		return nil, err
	}
	return Done{OK: true}, nil
}

func (s *Server) clientSession(c Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	token, added, err := s.host.SessionToken(r.Context(), name, s.by(c))
	if err != nil {
		return nil, err
	}
	return ClientToken{Name: name, Token: token, Added: added}, nil
}
