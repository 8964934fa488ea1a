package host_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/browser"
	"sallyport/internal/coded"
	"sallyport/internal/oauthtest"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/host"
	"sallyport/runtime/plugins"
)

// browserArg makes the test binary a browser: it goes to the address and where it is
// sent from there.
const browserArg = "--be-a-browser"

func beABrowser(address string) {
	if _, err := oauthtest.Browse(context.Background(), address); err != nil {
		os.Exit(1)
	}
}

// remote is an installation with one package, whose server wants a sign-in.
type remote struct {
	*rig
	auth  *oauthtest.Server
	guard *oauthtest.Guarded
	id    plugins.ID
}

func newRemote(t *testing.T) *remote {
	t.Helper()
	r := &remote{rig: newRig(t), auth: oauthtest.New(t), id: plugins.ID{Plugin: "remote", Server: "main"}}
	r.keyring = newKeyring()
	server := sdk.NewServer(&sdk.Implementation{Name: "notes", Version: "1"}, nil)
	server.AddTool(&sdk.Tool{Name: "echo", InputSchema: map[string]any{"type": "object"}},
		func(_ context.Context, call *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(call.Params.Arguments)}}}, nil
		})
	r.guard = oauthtest.Guard(t, r.auth, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server },
		&sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	dir := filepath.Join(r.places.Plugins(), "remote")
	for _, dir := range []string{dir, r.places.Config} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r.write(filepath.Join(dir, "plugin.json"), `{"$schema":"https://agent-plugins.org/schemas/1.0.0/plugin.schema.json","name":"remote","version":"1.0.0"}`)
	r.dials(r.guard.URL)
	r.write(filepath.Join(r.places.Config, "config.json"), `{"connectors":{"remote/main":{"permit":{"net":["`+r.auth.Host()+`"]}}}}`)
	return r
}

// dials writes which endpoint the package names.
func (r *remote) dials(url string) {
	r.t.Helper()
	r.write(filepath.Join(r.places.Plugins(), "remote", "mcp.json"),
		`{"$schema":"https://agent-plugins.org/schemas/1.0.0/mcp.schema.json","mcpServers":{"main":{"type":"streamable-http","url":"`+url+`"}}}`)
}

func (r *remote) open() *host.Host {
	r.t.Helper()
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	h, err := host.Open(r.t.Context(), host.Config{Places: r.places, Version: "1.2.3", Home: r.home, Keyring: r.keyring,
		Environ: []string{"HOME=" + r.home, "PATH=" + os.Getenv("PATH"), "SHELL=/bin/sh"},
		Browser: browser.Opener{Program: []string{self, browserArg}}})
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

func (r *remote) state(h *host.Host) string {
	status := h.Gate.Status(r.t.Context(), r.id)
	return strings.TrimSpace(string(status.State) + " " + status.Reason)
}

// allow says yes to running, which is then tried.
func (r *remote) allow(h *host.Host) error {
	r.t.Helper()
	asked, err := h.Ask(r.t.Context(), r.id, operator)
	if err != nil {
		r.t.Fatal(err)
	}
	_, err = h.Answer(r.t.Context(), asked.ID, approvals.Answer{Allow: true}, operator)
	return err
}

// login signs in and waits for the end of it.
func (r *remote) login(h *host.Host) host.Login {
	r.t.Helper()
	if _, err := h.BeginLogin(r.t.Context(), r.id, true, operator); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	state, err := h.LoginState(ctx, r.id)
	if err != nil || state.State == host.LoginWaiting {
		r.t.Fatal(state, err)
	}
	return state
}

// enabled walks the whole way to a connector that may be called.
func (r *remote) enabled(h *host.Host) {
	r.t.Helper()
	if err := r.allow(h); coded.Of(err) != "oauth-login-needed" {
		r.t.Fatal(err)
	}
	state := r.login(h)
	if state.State != host.LoginDone || state.Code != "" || state.Decision == "" {
		r.t.Fatalf("%+v", state)
	}
	if _, err := h.Answer(r.t.Context(), state.Decision, approvals.Answer{Allow: true, Tools: []string{"echo"}, Always: true}, operator); err != nil {
		r.t.Fatal(err)
	}
}

func (r *remote) call(h *host.Host) error {
	_, err := h.Call(r.t.Context(), "cli", r.id, "echo", json.RawMessage(`{"name":"echo","arguments":{"a":1}}`))
	return err
}

func (r *remote) actions(h *host.Host, action string) []string {
	r.t.Helper()
	if err := h.Audit.Flush(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	page, err := h.Audit.Query(r.t.Context(), audit.Filter{Action: action})
	if err != nil {
		r.t.Fatal(err)
	}
	var all []string
	for _, record := range page.Records {
		all = append(all, strings.TrimSpace(record.Actor+" "+record.Via+" "+record.Plugin+"/"+record.Binding+" "+record.Result+" "+record.Reason))
	}
	return all
}

func TestAServerThatWantsASignInIsUsedAfterIt(t *testing.T) {
	r := newRemote(t)
	h := r.open()
	if _, err := h.BeginLogin(t.Context(), r.id, true, operator); coded.Of(err) != "never-approved" {
		t.Fatalf("before anybody approved it: %v", err)
	}
	if err := r.allow(h); coded.Of(err) != "oauth-login-needed" {
		t.Fatal(err)
	}
	if state := r.state(h); state != "blocked oauth-login-needed" {
		t.Fatal(state)
	}
	if next := h.Gate.Status(t.Context(), r.id).Next; next != "sallyport login remote/main" {
		t.Errorf("next is %q", next)
	}
	if n := len(r.auth.Requests("")); n != 0 {
		t.Fatalf("%d requests went to the sign-in before anybody asked for one", n)
	}
	r.close(h) // the question outlives the program
	h = r.open()
	defer func() { r.close(h) }()
	if state := r.state(h); state != "blocked oauth-login-needed" {
		t.Fatal(state)
	}
	state := r.login(h)
	if state.State != host.LoginDone || state.Decision == "" || state.Address != "" {
		t.Fatalf("%+v", state)
	}
	if _, err := h.Answer(t.Context(), state.Decision, approvals.Answer{Allow: true, Tools: []string{"echo"}, Always: true}, operator); err != nil {
		t.Fatal(err)
	}
	if err := r.call(h); err != nil {
		t.Fatal(err)
	}
	if got := r.actions(h, audit.OAuthLogin); !slices.Equal(got, []string{"tester cli remote/main ok"}) {
		t.Errorf("recorded %q", got)
	}
	if names, err := h.Secrets.List(t.Context()); err != nil || len(names) != 0 {
		t.Errorf("tokens are listed as secrets: %v, %v", names, err)
	}
	r.wantNoTokenOnDisk()
}

// wantNoTokenOnDisk looks into every file of the installation.
func (r *remote) wantNoTokenOnDisk() {
	r.t.Helper()
	hush := r.auth.Secrets()
	if len(hush) == 0 {
		r.t.Fatal("there are no tokens to look for")
	}
	err := filepath.WalkDir(filepath.Dir(r.places.Data), func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, token := range hush {
			if strings.Contains(string(raw), token) {
				r.t.Errorf("a token is in %s", filepath.Base(path))
			}
		}
		return err
	})
	if err != nil {
		r.t.Error(err)
	}
}

func TestASignInThatEndsBlocksAndASecondOneGoesOn(t *testing.T) {
	r := newRemote(t)
	h := r.open()
	defer r.close(h)
	r.enabled(h)
	if err := r.call(h); err != nil {
		t.Fatal(err)
	}
	r.auth.Set(oauthtest.Faults{RefuseRefresh: true})
	r.auth.Expire()
	before := len(r.auth.Requests("/authorize"))
	if err := r.call(h); coded.Of(err) != "oauth-login-needed" {
		t.Fatal(err)
	}
	if state := r.state(h); state != "blocked oauth-login-needed" {
		t.Fatal(state)
	}
	if got := r.actions(h, audit.Refuse); len(got) == 0 || !strings.HasSuffix(got[0], "oauth-login-needed") {
		t.Errorf("recorded %q", got)
	}
	if len(r.auth.Requests("/authorize")) != before {
		t.Fatal("a call began a sign-in")
	}
	r.auth.Set(oauthtest.Faults{})
	if state := r.login(h); state.State != host.LoginDone || state.Decision != "" {
		t.Fatalf("%+v", state)
	}
	if state := r.state(h); state != "enabled" {
		t.Fatal(state)
	}
	if err := r.call(h); err != nil {
		t.Fatal(err)
	}
}

func TestSigningOutEndsTheUse(t *testing.T) {
	r := newRemote(t)
	h := r.open()
	defer r.close(h)
	r.enabled(h)
	if err := r.call(h); err != nil {
		t.Fatal(err)
	}
	if n, err := h.Logout(t.Context(), r.id, operator); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	sent := len(r.guard.Sent())
	if err := r.call(h); coded.Of(err) != "oauth-login-needed" {
		t.Fatal(err)
	}
	for _, header := range r.guard.Sent()[sent:] {
		if header != "" {
			t.Error("a token was sent after signing out")
		}
	}
	if n, err := h.Logout(t.Context(), r.id, operator); n != 0 || err != nil {
		t.Fatal(n, err)
	}
}

// What ends an approval for good ends the sign-in with it.
func TestARevokedConnectorHasNoTokens(t *testing.T) {
	r := newRemote(t)
	h := r.open()
	defer r.close(h)
	r.enabled(h)
	if err := h.Gate.Revoke(t.Context(), r.id, operator); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, signed, err := h.OAuth.Signed(t.Context(), r.id, r.guard.URL); err != nil || !signed {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("its tokens are still there")
		}
	}
	if err := r.allow(h); coded.Of(err) != "oauth-login-needed" {
		t.Fatalf("approved again, it is %v", err)
	}
}

// A package that comes to name another endpoint gets no token there: neither before it
// is approved nor after.
func TestANewEndpointGetsNoToken(t *testing.T) {
	r := newRemote(t)
	h := r.open()
	defer r.close(h)
	r.enabled(h)
	other := oauthtest.Guard(t, r.auth, http.NotFoundHandler())
	r.dials(other.URL)
	if err := h.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.Gate.Recheck(t.Context(), r.id)
	if err := r.call(h); coded.Of(err) == "" || len(other.Sent()) != 0 {
		t.Fatal(err, other.Sent())
	}
	if _, err := h.BeginLogin(t.Context(), r.id, true, operator); coded.Of(err) == "" {
		t.Fatal("somebody signs in to what nobody approved")
	}
	if err := r.allow(h); coded.Of(err) != "oauth-login-needed" {
		t.Fatal(err)
	}
	for _, header := range other.Sent() {
		if header != "" {
			t.Error("the new endpoint got a token of the old one")
		}
	}
}

func TestOneSignInAtATimeAndItCanBeCancelled(t *testing.T) {
	r := newRemote(t)
	h := r.open()
	defer r.close(h)
	if err := r.allow(h); coded.Of(err) != "oauth-login-needed" {
		t.Fatal(err)
	}
	if _, err := h.LoginState(t.Context(), r.id); coded.Of(err) != "login-unknown" {
		t.Fatal(err)
	}
	first, err := h.BeginLogin(t.Context(), r.id, false, operator)
	if err != nil || first.State != host.LoginWaiting || first.Opened || !strings.HasPrefix(first.Address, r.auth.URL) {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := h.BeginLogin(t.Context(), r.id, false, operator)
	if err != nil || second.Address != first.Address {
		t.Fatalf("%+v, %v", second, err)
	}
	if err := h.CancelLogin(t.Context(), r.id); err != nil {
		t.Fatal(err)
	}
	state, err := h.LoginState(t.Context(), r.id)
	if err != nil || state.State != host.LoginFailed || state.Code != "oauth-login-cancelled" || state.Address != "" {
		t.Fatalf("%+v, %v", state, err)
	}
	if state := r.state(h); state != "blocked oauth-login-needed" {
		t.Fatal(state)
	}
	// The address of an attempt that was cancelled leads nowhere.
	if _, err := oauthtest.Browse(t.Context(), first.Address); err == nil {
		t.Error("somebody still listens")
	}
}

func TestACompanionCannotSignIn(t *testing.T) {
	r := newRemote(t)
	h := r.open()
	defer r.close(h)
	for _, via := range []string{approvals.ViaCompanion, approvals.ViaAgent} {
		if _, err := h.BeginLogin(t.Context(), r.id, true, approvals.By{User: "x", Via: via}); coded.Of(err) != "answer-not-allowed" {
			t.Errorf("%s: %v", via, err)
		}
	}
}

// Who edits config.json and asks at once is asked about what is there.
func TestAQuestionIsAboutTheConfigurationOfNow(t *testing.T) {
	r := newRemote(t)
	h := r.open()
	defer r.close(h)
	h.Start()
	if _, err := h.Ask(t.Context(), r.id, operator); err != nil {
		t.Fatal(err)
	}
	r.write(filepath.Join(r.places.Config, "config.json"), `{"connectors":{"remote/main":{"permit":{"net":["login.example.com"]}}}}`)
	asked, err := h.Ask(t.Context(), r.id, operator)
	if err != nil || !slices.Equal(asked.Fields.Permitted.Net, []string{"login.example.com:443"}) {
		t.Fatal(asked.Fields.Permitted.Net, err)
	}
}
