package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"sallyport/internal/coded"
	"sallyport/runtime/audit"
	"sallyport/runtime/mcp"
	"sallyport/runtime/permissions"
	"sallyport/runtime/plugins"
)

const (
	recordSchema = 1
	// leeway is how long before its end a token is renewed.
	leeway = 30 * time.Second
	// renewTime bounds one renewal.
	renewTime = 20 * time.Second
)

// record is what the keyring has of one sign-in.
type record struct {
	Schema   int    `json:"schema"`
	Endpoint string `json:"endpoint"` // the whole: another path is another server
	Resource string `json:"resource"`
	Issuer   string `json:"issuer"`

	TokenURL     string           `json:"tokenUrl"`
	ClientID     string           `json:"clientId"`
	ClientSecret string           `json:"clientSecret,omitempty"`
	AuthStyle    oauth2.AuthStyle `json:"authStyle"`

	Access  string    `json:"access,omitempty"`
	Refresh string    `json:"refresh,omitempty"`
	Expiry  time.Time `json:"expiry,omitzero"`
	Scopes  []string  `json:"scopes,omitempty"`
}

// bearer is the mcp.Bearer of one connector.
type bearer struct {
	book      *Book
	id        plugins.ID
	endpoint  string
	permitted permissions.Set
	probe     bool
}

// Token returns what is kept for exactly this endpoint, renewed if its time is over.
// Without a sign-in the keyring is not asked.
func (s *bearer) Token(ctx context.Context) (string, error) {
	if _, signed, err := s.book.Signed(ctx, s.id, s.endpoint); err != nil || !signed {
		return "", err
	}
	key := keyOf(s.id, s.endpoint)
	held, err := s.book.take(ctx, key)
	if err != nil {
		return "", err
	}
	defer held.give()
	r, err := s.current(ctx, held, key)
	if err != nil || r == nil {
		return "", s.told(err)
	}
	if held.dead {
		return "", s.told(s.loginNeeded("its sign-in has ended"))
	}
	if r.Access != "" && (r.Expiry.IsZero() || s.book.config.Now().Add(leeway).Before(r.Expiry)) {
		return r.Access, nil
	}
	return s.renew(ctx, held, key)
}

// current reads the record and writes one that could not be written before: what a
// server gave in exchange for the last one is stored before it is used.
func (s *bearer) current(ctx context.Context, held *slot, key string) (*record, error) {
	r, err := s.book.load(ctx, held, key)
	if err != nil || r == nil || r.Endpoint != s.endpoint {
		return nil, err
	}
	if held.unsaved {
		if err := s.book.save(context.WithoutCancel(ctx), held, key); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Refused renews a token that the server took no more, once. Where another request
// has done that already, its token is the next one.
func (s *bearer) Refused(ctx context.Context, token string, again bool, by mcp.Challenge) (string, error) {
	key := keyOf(s.id, s.endpoint)
	held, err := s.book.take(ctx, key)
	if err != nil {
		return "", err
	}
	defer held.give()
	held.challenge = &by
	switch {
	case by.Status == 403:
		return "", s.told(s.loginNeeded("the server wants you to sign in again, with more rights than it was given"))
	case token == "":
		return "", s.told(s.loginNeeded("the server wants you to sign in"))
	case again:
		return "", s.told(s.loginNeeded("the server does not take its sign-in any more"))
	}
	r, err := s.current(ctx, held, key)
	switch {
	case err != nil:
		return "", s.told(err)
	case r == nil || held.dead || r.Refresh == "":
		return "", s.told(s.loginNeeded("its sign-in has ended"))
	case r.Access != "" && r.Access != token:
		return r.Access, nil
	}
	return s.renew(ctx, held, key)
}

// renew exchanges the refresh token. The turn is held, so that a token is exchanged
// once, and the exchange goes on when the caller gives up: the server would have
// taken the old token for used.
func (s *bearer) renew(ctx context.Context, held *slot, key string) (string, error) {
	r := held.record
	if r.Refresh == "" {
		return "", s.told(s.loginNeeded("its sign-in has ended"))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTime)
	defer cancel()
	if err := s.book.config.Record(ctx, audit.OAuthRefresh, s.id, audit.OK, ""); err != nil {
		return "", err
	}
	next, err := s.exchange(ctx, r)
	if err != nil {
		if failed := s.book.config.Record(ctx, audit.OAuthRefresh, s.id, audit.Failed, coded.Of(err)); failed != nil {
			return "", failed
		}
		held.dead = coded.Of(err) == codeLoginNeeded
		return "", s.told(err)
	}
	held.record, held.unsaved = next, true
	if err := s.book.save(ctx, held, key); err != nil {
		return "", s.told(err)
	}
	return next.Access, nil
}

func (s *bearer) exchange(ctx context.Context, r *record) (*record, error) {
	if err := permitted(s.id, s.endpoint, r.TokenURL, s.permitted); err != nil {
		return nil, err
	}
	client, err := mcp.CheckedClient(s.endpoint, s.permitted, s.book.config.Network)
	if err != nil {
		return nil, err
	}
	config := oauth2.Config{ClientID: r.ClientID, ClientSecret: r.ClientSecret,
		Endpoint: oauth2.Endpoint{TokenURL: r.TokenURL, AuthStyle: r.AuthStyle}}
	// The library's own renewal cannot say what the token is for (RFC 8707). A code
	// that is empty is as good as absent (RFC 6749 3.2).
	token, err := config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, client), "",
		oauth2.SetAuthURLParam("grant_type", "refresh_token"),
		oauth2.SetAuthURLParam("refresh_token", r.Refresh),
		oauth2.SetAuthURLParam("resource", r.Resource))
	if err != nil {
		return nil, s.notRenewed(err)
	}
	next := *r
	if err := next.take(token); err != nil {
		return nil, err
	}
	return &next, nil
}

// notRenewed tells an answer that ends the sign-in from a failure of the moment. The
// server's own words are in neither.
func (s *bearer) notRenewed(err error) error {
	var answered *oauth2.RetrieveError
	var refusal *coded.Error
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.As(err, &answered) && (answered.ErrorCode == "invalid_grant" || answered.ErrorCode == "invalid_client" || answered.ErrorCode == "unauthorized_client"):
		return s.loginNeeded("its sign-in has ended")
	}
	return &coded.Error{Code: "oauth-refresh-failed", Sentence: "its sign-in could not be renewed", Next: "try again in a moment"}
}

// take puts what a server gave into r. A token that could not be sent is refused.
func (r *record) take(token *oauth2.Token) error {
	if !strings.EqualFold(token.Type(), "Bearer") || token.AccessToken == "" || len(token.AccessToken) > maxToken ||
		strings.ContainsFunc(token.AccessToken, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return &coded.Error{Code: "oauth-token-refused", Sentence: "the sign-in gave a token that cannot be used",
			Next: "ask whoever runs the server"}
	}
	r.Access, r.Expiry = token.AccessToken, token.Expiry.UTC()
	if token.Expiry.IsZero() {
		r.Expiry = time.Time{}
	}
	if token.RefreshToken != "" {
		r.Refresh = token.RefreshToken
	}
	if scope, ok := token.Extra("scope").(string); ok && scope != "" {
		r.Scopes = strings.Fields(scope)
	}
	return nil
}

// maxToken bounds what goes into a header.
const maxToken = 16 << 10

const codeLoginNeeded = "oauth-login-needed"

func (s *bearer) loginNeeded(sentence string) error {
	return &coded.Error{Code: "oauth-login-needed", Sentence: sentence, Next: fmt.Sprintf("sallyport login %s", s.id)}
}

// told passes an error on, and tells of one that only a person can end.
func (s *bearer) told(err error) error {
	var why *coded.Error
	if !s.probe && s.book.config.Needed != nil && errors.As(err, &why) &&
		(why.Code == codeLoginNeeded || strings.HasPrefix(why.Code, "keyring-")) {
		s.book.config.Needed(s.id, why)
	}
	return err
}

// permitted is mcp.Permitted with what to do for this connector.
func permitted(id plugins.ID, endpoint, address string, allowed permissions.Set) error {
	err := mcp.Permitted(endpoint, address, allowed)
	var refusal *coded.Error
	if errors.As(err, &refusal) {
		return permit(id, address, refusal)
	}
	return err
}

// permit says how the host of an address is permitted to a connector.
func permit(id plugins.ID, address string, refusal *coded.Error) *coded.Error {
	told := *refusal
	if u, err := url.Parse(address); err == nil {
		told.Next = fmt.Sprintf(`if you trust that host, add "permit": {"net": [%q]} to the connector %s in config.json, then: sallyport approve %s`, u.Host, id, id)
	}
	return &told
}
