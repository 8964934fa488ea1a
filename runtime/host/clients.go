package host

import (
	"context"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/env"
	"sallyport/runtime/mcp/gateway"
)

// unusedToken is how long a process may take from getting its token to its stream.
const unusedToken = time.Minute

// sessions are the tokens of single processes, and how each is given back.
type sessions struct {
	mu   sync.Mutex
	open map[[sha256.Size]byte]*processToken // by the token's SHA-256
}

type processToken struct {
	release func()
	unused  *time.Timer
}

// SessionToken gives a process of the operator's a token of its own for a client
// (spec/local-api.md 6). A client that nobody added yet is added, seeing all that
// is enabled: whoever can ask this can add it anyway, and names of clients are
// labels, not a wall (spec/permissions.md). One that was removed is not: its agent
// starts the command again by itself, and would be back a moment later. Neither is one
// whose name is nearly that of a client that sees less: it would see more by a slip.
func (h *Host) SessionToken(ctx context.Context, name string, by approvals.By) (token string, added bool, err error) {
	token, release, err := h.Gate.NewSessionToken(name)
	if coded.Of(err) == "client-unknown" {
		if near := nearest(name, h.narrowClients()); near != "" {
			return "", false, &coded.Error{Code: "client-unknown", Sentence: "there is no client of this name, and one of nearly this name, " + env.Quote(near) + ", sees less than everything",
				Next: "correct the name; or, if it is another one: sallyport clients add " + env.Quote(name)}
		}
		if h.Gate.WasRemoved(name) {
			return "", false, &coded.Error{Code: "client-removed", Sentence: "the operator removed this client",
				Next: "to let it in again: sallyport clients add " + env.Quote(name)}
		}
		if _, err := h.Gate.AddClient(ctx, name, approvals.Scope{All: true}, by); err != nil && coded.Of(err) != "client-exists" {
			return "", false, err
		}
		added = true
		token, release, err = h.Gate.NewSessionToken(name)
	}
	if err != nil {
		return "", false, err
	}
	h.sessions.mu.Lock()
	defer h.sessions.mu.Unlock()
	if h.sessions.open == nil {
		h.sessions.open = map[[sha256.Size]byte]*processToken{}
	}
	h.sessions.open[sha256.Sum256([]byte(token))] = &processToken{release, time.AfterFunc(unusedToken, func() { h.EndSession(token) })}
	return token, added, nil
}

// narrowClients are the names of those that do not see everything.
func (h *Host) narrowClients() (names []string) {
	for _, c := range h.Gate.Clients() {
		if !c.Scope.All {
			names = append(names, c.Name)
		}
	}
	return names
}

// ClientUse is what a client is doing, as far as this run of Sallyport has seen.
func (h *Host) ClientUse(name string) gateway.Use { return h.Gateway.Use(name) }

// GrantClient lets a client see more; all is everything that is enabled.
func (h *Host) GrantClient(ctx context.Context, name string, lines []string, all bool, by approvals.By) (approvals.Client, error) {
	if all {
		return h.Gate.GrantAll(ctx, name, by)
	}
	return h.Gate.GrantClient(ctx, name, lines, by)
}

// RevokeClient lets a client see less. Once it returns, nothing that the client lost
// is in flight any more.
func (h *Host) RevokeClient(ctx context.Context, name string, lines []string, by approvals.By) (approvals.Client, error) {
	c, err := h.Gate.RevokeClient(ctx, name, lines, by)
	if err == nil {
		h.Gateway.Narrowed(name, approvals.ScopeChanged())
	}
	return c, err
}

// RotateClient gives a client another token. Once it returns, nothing of what was
// opened with the old one is open.
func (h *Host) RotateClient(ctx context.Context, name string, by approvals.By) (token string, err error) {
	if token, err = h.Gate.RotateClient(ctx, name, by); err == nil {
		h.Gateway.Forget(name, "the client has got another token")
	}
	return token, err
}

// RemoveClient ends a client and what it has open.
func (h *Host) RemoveClient(ctx context.Context, name string, by approvals.By) error {
	err := h.Gate.RemoveClient(ctx, name, by)
	if err == nil {
		h.Gateway.Forget(name, clientRemoved)
	}
	return err
}

const clientRemoved = "the client was removed"

// BeginSession says that a process's stream is open, so that its token lasts as
// long as that.
func (h *Host) BeginSession(token string) {
	h.sessions.mu.Lock()
	defer h.sessions.mu.Unlock()
	if t := h.sessions.open[sha256.Sum256([]byte(token))]; t != nil {
		t.unused.Stop()
	}
}

// EndSession gives a process's token back; any other token stays.
func (h *Host) EndSession(token string) {
	h.sessions.mu.Lock()
	defer h.sessions.mu.Unlock()
	key := sha256.Sum256([]byte(token))
	if t := h.sessions.open[key]; t != nil {
		t.unused.Stop()
		t.release()
		delete(h.sessions.open, key)
	}
}

// end gives every token back.
func (s *sessions) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.open {
		t.unused.Stop()
	}
	s.open = nil
}

type clientKey struct{}

// WithClient says which client a request to the gateway is from; whoever checked
// the token says it.
func WithClient(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, clientKey{}, name)
}

func clientOf(r *http.Request) (gateway.ClientInfo, bool) {
	name, ok := r.Context().Value(clientKey{}).(string)
	return gateway.ClientInfo{Name: name}, ok && name != ""
}
