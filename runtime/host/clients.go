package host

import (
	"context"
	"net/http"
	"sync"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/mcp/gateway"
)

// sessions are the tokens of single processes, and how each is given back.
type sessions struct {
	mu      sync.Mutex
	release map[string]func() // by token
}

// SessionToken gives a process of the operator's a token of its own for a client
// (spec/local-api.md 6). A client that nobody added yet is added, seeing all that
// is enabled: whoever can ask this can add it anyway, and names of clients are
// labels, not a wall (spec/permissions.md).
func (h *Host) SessionToken(ctx context.Context, name string, by approvals.By) (string, error) {
	token, release, err := h.Gate.NewSessionToken(name)
	if coded.Of(err) == "client-unknown" {
		if _, err := h.Gate.AddClient(ctx, name, approvals.Scope{All: true}, by); err != nil && coded.Of(err) != "client-exists" {
			return "", err
		}
		token, release, err = h.Gate.NewSessionToken(name)
	}
	if err != nil {
		return "", err
	}
	h.sessions.mu.Lock()
	defer h.sessions.mu.Unlock()
	if h.sessions.release == nil {
		h.sessions.release = map[string]func(){}
	}
	h.sessions.release[token] = release
	return token, nil
}

// EndSession gives a process's token back; any other token stays.
func (h *Host) EndSession(token string) {
	h.sessions.mu.Lock()
	defer h.sessions.mu.Unlock()
	if release := h.sessions.release[token]; release != nil {
		release()
		delete(h.sessions.release, token)
	}
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
