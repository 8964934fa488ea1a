package oauth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/mcp"
	"sallyport/runtime/permissions"
	"sallyport/runtime/plugins"
	"sallyport/runtime/secrets"
)

// hello is what asks a server whether it wants a sign-in: the first message of any
// session.
const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"sallyport","version":"0"}}}`

// maxAddress bounds an address for a browser.
const maxAddress = 8 << 10

// Login signs a person in to a connector, under a grant for it as it is approved. show
// is given the address for their browser, once; the answer is waited for as long as
// Config.Limit, the grant and ctx last. What is gained is in the keyring when it
// returns.
func (b *Book) Login(ctx context.Context, grant approvals.Grant, show func(address string) error) error {
	launch, err := grant.Launch()
	if err != nil {
		return err
	}
	l := &login{book: b, launch: launch, show: show}
	if err := l.possible(); err != nil {
		return err
	}
	held, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-grant.Done():
			cancel(grant.Err())
		case <-held.Done():
		}
	}()
	ctx, stop := context.WithTimeoutCause(held, b.config.Limit, &coded.Error{Code: "oauth-login-expired",
		Sentence: "nobody signed in in time", Next: "begin again: sallyport login " + launch.ID.String()})
	defer stop()
	gained, err := l.run(ctx)
	if err == nil {
		err = grant.Err()
	}
	if err == nil {
		err = b.keep(ctx, launch.ID, gained)
	}
	if err != nil {
		failed := b.config.Record(context.WithoutCancel(ctx), audit.OAuthLogin, launch.ID, audit.Failed, coded.Of(err))
		return errors.Join(err, failed)
	}
	return nil
}

// login is one sign-in.
type login struct {
	book   *Book
	launch approvals.Launch
	show   func(address string) error
	policy *policy
	back   *redirect
	gained *record

	asked, answered atomic.Bool // a person was asked, and came back
}

// possible refuses what nobody can sign in to.
func (l *login) possible() error {
	if l.launch.Transport == plugins.Stdio {
		return coded.New("oauth-not-needed", "it is a program on this computer, and not a server to sign in to")
	}
	for _, h := range l.launch.Headers {
		if strings.EqualFold(h.Name, "Authorization") {
			return &coded.Error{Code: "oauth-not-needed", Sentence: "it sends an Authorization header of its own, so no sign-in would be used",
				Next: "take that header away first"}
		}
	}
	return nil
}

func (l *login) run(ctx context.Context) (*record, error) {
	key := keyOf(l.launch.ID, l.launch.URL)
	before, by, err := l.book.before(ctx, key) // a keyring that cannot be used is known before anybody signs in
	if err != nil {
		return nil, err
	}
	client, err := mcp.CheckedClient(l.launch.URL, l.launch.Permissions, l.book.config.Network)
	if err != nil {
		return nil, err
	}
	l.policy = &policy{next: client.Transport, id: l.launch.ID, endpoint: l.launch.URL, permitted: l.launch.Permissions}
	request, said, err := l.challenge(ctx, client, by)
	if err != nil {
		return nil, err
	}
	client.Transport = l.policy
	if l.back, err = listen(ctx); err != nil {
		return nil, err
	}
	defer l.back.close()
	gained := &record{Schema: recordSchema, Endpoint: l.launch.URL}
	l.gained = gained
	if before != nil && before.Endpoint == gained.Endpoint && by != nil && by.Status == http.StatusForbidden {
		gained.Scopes = before.Scopes // more rights, and not others
	}
	handler, err := auth.NewAuthorizationCodeHandler(l.config(client, gained))
	if err == nil {
		err = handler.Authorize(ctx, request, &http.Response{StatusCode: said.Status, Header: http.Header{"Www-Authenticate": said.Header}, Body: http.NoBody})
	}
	if err == nil && gained.Access == "" {
		err = errors.New("no token was given")
	}
	if err != nil {
		return nil, l.explain(ctx, err)
	}
	return gained, nil
}

// before reads what there is of an earlier sign-in, and what the server last said.
func (b *Book) before(ctx context.Context, key string) (*record, *mcp.Challenge, error) {
	s, err := b.take(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	defer s.give()
	r, err := b.load(ctx, s, key)
	return r, s.challenge, err
}

// challenge is the server's refusal that a sign-in begins with: the last one, or else
// that of a first message without a token.
func (l *login) challenge(ctx context.Context, client *http.Client, by *mcp.Challenge) (*http.Request, mcp.Challenge, error) {
	var none mcp.Challenge
	method, body := http.MethodPost, []byte(hello)
	if l.launch.Transport == plugins.SSE {
		method, body = http.MethodGet, nil
	}
	request, err := http.NewRequestWithContext(ctx, method, l.launch.URL, bytes.NewReader(body))
	if err != nil {
		return nil, none, fmt.Errorf("cannot ask the server: %w", err)
	}
	if by != nil {
		return request, *by, nil
	}
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		var refusal *coded.Error
		if errors.As(err, &refusal) {
			return nil, none, permit(l.launch.ID, l.launch.URL, refusal)
		}
		return nil, none, &coded.Error{Code: "oauth-unreachable", Sentence: "the server cannot be reached", Next: "try again in a moment"}
	}
	_ = response.Body.Close()
	switch {
	case response.StatusCode < 300:
		return nil, none, coded.New("oauth-not-needed", "the server does not ask for a sign-in")
	case response.StatusCode != http.StatusUnauthorized:
		return nil, none, coded.New("http-status", fmt.Sprintf("the server answered with HTTP status %d", response.StatusCode))
	}
	return request, mcp.Challenge{Status: response.StatusCode, Header: response.Header.Values("Www-Authenticate")}, nil
}

// config is the SDK's flow for one sign-in. What it gains goes into gained.
func (l *login) config(client *http.Client, gained *record) *auth.AuthorizationCodeHandlerConfig {
	earlier := gained.Scopes
	return &auth.AuthorizationCodeHandlerConfig{
		Client:                   client,
		RedirectURL:              l.back.url(),
		AuthorizationCodeFetcher: l.ask,
		RequestRefreshToken:      true,
		AcceptUnadvertisedIss:    true, // one that does not match is refused either way
		ScopeFilter: func(found []string) []string {
			all := append(slices.Clone(earlier), found...)
			slices.Sort(all)
			return slices.Compact(all)
		},
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Sallyport", RedirectURIs: []string{l.back.url()},
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
			TokenEndpointAuthMethod: "none",
		}},
		NewTokenSource: func(_ context.Context, c *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
			gained.TokenURL, gained.ClientID, gained.ClientSecret, gained.AuthStyle = c.Endpoint.TokenURL, c.ClientID, c.ClientSecret, c.Endpoint.AuthStyle
			gained.Scopes = c.Scopes
			if gained.ClientSecret == "" {
				gained.AuthStyle = oauth2.AuthStyleInParams
			}
			if _, m, _ := l.policy.state(); m != nil {
				gained.Issuer = m.Issuer
			}
			return oauth2.StaticTokenSource(token), gained.take(token)
		},
	}
}

// ask shows a person the address and waits for their browser to come back.
func (l *login) ask(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	address, query, err := browserAddress(args.URL)
	if err != nil {
		return nil, err
	}
	if _, m, _ := l.policy.state(); m == nil {
		return nil, noMetadata()
	}
	l.policy.begun()
	l.asked.Store(true)
	l.gained.Resource = query.Get("resource") // as it has to be named from now on
	l.back.expect(query.Get("state"))
	if err := l.show(address); err != nil {
		return nil, err
	}
	result, err := l.back.wait(ctx)
	if err == nil {
		l.answered.Store(true)
	}
	return result, err
}

// browserAddress lets a browser have https, or this machine, written without what any
// program on the way might read as its own.
func browserAddress(text string) (string, url.Values, error) {
	refused := &coded.Error{Code: "oauth-address-refused", Sentence: "the address of the sign-in is not one for a browser",
		Next: "ask whoever runs the server"}
	u, err := url.Parse(text)
	if err != nil || len(text) > maxAddress || u.Host == "" || u.User != nil || u.Opaque != "" ||
		u.Scheme != "https" && (u.Scheme != "http" || !permissions.IsLoopbackName(u.Hostname())) {
		return "", nil, refused
	}
	u.Fragment = ""
	plain := strings.NewReplacer("'", "%27", "(", "%28", ")", "%29", "!", "%21", "*", "%2A", "$", "%24", ";", "%3B").Replace(u.String())
	if strings.ContainsFunc(plain, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune("\"<>\\^`{|}", c) }) {
		return "", nil, refused
	}
	return plain, u.Query(), nil
}

// explain names the end of a flow. The SDK's words hold what servers wrote, and are
// dropped.
func (l *login) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if refused, _, _ := l.policy.state(); refused != nil {
		return refused
	}
	var refusal *coded.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	return l.policy.notDone(l.asked.Load(), l.answered.Load())
}

// keep puts a new sign-in on record, on the list and in the keyring, in that order:
// nobody would find one that no list has.
func (b *Book) keep(ctx context.Context, id plugins.ID, gained *record) error {
	key := keyOf(id, gained.Endpoint)
	s, err := b.take(ctx, key)
	if err != nil {
		return err
	}
	defer s.give()
	ctx = context.WithoutCancel(ctx)
	if err := b.config.Record(ctx, audit.OAuthLogin, id, audit.OK, ""); err != nil {
		return err
	}
	if err := b.put(ctx, Entry{Connector: id.String(), Origin: originOf(gained.Endpoint), Issuer: gained.Issuer, Key: key, At: b.config.Now().UTC()}); err != nil {
		return err
	}
	old := *s
	s.record, s.unsaved, s.dead, s.challenge = gained, false, false, nil
	if err := b.save(ctx, s, key); err != nil {
		s.record, s.unsaved, s.dead = old.record, old.unsaved, old.dead
		if old.record == nil {
			err = errors.Join(err, b.change(ctx, func(list []Entry) []Entry {
				return slices.DeleteFunc(list, func(e Entry) bool { return e.Key == key })
			}))
		}
		return err
	}
	return nil
}

var _ Vault = secrets.Internal{}
