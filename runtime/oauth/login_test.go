package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"sallyport/internal/coded"
	"sallyport/internal/oauthtest"
	"sallyport/runtime/approvals"
	"sallyport/runtime/approvals/approvalstest"
	"sallyport/runtime/mcp"
	"sallyport/runtime/plugins"
	"sallyport/runtime/secrets"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// vault is a keyring in memory that can be made to fail.
type vault struct {
	mu     sync.Mutex
	values map[string][]byte
	err    error
	limit  int
	asked  int
}

func (v *vault) begin() error {
	v.asked++
	return v.err
}

func (v *vault) Keep(_ context.Context, key string, value []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.begin(); err != nil {
		return err
	}
	if v.limit > 0 && len(value) > v.limit {
		return coded.New("secret-too-large", "it is too large")
	}
	v.values[key] = slices.Clone(value)
	return nil
}

func (v *vault) Kept(_ context.Context, key string) ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.begin(); err != nil {
		return nil, err
	}
	value, ok := v.values[key]
	if !ok {
		return nil, secrets.ErrNotFound
	}
	return value, nil
}

func (v *vault) Forget(_ context.Context, key string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.begin(); err != nil {
		return err
	}
	delete(v.values, key)
	return nil
}

func (v *vault) fail(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.err = err
}

func (v *vault) text() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all strings.Builder
	for _, value := range v.values {
		all.Write(value)
	}
	return all.String()
}

// index is a list in memory.
type index struct {
	mu   sync.Mutex
	list []Entry
}

func (i *index) Logins(context.Context) ([]Entry, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.list), nil
}

func (i *index) ChangeLogins(_ context.Context, change func([]Entry) []Entry) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.list = change(slices.Clone(i.list))
	return nil
}

// house is a guarded server, its sign-in, and a connector that is approved for both.
type house struct {
	t     *testing.T
	rig   *approvalstest.Rig
	auth  *oauthtest.Server
	guard *oauthtest.Guarded
	vault *vault
	index *index
	book  *Book

	mu      sync.Mutex
	now     time.Time
	records []string
	needed  []string
	shown   []string
}

func newHouse(t *testing.T) *house {
	h := &house{t: t, rig: approvalstest.New(t), auth: oauthtest.New(t), vault: &vault{values: map[string][]byte{}}, index: &index{}, now: time.Now()}
	server := sdk.NewServer(&sdk.Implementation{Name: "notes", Version: "1"}, nil)
	server.AddTool(&sdk.Tool{Name: "echo", InputSchema: map[string]any{"type": "object"}},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(r.Params.Arguments)}}}, nil
		})
	h.guard = oauthtest.Guard(t, h.auth, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{JSONResponse: true}))
	h.rig.Edit(func(c *plugins.Connector) {
		c.Transport, c.Launch = plugins.StreamableHTTP, plugins.Launch{URL: h.guard.URL}
		c.Requested.Net = []string{h.auth.Host()}
	})
	h.open()
	return h
}

// open makes a new book over the same vault and list, as a restart does.
func (h *house) open() {
	h.book = New(Config{Vault: h.vault, Index: h.index, Limit: 20 * time.Second,
		Now: func() time.Time { h.mu.Lock(); defer h.mu.Unlock(); return h.now },
		Record: func(_ context.Context, action string, id plugins.ID, result, reason string) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.records = append(h.records, strings.TrimSpace(action+" "+result+" "+reason))
			return nil
		},
		Needed: func(_ plugins.ID, why *coded.Error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.needed = append(h.needed, why.Code)
		},
	})
}

func (h *house) recorded() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.records)
}

func (h *house) grant() approvals.Grant {
	h.t.Helper()
	if h.rig.Gate.Status(h.t.Context(), h.rig.ID).Approved == nil {
		h.rig.Approve(approvals.Offer{Tools: []json.RawMessage{approvalstest.Tool("echo", "says it again")}}, "echo")
	}
	grant, _, err := h.rig.Gate.LoginGrant(h.t.Context(), h.rig.ID, approvalstest.Operator)
	if err != nil {
		h.t.Fatal(err)
	}
	return grant
}

// browse is a person who does what they are asked.
func (h *house) browse(address string) error {
	h.mu.Lock()
	h.shown = append(h.shown, address)
	h.mu.Unlock()
	go oauthtest.Browse(context.Background(), address)
	return nil
}

func (h *house) login() error {
	h.t.Helper()
	return h.book.Login(h.t.Context(), h.grant(), h.browse)
}

func (h *house) signedIn() *house {
	h.t.Helper()
	if err := h.login(); err != nil {
		h.t.Fatal(err)
	}
	return h
}

func (h *house) launch() approvals.Launch {
	h.t.Helper()
	launch, err := h.grant().Launch()
	if err != nil {
		h.t.Fatal(err)
	}
	return launch
}

// dial opens a session as the pool does, signed.
func (h *house) dial() (*mcp.Conn, error) {
	h.t.Helper()
	launch := h.launch()
	conn, err := mcp.Dial(launch.URL, nil, mcp.Options{Allowed: launch.Permissions, Bearer: h.book.Bearer(launch, false)})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { conn.Close(nil); <-conn.Gone() })
	_, err = mcp.Handshake(h.t.Context(), conn, "1")
	return conn, err
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if coded.Of(err) != code {
		t.Fatalf("got %v (%s), want %s", err, coded.Of(err), code)
	}
}

func TestSigningInIsUsedByTheNextSession(t *testing.T) {
	h := newHouse(t)
	_, err := h.dial()
	wantCode(t, err, "oauth-login-needed")
	if h.vault.asked != 0 {
		t.Error("the keyring was asked about a connector that nobody has signed in to")
	}
	h.signedIn()
	conn, err := h.dial()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"echo","arguments":{"a":1}}`), nil); err != nil {
		t.Fatal(err)
	}
	if got, want := h.recorded(), []string{"oauth.login ok"}; !slices.Equal(got, want) {
		t.Errorf("recorded %q", got)
	}
	asked := h.auth.Requests("/authorize")[0].Form
	if asked.Get("resource") != h.guard.URL || asked.Get("code_challenge_method") != "S256" || asked.Get("scope") == "" || !strings.HasPrefix(asked.Get("redirect_uri"), "http://127.0.0.1:") {
		t.Errorf("asked with %v", asked)
	}
	got := h.auth.Requests("/token")[0].Form
	if got.Get("resource") != h.guard.URL || got.Get("code_verifier") == "" {
		t.Error("the code was exchanged without saying what for, or without its verifier")
	}
	// After a restart it is still there, and nobody has to sign in.
	h.open()
	if _, err := h.dial(); err != nil {
		t.Fatal(err)
	}
}

func TestASignInThatIsRefused(t *testing.T) {
	for _, row := range []struct {
		name   string
		faults oauthtest.Faults
		code   string
		asked  bool // a person was asked
	}{
		{"no metadata", oauthtest.Faults{NoMetadata: true}, "oauth-metadata-missing", false},
		{"metadata that is redirected", oauthtest.Faults{Redirect: 302}, "oauth-metadata-missing", false},
		{"metadata of another issuer", oauthtest.Faults{Issuer: "https://login.example.com"}, "oauth-metadata-invalid", false},
		{"no PKCE", oauthtest.Faults{NoPKCE: true}, "oauth-metadata-invalid", false},
		{"PKCE that protects nothing", oauthtest.Faults{PlainPKCE: true}, "oauth-metadata-invalid", false},
		{"no registration", oauthtest.Faults{NoRegistration: true}, "oauth-metadata-invalid", false},
		{"a registration that is refused", oauthtest.Faults{RefuseClients: true}, "oauth-registration-failed", false},
		{"tokens from a host that is not permitted", oauthtest.Faults{TokenEndpoint: "https://tokens.example.com/token"}, "permission-denied", false},
		{"tokens from this machine, which is not permitted", oauthtest.Faults{TokenEndpoint: "http://127.0.0.1:9/token"}, "permission-denied", false},
		{"tokens over plain http", oauthtest.Faults{TokenEndpoint: "http://tokens.example.com/token"}, "permission-denied", false},
		{"a browser sent to a file", oauthtest.Faults{Authorize: "file:///etc/passwd"}, "oauth-metadata-invalid", false},
		{"a browser sent over plain http", oauthtest.Faults{Authorize: "http://login.example.com/"}, "oauth-metadata-invalid", false},
		{"a browser sent with a password", oauthtest.Faults{Authorize: "https://u:p@login.example.com/"}, "oauth-address-refused", false},
		{"another state", oauthtest.Faults{WrongState: true}, "oauth-state-mismatch", true},
		{"a no", oauthtest.Faults{Deny: true}, "oauth-refused", true},
		{"an answer of another issuer", oauthtest.Faults{Iss: "https://login.example.com"}, "oauth-issuer-mismatch", true},
		{"an answer without the issuer that was promised", oauthtest.Faults{Iss: "-"}, "oauth-issuer-mismatch", true},
		{"no token", oauthtest.Faults{NoToken: true}, "oauth-token-refused", true},
		{"a token of another kind", oauthtest.Faults{TokenType: "DPoP"}, "oauth-token-refused", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHouse(t)
			h.auth.Set(row.faults)
			err := h.login()
			wantCode(t, err, row.code)
			if strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "access-") {
				t.Errorf("it says %q", err)
			}
			if asked := len(h.shown) > 0; asked != row.asked {
				t.Errorf("a person was asked: %v", h.shown)
			}
			if text := h.vault.text(); text != "" || len(h.index.list) != 0 {
				t.Errorf("something was kept: %d bytes, %v", len(text), h.index.list)
			}
			if got := h.recorded(); len(got) != 1 || got[0] != "oauth.login failed "+row.code {
				t.Errorf("recorded %q", got)
			}
			if row.code == "permission-denied" && len(h.auth.Requests("/register")) != 0 {
				t.Error("Sallyport registered with a sign-in that it may not use")
			}
		})
	}
}

// The refusal names the host and how it is permitted.
func TestASignInOnAHostThatIsNotPermitted(t *testing.T) {
	h := newHouse(t)
	h.rig.Edit(func(c *plugins.Connector) { c.Requested.Net = nil })
	err := h.login()
	wantCode(t, err, "permission-denied")
	var refusal *coded.Error
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Sentence, h.auth.Host()) || !strings.Contains(refusal.Next, `"permit": {"net": ["`+h.auth.Host()+`"]}`) || !strings.Contains(refusal.Next, "sallyport approve demo/main") {
		t.Errorf("it says %v", refusal)
	}
	if n := len(h.auth.Requests("")); n != 0 {
		t.Errorf("%d requests reached it", n)
	}
}

func TestASignInIsPermittedByTheOperatorsOwnRequest(t *testing.T) {
	h := newHouse(t)
	h.rig.Edit(func(c *plugins.Connector) {
		c.Requested.Net, c.AskedNet = []string{h.auth.Host()}, []string{h.auth.Host()}
	})
	h.signedIn()
}

func TestNothingIsSignedInToWithoutAGrant(t *testing.T) {
	h := newHouse(t)
	wantCode(t, h.book.Login(t.Context(), approvals.Grant{}, h.browse), "no-grant")
	_, _, err := h.rig.Gate.LoginGrant(t.Context(), h.rig.ID, approvalstest.Operator)
	wantCode(t, err, "never-approved")
	grant := h.grant()
	_, _, err = h.rig.Gate.LoginGrant(t.Context(), h.rig.ID, approvals.By{User: "a", Via: approvals.ViaAgent})
	wantCode(t, err, "answer-not-allowed")
	// One that ends meanwhile ends the sign-in, and what it would have given.
	err = h.book.Login(t.Context(), grant, func(string) error {
		return h.rig.Gate.Revoke(t.Context(), h.rig.ID, approvalstest.Operator)
	})
	wantCode(t, err, "revoked")
	if h.vault.text() != "" {
		t.Error("something was kept")
	}
}

func TestASignInIsGivenUp(t *testing.T) {
	t.Run("when it is cancelled", func(t *testing.T) {
		h := newHouse(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		err := h.book.Login(ctx, h.grant(), func(string) error { cancel(coded.New("oauth-login-cancelled", "cancelled")); return nil })
		wantCode(t, err, "oauth-login-cancelled")
	})
	t.Run("when nobody comes", func(t *testing.T) {
		h := newHouse(t)
		h.book.config.Limit = 200 * time.Millisecond
		wantCode(t, h.book.Login(t.Context(), h.grant(), func(string) error { return nil }), "oauth-login-expired")
	})
	t.Run("when the server cannot be reached", func(t *testing.T) {
		h := newHouse(t)
		h.rig.Edit(func(c *plugins.Connector) { c.Launch.URL = "http://127.0.0.1:1/mcp" })
		wantCode(t, h.login(), "oauth-unreachable")
	})
	t.Run("when the server wants none", func(t *testing.T) {
		h := newHouse(t)
		free := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") }))
		defer free.Close()
		h.rig.Edit(func(c *plugins.Connector) { c.Launch.URL = free.URL })
		wantCode(t, h.login(), "oauth-not-needed")
	})
	t.Run("when the connector has a header for it", func(t *testing.T) {
		h := newHouse(t)
		h.rig.Edit(func(c *plugins.Connector) {
			c.Launch.Headers = []plugins.Value{{Name: "authorization", Value: "secret:NOTES_TOKEN", FromOperator: true}}
			c.Requested.Secrets = []string{"NOTES_TOKEN"}
		})
		wantCode(t, h.login(), "oauth-not-needed")
	})
}

func TestOnlyTheOneAnswerIsTaken(t *testing.T) {
	h := newHouse(t)
	get := func(address, host string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			request.Host = host
		}
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return response.StatusCode
	}
	err := h.book.Login(t.Context(), h.grant(), func(address string) error {
		u, _ := url.Parse(address)
		back, _ := url.Parse(u.Query().Get("redirect_uri"))
		if back.Hostname() != "127.0.0.1" || len(back.Path) < 20 {
			t.Errorf("it comes back to %s", back)
		}
		for _, row := range []struct{ address, host string }{
			{"http://" + back.Host + "/", ""}, {"http://" + back.Host + "/callback/guess?code=x&state=y", ""},
			{back.String() + "?code=x&state=" + u.Query().Get("state"), "evil.example"},
		} {
			if status := get(row.address, row.host); status != http.StatusNotFound {
				t.Errorf("%s at %q is answered with %d", row.address, row.host, status)
			}
		}
		return h.browse(address)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAKeyringThatCannotBeUsedIsKnownBeforeAnybodySignsIn(t *testing.T) {
	h := newHouse(t)
	h.vault.fail(coded.New("keyring-locked", "the keyring is locked"))
	wantCode(t, h.login(), "keyring-locked")
	if len(h.shown) != 0 {
		t.Error("somebody was asked")
	}
}

func TestAKeyringThatFailsAfterwardsKeepsNothing(t *testing.T) {
	h := newHouse(t)
	err := h.book.Login(t.Context(), h.grant(), func(address string) error {
		h.vault.fail(coded.New("keyring-locked", "the keyring is locked"))
		return h.browse(address)
	})
	wantCode(t, err, "keyring-locked")
	h.vault.fail(nil)
	if _, signed, _ := h.book.Signed(t.Context(), h.rig.ID, h.guard.URL); signed || h.vault.text() != "" {
		t.Error("something was kept")
	}
}

func TestMoreRightsAreAskedForWithThoseThereWere(t *testing.T) {
	h := newHouse(t).signedIn()
	h.guard.Needs("notes.write")
	conn, err := h.dial()
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"echo","arguments":{}}`), nil)
	wantCode(t, err, "oauth-login-needed")
	if strings.Contains(err.Error(), "hush") {
		t.Error(err)
	}
	h.signedIn()
	requests := h.auth.Requests("/authorize")
	scope := strings.Fields(requests[len(requests)-1].Form.Get("scope"))
	if !slices.Contains(scope, "notes") || !slices.Contains(scope, "notes.write") {
		t.Errorf("asked for %q", scope)
	}
	if _, err := conn.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"echo","arguments":{}}`), nil); err != nil {
		t.Fatal(err)
	}
}

func FuzzBrowserAddress(f *testing.F) {
	for _, seed := range []string{"https://login.example.com/a?state=1", "http://localhost/$(x)", "https://a/\"", "javascript:x", "https://u@a/", "https://a/%zz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		address, _, err := browserAddress(text)
		if err != nil {
			return
		}
		if !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://") || strings.ContainsAny(address, " '\"`$;|<>\\\n()") {
			t.Fatalf("%q becomes %q", text, address)
		}
	})
}
