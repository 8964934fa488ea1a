package oauth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"sallyport/internal/coded"
	"sallyport/runtime/permissions"
	"sallyport/runtime/plugins"
)

// maxMetadata bounds a document that says how to sign in; the SDK has the same
// bound.
const maxMetadata = 1 << 20

// policy is the transport of one sign-in. It looks at what the flow does not: that a
// refusal of the dialer ends the sign-in and is not taken for an address without an
// answer, that PKCE is S256, and that the places where a code and a token will be sent
// are permitted before a person is asked to do anything.
type policy struct {
	next      http.RoundTripper
	id        plugins.ID
	endpoint  string
	permitted permissions.Set

	mu       sync.Mutex
	refused  *coded.Error // the first one; nothing goes out after it
	metadata *metadata    // of the authorization server
	posted   bool         // something was sent to it
}

// metadata is the part of RFC 8414 that is looked at here.
type metadata struct {
	Issuer       string   `json:"issuer"`
	Authorize    string   `json:"authorization_endpoint"`
	Token        string   `json:"token_endpoint"`
	Registration string   `json:"registration_endpoint"`
	PKCE         []string `json:"code_challenge_methods_supported"`
}

// RoundTrip makes one request of the flow.
func (p *policy) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := p.before(request); err != nil {
		return nil, err
	}
	response, err := p.next.RoundTrip(request)
	if err != nil {
		return nil, p.denied(request.URL.String(), err)
	}
	if request.Method != http.MethodGet || response.StatusCode != http.StatusOK || !isMetadata(request.URL.Path) {
		return response, nil
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxMetadata+1))
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	if err := p.read(raw); err != nil {
		return nil, err
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	return response, nil
}

func isMetadata(path string) bool {
	return strings.Contains(path, "/.well-known/oauth-authorization-server") || strings.Contains(path, "/.well-known/openid-configuration")
}

// before lets nothing be sent to a server that did not say how it wants it.
func (p *policy) before(request *http.Request) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused == nil && request.Method == http.MethodPost {
		if p.metadata == nil {
			p.refused = noMetadata()
		}
		p.posted = true
	}
	if p.refused != nil {
		return p.refused
	}
	return nil
}

func (p *policy) denied(address string, err error) error {
	var refusal *coded.Error
	if !errors.As(err, &refusal) {
		return err
	}
	return p.refuse(permit(p.id, address, refusal))
}

func (p *policy) refuse(why *coded.Error) *coded.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused == nil {
		p.refused = why
	}
	return p.refused
}

func (p *policy) read(raw []byte) error {
	var m metadata
	if len(raw) > maxMetadata || json.Unmarshal(raw, &m) != nil {
		return p.refuse(badMetadata("what it says about itself cannot be read"))
	}
	if !slices.Contains(m.PKCE, "S256") {
		return p.refuse(badMetadata("it does not protect its codes (PKCE with S256)"))
	}
	if m.Registration == "" {
		return p.refuse(badMetadata("it takes no programs that register themselves"))
	}
	for _, address := range []string{m.Token, m.Registration} {
		err := permitted(p.id, p.endpoint, address, p.permitted)
		var refusal *coded.Error
		if errors.As(err, &refusal) {
			return p.refuse(refusal)
		}
		if err != nil {
			return p.refuse(badMetadata("what it says about itself cannot be read"))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.metadata = &m
	return nil
}

func (p *policy) state() (refused *coded.Error, m *metadata, posted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused, p.metadata, p.posted
}

// begun forgets what was posted, so that state tells what came after.
func (p *policy) begun() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.posted = false
}

func noMetadata() *coded.Error {
	return &coded.Error{Code: "oauth-metadata-missing", Sentence: "the server wants a sign-in and does not say where",
		Next: "ask whoever runs it, or give the connector a header with a token (sallyport secrets set)"}
}

func badMetadata(sentence string) *coded.Error {
	return &coded.Error{Code: "oauth-metadata-invalid", Sentence: "the sign-in of the server cannot be used: " + sentence,
		Next: "ask whoever runs the server, or give the connector a header with a token (sallyport secrets set)"}
}

// notDone names the end of a flow that failed without a refusal, by how far it came.
func (p *policy) notDone(asked, answered bool) *coded.Error {
	_, m, posted := p.state()
	switch {
	case !asked && m == nil:
		return noMetadata()
	case !asked && !posted:
		return badMetadata("what it says about itself does not hold")
	case !asked:
		return &coded.Error{Code: "oauth-registration-failed", Sentence: "the sign-in did not take Sallyport's registration",
			Next: "ask whoever runs the server"}
	case answered && !posted:
		return &coded.Error{Code: "oauth-issuer-mismatch", Sentence: fmt.Sprintf("the answer is not from who was asked to sign you in (%s)", originOf(m.Issuer)),
			Next: "do not try again before you know why; tell whoever runs the server"}
	}
	return &coded.Error{Code: "oauth-token-refused", Sentence: "the sign-in was allowed, and gave no token", Next: "sign in again, or ask whoever runs the server"}
}
