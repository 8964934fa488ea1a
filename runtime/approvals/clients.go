package approvals

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"sallyport/internal/coded"
	"sallyport/runtime/audit"
	"sallyport/runtime/env"
	"sallyport/runtime/plugins"
)

// Operator is the client name of the operator's own calls (sallyport call). It
// has no token and sees everything; no client can be given it.
const Operator = "operator"

// Client is an agent program with a token of its own.
type Client struct {
	Name  string    `json:"name"`
	Scope Scope     `json:"scope"`
	At    time.Time `json:"at"`
	By    By        `json:"by"`
	// Rotated is when it got the token that it has now; zero is At.
	Rotated time.Time `json:"rotated,omitzero"`
}

// client is what is sealed; the token's SHA-256 stands for it.
type client struct {
	Schema int    `json:"schema"`
	Token  string `json:"token"` // hex SHA-256
	Client
}

// maxClientName is in bytes.
const maxClientName = 64

// AddClient makes a client and returns its token, which is shown once: only its
// SHA-256 is kept.
func (g *Gate) AddClient(ctx context.Context, name string, scope Scope, by By) (token string, err error) {
	if err := checkClientName(name); err != nil {
		return "", err
	}
	if err := scope.check(); err != nil {
		return "", err
	}
	token = newToken()
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := by.mayAnswer(g.docs.guiOnly()); err != nil {
		return "", err
	}
	if _, there := (*g.clients.Load())[name]; there {
		return "", &coded.Error{Code: "client-exists", Sentence: fmt.Sprintf("there is a client %q already", name),
			Next: "choose another name; or give that one a new token: sallyport clients rotate " + env.Quote(name)}
	}
	c := client{schemaVersion, tokenSum(token), Client{Name: name, Scope: scope, At: g.now(), By: by}}
	t := newTransaction()
	if err := g.noteRemoved(t, name, false); err != nil {
		return "", err
	}
	return token, g.writeClient(ctx, t, audit.ClientAdd, name, &c, by)
}

// RemoveClient ends a client: its tokens are worth nothing from then on.
func (g *Gate) RemoveClient(ctx context.Context, name string, by By) error {
	if err := by.mayOperate(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.docs.rows[docKey{clientKind, name}]; !known {
		return unknownClient()
	}
	return g.writeClient(ctx, newTransaction(), audit.ClientRemove, name, nil, by)
}

// writeClient commits t with c as the client, or without the client where c is nil.
// g.mu is held.
func (g *Gate) writeClient(ctx context.Context, t *transaction, action, name string, c *client, by By, targets ...string) error {
	if c == nil {
		t.batch.remove(clientKind, name)
		if err := g.noteRemoved(t, name, true); err != nil {
			return err
		}
		if err := g.dropClient(t, name); err != nil {
			return err
		}
	} else if err := t.batch.put(clientKind, name, c); err != nil {
		return err
	}
	if len(targets) == 0 {
		targets = []string{""}
	}
	for _, target := range targets {
		t.audit = append(t.audit, audit.Record{Action: action, Result: audit.OK, Client: name, Target: target, Actor: by.User, Via: by.Via})
	}
	if err := g.commit(ctx, t); err != nil {
		return err
	}
	g.takeOverClients()
	if c == nil {
		g.sessions.dropClient(name)
	}
	g.tell(Event{Kind: "clients", Code: name})
	return nil
}

// takeOverClients publishes the clients that count, for calls to read.
func (g *Gate) takeOverClients() {
	clients := map[string]*client{}
	for key := range g.docs.rows {
		if key.kind != clientKind {
			continue
		}
		body, _, problem := g.docs.get(key.kind, key.id)
		var c client
		if problem == nil && json.Unmarshal(body, &c) == nil && c.Name == key.id {
			clients[c.Name] = &c
		}
	}
	g.clients.Store(&clients)
	g.scopes.Add(1)
}

// ScopesRevision differs whenever a client or a scope does, from the moment on at
// which the change counts.
func (g *Gate) ScopesRevision() uint64 { return g.scopes.Load() }

// Clients lists the clients by name.
func (g *Gate) Clients() []Client {
	out := []Client{}
	for _, c := range *g.clients.Load() {
		out = append(out, c.Client)
	}
	slices.SortFunc(out, func(a, b Client) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// ClientByToken returns the client that a token belongs to. Every token is
// compared, in constant time.
func (g *Gate) ClientByToken(token string) (Client, bool) {
	sum := []byte(tokenSum(token))
	clients := *g.clients.Load()
	var found *client
	for _, c := range clients {
		if subtle.ConstantTimeCompare(sum, []byte(c.Token)) == 1 {
			found = c
		}
	}
	if found == nil {
		found = clients[g.sessions.client(sum)]
	}
	if found == nil {
		return Client{}, false
	}
	return found.Client, true
}

// NewSessionToken gives a client a token for one process: in memory only, gone
// with Sallyport, with release, or with the client.
func (g *Gate) NewSessionToken(name string) (token string, release func(), err error) {
	if (*g.clients.Load())[name] == nil {
		if waiting := g.Waiting(); waiting != nil {
			return "", nil, waiting
		}
		return "", nil, unknownClient()
	}
	token = newToken()
	sum := tokenSum(token)
	g.sessions.add(sum, name)
	return token, func() { g.sessions.drop(sum) }, nil
}

// Visible reports whether a client may know that a connector exists.
func (g *Gate) Visible(name string, id plugins.ID) bool {
	c := (*g.clients.Load())[name]
	return name == Operator || c != nil && c.Scope.sees(id.String())
}

// Whole reports whether a client's scope covers all of a connector: its prompts and
// resources too, which a scope of single tools does not grant.
func (g *Gate) Whole(name string, id plugins.ID) bool {
	c := (*g.clients.Load())[name]
	return name == Operator || c != nil && (c.Scope.All || c.Scope.whole(id.String()))
}

// OriginalNames reports whether a client sees tools under the server's own names.
func (g *Gate) OriginalNames(name string) bool {
	c := (*g.clients.Load())[name]
	return c != nil && c.Scope.OriginalNames
}

// MayCall reports whether a client's scope covers a tool. Whether the tool may be
// called at all is CallGrant's to say, which asks this too.
func (g *Gate) MayCall(name string, id plugins.ID, tool string) bool {
	return g.clientMay(name, id, tool) == nil
}

func (g *Gate) clientMay(name string, id plugins.ID, tool string) *coded.Error {
	if name == Operator {
		return nil
	}
	c := (*g.clients.Load())[name]
	switch {
	case c == nil:
		return &coded.Error{Code: codeDenied, Sentence: "the caller is not a client that the operator added", Next: "add it: sallyport clients add NAME"}
	case c.Scope.All || c.Scope.covers(id.String(), tool):
		return nil
	}
	// The same words whether or not the tool exists: a client never learns that.
	return &coded.Error{Code: codeDenied, Sentence: "the client has no such tool", Next: "the operator can grant it: sallyport clients grant NAME ID:TOOL"}
}

// checkClientName refuses, with what cannot be seen, what has a meaning in the
// address that removes the client: it could be added and never removed.
func checkClientName(name string) error {
	if name == "." || name == ".." || strings.ContainsAny(name, `/\`) {
		return coded.New("client-name-invalid", "a client's name has no slash and is not . or ..")
	}
	if name == "" || len(name) > maxClientName || !utf8.ValidString(name) || Visible(name) != name || strings.TrimSpace(name) != name {
		return coded.New("client-name-invalid", fmt.Sprintf("a client's name has 1 to %d bytes and only characters that can be seen", maxClientName))
	}
	if strings.EqualFold(name, Operator) {
		return coded.New("client-name-invalid", "that name is the operator's own")
	}
	return nil
}

func unknownClient() error {
	return &coded.Error{Code: "client-unknown", Sentence: "there is no such client", Next: "see which there are: sallyport clients list"}
}

func newToken() string {
	random := make([]byte, 32)
	rand.Read(random) // never fails, see crypto/rand
	return "sp_" + base64.RawURLEncoding.EncodeToString(random)
}

func tokenSum(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// sessionTokens are the per-process tokens, by the SHA-256 of each.
type sessionTokens struct {
	mu     sync.Mutex
	owners map[string]string
}

func (s *sessionTokens) init() { s.owners = map[string]string{} }

func (s *sessionTokens) add(sum, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owners[sum] = name
}

func (s *sessionTokens) drop(sum string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.owners, sum)
}

func (s *sessionTokens) dropClient(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sum, owner := range s.owners {
		if owner == name {
			delete(s.owners, sum)
		}
	}
}

// client finds the owner of a sum. A map look-up by a hash tells nothing about
// the token.
func (s *sessionTokens) client(sum []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owners[string(sum)]
}
