// Package oauthtest is an authorization server and a guarded MCP server for tests:
// real HTTP, real PKCE, registration, rotation of refresh tokens, and every fault
// that a client has to notice.
//
// The one idea: what a client sends is checked as strictly as a careful server would,
// and kept, so that a test asks what was really sent.
//
// It is for tests alone; a test fails when the program imports it.
package oauthtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// Faults are what the server does wrong. They may be changed while it runs, by Set.
type Faults struct {
	Issuer         string        // named in the metadata in place of its own
	NoMetadata     bool          // 404 for every document about itself
	NoPKCE         bool          // nothing about PKCE
	PlainPKCE      bool          // only "plain"
	NoRegistration bool          // no endpoint to register at
	RefuseClients  bool          // registration is refused
	TokenEndpoint  string        // named in place of its own
	Authorize      string        // named in place of its own
	WrongState     bool          // comes back with another state
	Iss            string        // "iss" of the answer, in place of its own; "-" for none
	Deny           bool          // the person says no
	NoToken        bool          // the token endpoint answers with an error
	TokenType      string        // in place of Bearer
	Lifetime       time.Duration // of access tokens; an hour when zero
	NoRefresh      bool          // no refresh tokens
	RefuseRefresh  bool          // refresh tokens are refused for good
	BreakRefresh   bool          // the token endpoint fails while it renews
	SlowRefresh    <-chan struct{}
	Redirect       int // a status that every document is redirected with
}

// Server is an authorization server.
type Server struct {
	URL string

	web *httptest.Server

	mu       sync.Mutex
	faults   Faults
	clients  map[string][]string // redirect addresses by client
	codes    map[string]grant
	access   map[string]token
	refresh  map[string]grant
	used     map[string]bool // refresh tokens that were exchanged
	requests []Request
	now      func() time.Time
}

// Request is one that came to the server.
type Request struct {
	Method, Path string
	Form         url.Values
	Header       http.Header
}

type grant struct{ client, redirect, challenge, resource, scope string }

type token struct {
	resource string
	until    time.Time
	scope    string
}

// New starts a server for the length of a test.
func New(t testing.TB) *Server { return NewAt(t, "") }

// NewAt is New at an address, 127.x.y.z:PORT, of this machine.
func NewAt(t testing.TB, address string) *Server {
	t.Helper()
	s := &Server{clients: map[string][]string{}, codes: map[string]grant{}, access: map[string]token{}, refresh: map[string]grant{}, used: map[string]bool{}, now: time.Now}
	s.web = start(t, address, s)
	s.URL = s.web.URL
	t.Cleanup(s.web.Close)
	return s
}

func start(t testing.TB, address string, handler http.Handler) *httptest.Server {
	t.Helper()
	web := httptest.NewUnstartedServer(handler)
	if address != "" {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = web.Listener.Close()
		web.Listener = listener
	}
	web.Start()
	return web
}

// Set changes the faults.
func (s *Server) Set(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
}

// Host is the server's host and port, as a permission names it.
func (s *Server) Host() string { return strings.TrimPrefix(s.URL, "http://") }

// Requests returns what came, in order.
func (s *Server) Requests(path string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Request
	for _, r := range s.requests {
		if path == "" || r.Path == path {
			found = append(found, r)
		}
	}
	return found
}

// Expire ends every access token.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.access)
}

// Secrets returns every token that was ever given, for looking where none may be.
func (s *Server) Secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for value := range s.access {
		all = append(all, value)
	}
	for value := range s.refresh {
		all = append(all, value)
	}
	for value := range s.used {
		all = append(all, value)
	}
	return all
}

// Valid reports whether a token is good for a resource.
func (s *Server) Valid(value, resource, scope string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.access[value]
	return ok && t.resource == resource && s.now().Before(t.until) && (scope == "" || strings.Contains(" "+t.scope+" ", " "+scope+" "))
}

// ServeHTTP answers as the server.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	s.mu.Lock()
	s.requests = append(s.requests, Request{r.Method, r.URL.Path, r.Form, r.Header.Clone()})
	f := s.faults
	s.mu.Unlock()
	switch {
	case f.Redirect != 0 && strings.HasPrefix(r.URL.Path, "/.well-known/"):
		http.Redirect(w, r, "/elsewhere", f.Redirect)
	case r.URL.Path == "/.well-known/oauth-authorization-server" && !f.NoMetadata:
		s.metadata(w, f)
	case r.URL.Path == "/register" && r.Method == http.MethodPost:
		s.register(w, r, f)
	case r.URL.Path == "/authorize":
		s.authorize(w, r, f)
	case r.URL.Path == "/token" && r.Method == http.MethodPost:
		s.token(w, r, f)
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) metadata(w http.ResponseWriter, f Faults) {
	or := func(a, b string) string {
		if a != "" {
			return a
		}
		return b
	}
	m := map[string]any{
		"issuer": or(f.Issuer, s.URL), "authorization_endpoint": or(f.Authorize, s.URL+"/authorize"), "token_endpoint": or(f.TokenEndpoint, s.URL+"/token"),
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
		"authorization_response_iss_parameter_supported": f.Iss != "", "scopes_supported": []string{"notes", "offline_access"},
	}
	if !f.NoRegistration {
		m["registration_endpoint"] = s.URL + "/register"
	}
	if f.NoPKCE {
		delete(m, "code_challenge_methods_supported")
	}
	if f.PlainPKCE {
		m["code_challenge_methods_supported"] = []string{"plain"}
	}
	answer(w, http.StatusOK, m)
}

func (s *Server) register(w http.ResponseWriter, r *http.Request, f Faults) {
	var asked struct {
		RedirectURIs []string `json:"redirect_uris"`
	}
	if f.RefuseClients || json.NewDecoder(r.Body).Decode(&asked) != nil || len(asked.RedirectURIs) != 1 || !strings.HasPrefix(asked.RedirectURIs[0], "http://127.0.0.1:") {
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_redirect_uri", "error_description": "hush: said by the server"})
		return
	}
	id := "client-" + rand.Text()
	s.mu.Lock()
	s.clients[id] = asked.RedirectURIs
	s.mu.Unlock()
	answer(w, http.StatusCreated, map[string]any{"client_id": id, "redirect_uris": asked.RedirectURIs, "token_endpoint_auth_method": "none"})
}

func (s *Server) authorize(w http.ResponseWriter, r *http.Request, f Faults) {
	q := r.URL.Query()
	s.mu.Lock()
	redirects := s.clients[q.Get("client_id")]
	s.mu.Unlock()
	if len(redirects) != 1 || redirects[0] != q.Get("redirect_uri") || q.Get("code_challenge_method") != "S256" || q.Get("response_type") != "code" ||
		q.Get("code_challenge") == "" || q.Get("state") == "" || q.Get("resource") == "" {
		http.Error(w, "this is not how to ask", http.StatusBadRequest)
		return
	}
	back := url.Values{"state": {q.Get("state")}}
	if f.WrongState {
		back.Set("state", "another")
	}
	switch f.Iss {
	case "-":
	case "":
		back.Set("iss", s.URL)
	default:
		back.Set("iss", f.Iss)
	}
	if f.Deny {
		back.Set("error", "access_denied")
		back.Set("error_description", "hush: said by the server")
	} else {
		code := rand.Text()
		s.mu.Lock()
		s.codes[code] = grant{q.Get("client_id"), q.Get("redirect_uri"), q.Get("code_challenge"), q.Get("resource"), q.Get("scope")}
		s.mu.Unlock()
		back.Set("code", code)
	}
	http.Redirect(w, r, redirects[0]+"?"+back.Encode(), http.StatusFound)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request, f Faults) {
	if f.SlowRefresh != nil && r.Form.Get("grant_type") == "refresh_token" {
		<-f.SlowRefresh
	}
	g, code := s.redeem(r.Form, f)
	if code != "" {
		status := http.StatusBadRequest
		if code == "broken" {
			status = http.StatusInternalServerError
		}
		answer(w, status, map[string]string{"error": code, "error_description": "hush: said by the server"})
		return
	}
	life := f.Lifetime
	if life == 0 {
		life = time.Hour
	}
	given := map[string]any{"access_token": "access-" + rand.Text(), "token_type": "Bearer", "expires_in": int(life.Seconds()), "scope": g.scope}
	if f.TokenType != "" {
		given["token_type"] = f.TokenType
	}
	s.mu.Lock()
	s.access[given["access_token"].(string)] = token{g.resource, s.now().Add(life), g.scope}
	if !f.NoRefresh {
		next := "refresh-" + rand.Text()
		s.refresh[next] = g
		given["refresh_token"] = next
	}
	s.mu.Unlock()
	answer(w, http.StatusOK, given)
}

// redeem checks a code with its verifier, or a refresh token, which is good once.
func (s *Server) redeem(form url.Values, f Faults) (grant, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch form.Get("grant_type") {
	case "authorization_code":
		g, ok := s.codes[form.Get("code")]
		delete(s.codes, form.Get("code"))
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		if f.NoToken || !ok || g.client != form.Get("client_id") || g.redirect != form.Get("redirect_uri") || g.resource != form.Get("resource") ||
			base64.RawURLEncoding.EncodeToString(sum[:]) != g.challenge {
			return grant{}, "invalid_grant"
		}
		return g, ""
	case "refresh_token":
		old := form.Get("refresh_token")
		g, ok := s.refresh[old]
		switch {
		case f.BreakRefresh:
			return grant{}, "broken"
		case f.RefuseRefresh || !ok || s.used[old] || g.client != form.Get("client_id") || g.resource != form.Get("resource"):
			return grant{}, "invalid_grant"
		}
		s.used[old] = true
		delete(s.refresh, old)
		return g, ""
	}
	return grant{}, "unsupported_grant_type"
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// Guarded is a server at /mcp that takes tokens of an authorization server.
type Guarded struct {
	URL string // of the endpoint

	auth  *Server
	inner http.Handler
	mu    sync.Mutex
	scope string   // that a call needs; "" for any
	names []string // of the authorization server, in the metadata
	sent  []string // every Authorization header
}

// Guard starts a guarded server before a handler, for the length of a test.
func Guard(t testing.TB, by *Server, inner http.Handler) *Guarded { return GuardAt(t, "", by, inner) }

// GuardAt is Guard at an address of this machine.
func GuardAt(t testing.TB, address string, by *Server, inner http.Handler) *Guarded {
	t.Helper()
	g := &Guarded{auth: by, inner: inner, names: []string{by.URL}}
	web := start(t, address, g)
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	g.URL = web.URL + "/mcp"
	return g
}

// Needs says which scope a call needs from now on.
func (g *Guarded) Needs(scope string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.scope = scope
}

// Names replaces the authorization servers that the metadata names.
func (g *Guarded) Names(servers ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.names = servers
}

// Sent returns every Authorization header that came.
func (g *Guarded) Sent() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.sent...)
}

// ServeHTTP answers as the guarded server.
func (g *Guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	origin := "http://" + r.Host
	g.mu.Lock()
	g.sent = append(g.sent, r.Header.Get("Authorization"))
	scope, names := g.scope, g.names
	g.mu.Unlock()
	switch r.URL.Path {
	case "/.well-known/oauth-protected-resource/mcp":
		answer(w, http.StatusOK, map[string]any{"resource": origin + "/mcp", "authorization_servers": names, "scopes_supported": []string{"notes"}})
		return
	case "/mcp":
	default:
		http.NotFound(w, r)
		return
	}
	value, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	metadata := fmt.Sprintf(`resource_metadata="%s/.well-known/oauth-protected-resource/mcp"`, origin)
	switch {
	case !g.auth.Valid(value, origin+"/mcp", ""):
		w.Header().Set("WWW-Authenticate", "Bearer "+metadata)
		http.Error(w, "hush: who are you", http.StatusUnauthorized)
	case !g.auth.Valid(value, origin+"/mcp", scope) && strings.Contains(body(r), "tools/call"):
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope="%s", %s`, scope, metadata))
		http.Error(w, "hush: not you", http.StatusForbidden)
	default:
		g.inner.ServeHTTP(w, r)
	}
}

// body reads a request's body and puts it back.
func body(r *http.Request) string {
	raw, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(raw)))
	return string(raw)
}

// Browse is a browser whose person agrees to everything: it opens an address and goes
// where it is sent. The last page's text is returned.
func Browse(ctx context.Context, address string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	page, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	return string(page), err
}
