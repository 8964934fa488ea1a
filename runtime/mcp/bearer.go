package mcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/permissions"
)

// Bearer signs the requests of one connector that is dialled: at its own endpoint
// and nowhere else. It never asks a person anything.
type Bearer interface {
	// Token returns the access token to send now, "" for none.
	Token(ctx context.Context) (string, error)
	// Refused is told that the server refused a request with that token ("" for
	// none) and returns another one to try once, or the refusal to end with. The
	// second time, again, there is nothing left to try.
	Refused(ctx context.Context, token string, again bool, by Challenge) (string, error)
}

// Challenge is what a server says where it refuses.
type Challenge struct {
	Status int
	Header []string // WWW-Authenticate
}

// asks reports whether the server wants a token, or one that may do more. What is
// refused for another reason is the server's own answer.
func (c Challenge) asks() bool {
	bearer, scope := false, false
	for _, header := range c.Header {
		lower := strings.ToLower(header)
		bearer = bearer || strings.Contains(lower, "bearer")
		scope = scope || strings.Contains(lower, "insufficient_scope")
	}
	switch c.Status {
	case http.StatusUnauthorized:
		return bearer || len(c.Header) == 0
	case http.StatusForbidden:
		return bearer && scope
	}
	return false
}

// do makes one request, signed where the connector is signed in. A request that is
// refused for want of a better token is made once more if there is one.
func (w *endpoint) do(ctx context.Context, method, address string, body []byte) (*http.Response, error) {
	if w.bearer == nil {
		return w.exchange(ctx, method, address, body, "")
	}
	token, err := w.bearer.Token(ctx)
	for again := false; err == nil; again = true {
		response, failed := w.exchange(ctx, method, address, body, token)
		if failed != nil {
			return nil, failed
		}
		by := Challenge{response.StatusCode, response.Header.Values("Www-Authenticate")}
		if !by.asks() {
			return response, nil
		}
		_ = response.Body.Close()
		if token, err = w.bearer.Refused(ctx, token, again, by); again && err == nil {
			err = coded.New("http-status", fmt.Sprintf("the server answered with HTTP status %d", by.Status))
		}
	}
	return nil, err
}

// signs reports whether headers leave the place of a token free.
func signs(headers map[string]string) bool {
	for name := range headers {
		if strings.EqualFold(name, "Authorization") {
			return false
		}
	}
	return true
}

// CheckedClient returns an HTTP client for what belongs to signing in at a
// connector's endpoint: metadata, registration, tokens. It goes to the endpoint's own
// host and to those that allowed names, at addresses that were looked at
// (spec/permissions.md, net), over plain http to this machine only. It follows no
// redirect and uses no proxy.
func CheckedClient(endpoint string, allowed permissions.Set, network Network) (*http.Client, error) {
	target, err := url.Parse(endpoint)
	if err != nil {
		return nil, &coded.Error{Code: "endpoint-refused", Sentence: "the endpoint is not a URL", Err: err}
	}
	out, err := newOutbound(target, Options{Allowed: allowed, Network: network})
	if err != nil {
		return nil, err
	}
	transport := newTransport(func(ctx context.Context, kind, address string) (net.Conn, error) {
		one := *out // what calls itself this machine has to be it
		host, _, err := net.SplitHostPort(address)
		one.plain = err == nil && permissions.IsLoopbackName(host)
		return one.dial(ctx, kind, address)
	}, network)
	transport.DisableKeepAlives = true // a few requests, and nothing is left
	return &http.Client{
		Transport:     plainHere{transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       dialTimes,
	}, nil
}

// Permitted reports whether CheckedClient may go to the address of a URL, as far as
// names tell; the refusal names the host.
func Permitted(endpoint, address string, allowed permissions.Set) error {
	own, err := url.Parse(endpoint)
	if err != nil {
		return err
	}
	to, err := url.Parse(address)
	if err != nil || to.Hostname() == "" {
		return coded.New("permission-denied", "the connection is not permitted: it is to no host")
	}
	a, err := newOutbound(own, Options{})
	if err != nil {
		return err
	}
	b, err := newOutbound(to, Options{})
	if err != nil {
		return err
	}
	if a.host == b.host && a.port == b.port || allowed.AllowsHost(b.host, b.port) {
		return nil
	}
	return denied(net.JoinHostPort(b.host, fmt.Sprint(b.port)), "it is not among the permissions")
}

// plainHere refuses plain http to anything but this machine, before a name is looked
// up.
type plainHere struct{ next http.RoundTripper }

func (p plainHere) RoundTrip(request *http.Request) (*http.Response, error) {
	secure := request.URL.Scheme == "https"
	if !secure && (request.URL.Scheme != "http" || !permissions.IsLoopbackName(request.URL.Hostname())) {
		return nil, denied(request.URL.Host, "it is not over https")
	}
	return p.next.RoundTrip(request)
}

func newTransport(dial func(ctx context.Context, network, address string) (net.Conn, error), network Network) *http.Transport {
	transport := &http.Transport{DialContext: dial, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 10 * time.Second}
	if network.TLS != nil {
		transport.TLSClientConfig = network.TLS.Clone()
	}
	return transport
}

// notSignedIn reports whether err is a refusal before anything was sent, for want of
// what signs the request: no failure of the server's.
func notSignedIn(code string) bool {
	return strings.HasPrefix(code, "oauth-") || strings.HasPrefix(code, "keyring-") || strings.HasPrefix(code, "secret")
}

// refusedBy returns the refusal in an error that a request ended with, or nil: the
// connection was not permitted, or the connector is not signed in.
func refusedBy(err error) error {
	var refusal *coded.Error
	if errors.As(err, &refusal) && (refusal.Code == "permission-denied" || notSignedIn(refusal.Code)) {
		return refusal
	}
	return nil
}
