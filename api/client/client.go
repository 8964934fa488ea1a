// Package client talks to a host's API: over loopback to a running sidecar, or in
// memory to a host of the same process.
//
// The one idea: a token is sent only to an instance that has proved itself
// (spec/local-api.md 4), so another program on a stale port never sees one.
//
// It holds no state but the connection. cli, app and the tests import it.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"sallyport/api"
	"sallyport/internal/coded"
	"sallyport/internal/loopback"
	"sallyport/runtime/health"
)

// Client is a connection to one host.
type Client struct {
	base  string
	token string
	via   string
	http  *http.Client
}

// New returns a client for the sidecar on 127.0.0.1:port. Every connection proves
// under key that our instance is at its other end before the token is sent over
// it. It never uses a proxy and never follows a redirect.
func New(port int, key []byte, token, via string) *Client {
	return &Client{base: loopback.URL(port), token: token, via: via, http: &http.Client{
		Transport:     Transport(port, key),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Transport returns connections to 127.0.0.1:port, whatever address is asked for, each of
// which has proved under key that our instance is at its other end. It uses no proxy.
func Transport(port int, key []byte) *http.Transport {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		connection, _, err := health.Dial(ctx, port, key)
		return connection, err
	}
	return &http.Transport{Proxy: nil, DialContext: dial, DisableCompression: true}
}

// InMemory returns a client that calls handler directly, without a socket.
func InMemory(handler http.Handler, token, via string) *Client {
	return &Client{base: "http://127.0.0.1:0", token: token, via: via,
		http: &http.Client{Transport: direct{handler}}}
}

// Close gives idle connections back.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Get reads path into answer.
func (c *Client) Get(ctx context.Context, path string, query url.Values, answer any) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return c.do(ctx, http.MethodGet, path, nil, answer)
}

// Post sends body (nil for none) and reads the answer (nil to ignore it).
func (c *Client) Post(ctx context.Context, path string, body, answer any) error {
	return c.do(ctx, http.MethodPost, path, body, answer)
}

// Delete removes what is at path.
func (c *Client) Delete(ctx context.Context, path string, answer any) error {
	return c.do(ctx, http.MethodDelete, path, nil, answer)
}

// Stream reads path into w as it comes, for exports.
func (c *Client) Stream(ctx context.Context, path string, query url.Values, w io.Writer) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	response, err := c.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return Refusal(response)
	}
	_, err = io.Copy(w, response.Body)
	return err
}

func (c *Client) do(ctx context.Context, method, path string, body, answer any) error {
	response, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return Refusal(response)
	}
	if answer == nil {
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("cannot read the answer of the sidecar: %w", err)
	}
	return nil
}

func (c *Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var reader io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("cannot encode the request: %w", err)
		}
		reader = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make the request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("X-Sallyport-Via", c.via)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		if coded.Of(err) != "" {
			return nil, err
		}
		return nil, &coded.Error{Code: "not-running", Sentence: "the sidecar does not answer",
			Next: "start it: sallyport serve", Err: err}
	}
	return response, nil
}

// Refusal reads an error answer back into the error that the host made.
func Refusal(response *http.Response) error {
	var body api.Error
	raw, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err == nil {
		err = json.Unmarshal(raw, &body)
	}
	if err != nil || body.Code == "" {
		return fmt.Errorf("the sidecar answered with status %d and no reason", response.StatusCode)
	}
	return &coded.Error{Code: body.Code, Sentence: body.Message, Next: body.Details.Next, Path: body.Details.Path}
}
