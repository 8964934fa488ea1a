package mcp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/permissions"
)

// signer is a Bearer of the tests': tokens one after the other.
type signer struct {
	tokens  []string
	used    int
	refused []int
}

func (s *signer) Token(context.Context) (string, error) { return s.tokens[s.used], nil }

func (s *signer) Refused(_ context.Context, _ string, again bool, by Challenge) (string, error) {
	s.refused = append(s.refused, by.Status)
	if again || s.used+1 == len(s.tokens) {
		return "", coded.New("oauth-login-needed", "somebody has to sign in")
	}
	s.used++
	return s.tokens[s.used], nil
}

func TestARequestIsSignedAndMadeOnceMoreAtMost(t *testing.T) {
	for _, row := range []struct {
		name     string
		status   int
		header   string
		own      map[string]string // headers of the connector's own
		tokens   []string
		code     string
		requests int64
	}{
		{"the first token is good", 401, "Bearer", nil, []string{"good"}, "", 1},
		{"the second token is good", 401, "Bearer", nil, []string{"old", "good"}, "", 2},
		{"the second is none either", 401, "Bearer", nil, []string{"old", "older", "good"}, "oauth-login-needed", 2},
		{"there is no other", 401, "Bearer", nil, []string{"old"}, "oauth-login-needed", 1},
		{"nobody says what is wanted", 401, "", nil, []string{"old"}, "oauth-login-needed", 1},
		{"another scheme is wanted", 401, `Basic realm="x"`, nil, []string{"old", "good"}, "http-status", 1},
		{"more rights are wanted", 403, `Bearer error="insufficient_scope"`, nil, []string{"old"}, "oauth-login-needed", 1},
		{"it is forbidden", 403, "Bearer", nil, []string{"old", "good"}, "http-status", 1},
		{"the connector has a header of its own", 401, "Bearer", map[string]string{"authorization": "Bearer mine"}, []string{"good"}, "http-status", 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			var requests atomic.Int64
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				if r.Header.Get("Authorization") == "Bearer good" {
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
					return
				}
				if row.header != "" {
					w.Header().Set("WWW-Authenticate", row.header)
				}
				w.WriteHeader(row.status)
			}))
			defer web.Close()
			conn, err := Dial(web.URL, row.own, Options{Bearer: &signer{tokens: row.tokens}})
			if err != nil {
				t.Fatal(err)
			}
			defer closeAndWait(t, conn)
			_, err = conn.Call(t.Context(), "ping", nil, nil)
			if coded.Of(err) != row.code || requests.Load() != row.requests {
				t.Fatalf("%v after %d requests", err, requests.Load())
			}
		})
	}
}

func TestAStreamIsSignedToo(t *testing.T) {
	var unsigned atomic.Int64
	url, _ := sdkStream(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer good" {
				unsigned.Add(1)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	dialledStream(t, url, Options{Bearer: &signer{tokens: []string{"old", "good"}}})
	if unsigned.Load() != 1 {
		t.Errorf("%d requests were not signed", unsigned.Load())
	}
	conn, err := DialSSE(url, nil, Options{Bearer: &signer{tokens: []string{"old"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer closeAndWait(t, conn)
	if _, err := Handshake(t.Context(), conn, "1"); coded.Of(err) != "oauth-login-needed" {
		t.Fatal(err)
	}
}

func TestACheckedClientGoesWhereItMay(t *testing.T) {
	w := &wires{answers: [][]string{{"1.1.1.1"}}}
	private := &wires{answers: [][]string{{"10.0.0.7"}}}
	for _, row := range []struct {
		name, url string
		net       []string
		wires     *wires
		denied    bool
	}{
		{"the endpoint's own host", "https://api.example.com/.well-known/x", nil, w, false},
		{"its other port", "https://api.example.com:8443/x", nil, w, true},
		{"another host", "https://login.example.com/token", nil, w, true},
		{"another host that is named", "https://login.example.com/token", []string{"login.example.com"}, w, false},
		{"one that is named and private", "https://login.example.com/token", []string{"*.example.com"}, private, true},
		{"one that is named for that", "https://login.example.com/token", []string{"login.example.com"}, private, false},
		{"plain http", "http://login.example.com/token", []string{"login.example.com:80"}, w, true},
		{"this machine", "http://127.0.0.1:9/token", nil, w, true},
		{"what calls itself this machine and is not", "https://localhost/token", []string{"localhost"}, private, true},
		{"another scheme", "file:///etc/passwd", nil, w, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			client, err := CheckedClient("https://api.example.com/mcp?key=hush", permissions.Set{Net: row.net}, row.wires.network())
			if err != nil {
				t.Fatal(err)
			}
			before := len(row.wires.seen())
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, row.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(request)
			if err == nil {
				response.Body.Close()
				t.Fatal("somebody answers")
			}
			if denied := coded.Of(err) == "permission-denied"; denied != row.denied || (len(row.wires.seen()) > before) == row.denied {
				t.Errorf("%v, dialled %v", err, row.wires.seen()[before:])
			}
		})
	}
}

func TestACheckedClientFollowsNothing(t *testing.T) {
	var reached atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer other.Close()
	web := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer web.Close()
	client, err := CheckedClient(web.URL, permissions.Set{Net: []string{strings.TrimPrefix(other.URL, "http://")}}, Network{})
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusTemporaryRedirect || reached.Load() != 0 {
		t.Fatal(response.StatusCode, reached.Load())
	}
}
