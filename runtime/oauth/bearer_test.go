package oauth

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/coded"
	"sallyport/internal/oauthtest"
	"sallyport/runtime/mcp"
	"sallyport/runtime/plugins"
)

func refused(status int) mcp.Challenge {
	return mcp.Challenge{Status: status, Header: []string{"Bearer"}}
}

// token is what would be sent now.
func (h *house) token() (string, error) {
	return h.book.Bearer(h.launch(), false).Token(h.t.Context())
}

func (h *house) later(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

func TestATokenIsRenewedBeforeItsEnd(t *testing.T) {
	h := newHouse(t).signedIn()
	first, err := h.token()
	if err != nil || !strings.HasPrefix(first, "access-") {
		t.Fatal(first, err)
	}
	h.later(59 * time.Minute)
	if again, err := h.token(); err != nil || again != first {
		t.Fatal(again, err)
	}
	h.later(time.Minute)
	second, err := h.token()
	if err != nil || second == first || second == "" {
		t.Fatal(second, err)
	}
	form := h.auth.Requests("/token")[1].Form
	if form.Get("grant_type") != "refresh_token" || form.Get("resource") != h.guard.URL || form.Get("client_id") == "" {
		t.Errorf("it was renewed with %v", form)
	}
	if got := h.recorded(); !slices.Equal(got, []string{"oauth.login ok", "oauth.refresh ok"}) {
		t.Errorf("recorded %q", got)
	}
	for _, line := range append(h.recorded(), mustJSON(t, h.index.list)) {
		for _, hush := range h.auth.Secrets() {
			if strings.Contains(line, hush) {
				t.Errorf("a token is in %q", line)
			}
		}
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A server that ended a token early is asked again once, with a new one.
func TestATokenThatIsTakenNoMoreIsRenewedOnce(t *testing.T) {
	h := newHouse(t).signedIn()
	conn, err := h.dial()
	if err != nil {
		t.Fatal(err)
	}
	call := func() error {
		_, err := conn.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"echo","arguments":{}}`), nil)
		return err
	}
	h.auth.Expire()
	if err := call(); err != nil {
		t.Fatal(err)
	}
	h.auth.Set(oauthtest.Faults{RefuseRefresh: true})
	h.auth.Expire()
	wantCode(t, call(), "oauth-login-needed")
	n := len(h.auth.Requests("/token"))
	wantCode(t, call(), "oauth-login-needed")
	if len(h.auth.Requests("/token")) != n {
		t.Error("a refresh token that was refused is tried again")
	}
	if !slices.Contains(h.needed, "oauth-login-needed") {
		t.Error("nobody was told")
	}
	h.auth.Set(oauthtest.Faults{})
	h.signedIn() // and the session goes on
	if err := call(); err != nil {
		t.Fatal(err)
	}
}

func TestManyCallsRenewATokenOnce(t *testing.T) {
	h := newHouse(t).signedIn()
	slow := make(chan struct{})
	h.auth.Set(oauthtest.Faults{SlowRefresh: slow})
	launch := h.launch()
	old, _ := h.token()
	h.auth.Expire()
	var calls sync.WaitGroup
	got := make([]string, 8)
	for i := range got {
		calls.Go(func() {
			next, err := h.book.Bearer(launch, false).Refused(t.Context(), old, false, refused(401))
			if err != nil {
				t.Error(err)
			}
			got[i] = next
		})
	}
	close(slow)
	calls.Wait()
	if slices.Sort(got); got[0] == "" || got[0] != got[len(got)-1] {
		t.Errorf("they go on with %d different tokens", len(slices.Compact(got)))
	}
	if n := len(h.auth.Requests("/token")); n != 2 {
		t.Errorf("%d requests for a token", n)
	}
}

// A caller that goes does not lose the new refresh token, which the server gives once.
func TestARenewalGoesOnWithoutItsCaller(t *testing.T) {
	h := newHouse(t).signedIn()
	slow := make(chan struct{})
	h.auth.Set(oauthtest.Faults{SlowRefresh: slow})
	h.later(2 * time.Hour)
	launch := h.launch()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = h.book.Bearer(launch, false).Token(ctx)
	}()
	for deadline := time.Now().Add(20 * time.Second); len(h.auth.Requests("/token")) < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing is renewed")
		}
	}
	cancel()
	close(slow)
	<-done
	h.auth.Set(oauthtest.Faults{})
	h.open()
	if token, err := h.token(); err != nil || token == "" {
		t.Fatal(err)
	}
}

// The server has thrown the old refresh token away: the new one is stored before it
// is used, or nothing is sent.
func TestANewTokenIsStoredBeforeItIsUsed(t *testing.T) {
	h := newHouse(t).signedIn()
	h.later(2 * time.Hour)
	before := len(h.guard.Sent())
	bearer := h.book.Bearer(h.launch(), false)
	h.vault.fail(coded.New("keyring-locked", "the keyring is locked"))
	for range 2 {
		if token, err := bearer.Token(t.Context()); coded.Of(err) != "keyring-locked" || token != "" {
			t.Fatal(token, err)
		}
	}
	if n := len(h.auth.Requests("/token")); n != 2 {
		t.Errorf("%d requests for a token", n)
	}
	if !slices.Contains(h.needed, "keyring-locked") || len(h.guard.Sent()) != before {
		t.Error(h.needed)
	}
	h.vault.fail(nil)
	token, err := bearer.Token(t.Context())
	if err != nil || !strings.Contains(h.vault.text(), token) {
		t.Fatal("it is sent and not stored", err)
	}
}

func TestAFailureOfTheMomentEndsNoSignIn(t *testing.T) {
	h := newHouse(t).signedIn()
	h.later(2 * time.Hour)
	h.auth.Set(oauthtest.Faults{BreakRefresh: true})
	_, err := h.token()
	wantCode(t, err, "oauth-refresh-failed")
	if len(h.needed) != 0 || strings.Contains(err.Error(), "hush") {
		t.Error(h.needed, err)
	}
	h.auth.Set(oauthtest.Faults{})
	if token, err := h.token(); err != nil || token == "" {
		t.Fatal(err)
	}
}

func TestATokenWithoutRenewalEndsWithItsTime(t *testing.T) {
	h := newHouse(t)
	h.auth.Set(oauthtest.Faults{NoRefresh: true})
	h.signedIn()
	h.later(2 * time.Hour)
	token, err := h.token()
	wantCode(t, err, "oauth-login-needed")
	if token != "" {
		t.Error("a token whose time is over would be sent")
	}
}

// A token is for the endpoint that it was given for, by every byte of its address.
func TestATokenIsForItsEndpointOnly(t *testing.T) {
	h := newHouse(t).signedIn()
	launch := h.launch()
	for name, change := range map[string]func(){
		"another path":      func() { launch.URL = h.guard.URL + "/other" },
		"another query":     func() { launch.URL = h.guard.URL + "?team=b" },
		"another port":      func() { launch.URL = "http://127.0.0.1:9/mcp" },
		"another host":      func() { launch.URL = strings.Replace(h.guard.URL, "127.0.0.1", "localhost", 1) },
		"another scheme":    func() { launch.URL = strings.Replace(h.guard.URL, "http:", "https:", 1) },
		"another connector": func() { launch.ID = plugins.ID{Plugin: "demo", Server: "other"} },
	} {
		launch = h.launch()
		change()
		if token, err := h.book.Bearer(launch, false).Token(t.Context()); token != "" || err != nil {
			t.Errorf("%s: %q, %v", name, token, err)
		}
	}
}

// What was permitted when somebody signed in is asked again for each renewal.
func TestARenewalNeedsThePermissionToo(t *testing.T) {
	h := newHouse(t).signedIn()
	h.later(2 * time.Hour)
	launch := h.launch()
	launch.Permissions.Net = nil
	before := len(h.auth.Requests(""))
	_, err := h.book.Bearer(launch, false).Token(t.Context())
	wantCode(t, err, "permission-denied")
	if len(h.auth.Requests("")) != before {
		t.Error("the host was dialled")
	}
}

func TestATokenThatIsTooLargeForTheKeyringIsHadAgain(t *testing.T) {
	h := newHouse(t)
	h.signedIn()
	full := len(h.vault.text())
	h.vault.limit = full - 10
	h.signedIn()
	first, err := h.token()
	if err != nil || strings.Contains(h.vault.text(), first) {
		t.Fatal(err)
	}
	h.open()
	second, err := h.token()
	if err != nil || second == first || second == "" {
		t.Fatal(second, err)
	}
}

func TestSigningOutForgets(t *testing.T) {
	h := newHouse(t).signedIn()
	n, err := h.book.Logout(t.Context(), h.rig.ID)
	if err != nil || n != 1 || h.vault.text() != "" || len(h.index.list) != 0 {
		t.Fatal(n, err, h.index.list)
	}
	if token, err := h.token(); token != "" || err != nil {
		t.Fatal(token, err)
	}
	if n, err := h.book.Logout(t.Context(), h.rig.ID); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if got := h.recorded(); !slices.Equal(got, []string{"oauth.login ok", "oauth.logout ok"}) {
		t.Errorf("recorded %q", got)
	}
}

// Where the keyring cannot be asked, the sign-in counts no more all the same.
func TestSigningOutOfALockedKeyring(t *testing.T) {
	h := newHouse(t).signedIn()
	h.vault.fail(coded.New("keyring-locked", "the keyring is locked"))
	_, err := h.book.Logout(t.Context(), h.rig.ID)
	wantCode(t, err, "keyring-locked")
	h.open()
	if token, err := h.token(); token != "" || err != nil {
		t.Fatal(token, err)
	}
	h.vault.fail(nil)
	if n, err := h.book.Logout(t.Context(), h.rig.ID); n != 1 || err != nil || h.vault.text() != "" {
		t.Fatal(n, err)
	}
}

func TestARecordOfAnotherVersionIsNotSent(t *testing.T) {
	h := newHouse(t).signedIn()
	for key := range h.vault.values {
		h.vault.values[key] = []byte(strings.Replace(string(h.vault.values[key]), `"schema":1`, `"schema":2`, 1))
	}
	h.open()
	if token, err := h.token(); token != "" || err != nil {
		t.Fatal(token, err)
	}
}
