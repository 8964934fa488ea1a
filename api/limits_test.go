package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"sallyport/api"
)

// raw writes bytes to the server and returns the first line of its answer, and
// whether the connection was closed then.
func (r *rig) raw(port int, text string, wait time.Duration) (line string, closed bool) {
	r.t.Helper()
	connection, err := (&net.Dialer{}).DialContext(r.t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		r.t.Fatal(err)
	}
	defer connection.Close()
	connection.SetDeadline(time.Now().Add(wait))
	written := make(chan struct{})
	go func() {
		defer close(written)
		io.WriteString(connection, text)
	}()
	reader := bufio.NewReader(connection)
	line, err = reader.ReadString('\n')
	if err == nil {
		_, err = io.Copy(io.Discard, reader)
	}
	connection.Close()
	<-written
	timedOut, ok := err.(net.Error)
	return strings.TrimSpace(line), !ok || !timedOut.Timeout()
}

// TestForeignPagesAndHugeHeaders is case C63: what a page or a confused program
// sends is refused before any routing, on every route, health too.
func TestForeignPagesAndHugeHeaders(t *testing.T) {
	r := newRig(t)
	for _, path := range []string{"/api/desktop-health", "/v1/status", "/mcp", "/nowhere"} {
		for name, row := range map[string]struct {
			header map[string]string
			code   string
		}{
			"another host":             {map[string]string{"Host": fmt.Sprintf("evil.example:%d", r.port)}, "host-refused"},
			"a host that ends in ours": {map[string]string{"Host": fmt.Sprintf("localhost.evil.example:%d", r.port)}, "host-refused"},
			"a host without the port":  {map[string]string{"Host": "127.0.0.1"}, "host-refused"},
			"another port":             {map[string]string{"Host": "127.0.0.1:1"}, "host-refused"},
			"another loopback address": {map[string]string{"Host": fmt.Sprintf("127.0.0.2:%d", r.port)}, "host-refused"},
			"the IPv6 twin":            {map[string]string{"Host": fmt.Sprintf("[::1]:%d", r.port)}, "host-refused"},
			"a foreign origin":         {map[string]string{"Origin": "http://evil.example"}, "origin-refused"},
			"the null origin":          {map[string]string{"Origin": "null"}, "origin-refused"},
			"our origin by https":      {map[string]string{"Origin": fmt.Sprintf("https://127.0.0.1:%d", r.port)}, "origin-refused"},
			"another port's origin":    {map[string]string{"Origin": "http://127.0.0.1:1"}, "origin-refused"},
			"a cross-site fetch":       {map[string]string{"Sec-Fetch-Site": "cross-site"}, "origin-refused"},
			"a same-site fetch":        {map[string]string{"Sec-Fetch-Site": "same-site"}, "origin-refused"},
		} {
			for _, method := range []string{"GET", "POST", "OPTIONS"} {
				got := r.send(request{method: method, path: path, as: "operator", header: row.header})
				if code := r.refused(t, name, got); got.status != http.StatusForbidden || code != row.code {
					t.Errorf("%s %s with %s: %d %s", method, path, name, got.status, code)
				}
			}
		}
	}
	for name, text := range map[string]string{
		"a 10 MB header":    "GET /api/desktop-health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + strings.Repeat("a", 10<<20) + "\r\n\r\n",
		"a 10 MB address":   "GET /" + strings.Repeat("a", 10<<20) + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"a million headers": "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + strings.Repeat("X: y\r\n", 1_000_000) + "\r\n",
	} {
		if line, closed := r.raw(r.port, text, 20*time.Second); !strings.Contains(line, " 431 ") && line != "" || !closed {
			t.Errorf("%s is answered with %q, closed %v", name, line, closed)
		}
	}
	if line, _ := r.raw(r.port, "GET /api/desktop-health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "+strings.Repeat("a", 100<<10)+"\r\n\r\n", 20*time.Second); !strings.Contains(line, " 431 ") {
		t.Errorf("100 KiB of header are answered with %q", line)
	}
	if line, closed := r.raw(r.port, "GET /api/desktop-health HTTP/1.1\r\n\r\n", 20*time.Second); !strings.Contains(line, " 400 ") || !closed {
		t.Errorf("no Host is answered with %q", line)
	}
	if got := r.send(get("/api/desktop-health")); got.status != http.StatusOK {
		t.Errorf("afterwards health answers %d", got.status)
	}
}

// TestASlowClientIsCutOff: a header that never ends does not hold a connection
// (case C63). The server is the product's, with less patience.
func TestASlowClientIsCutOff(t *testing.T) {
	server := api.HTTPServer(http.NotFoundHandler(), discard)
	if server.ReadHeaderTimeout <= 0 || server.ReadHeaderTimeout > 10*time.Second || server.IdleTimeout <= 0 || server.MaxHeaderBytes > 64<<10 {
		t.Errorf("the limits are %s, %s, %d", server.ReadHeaderTimeout, server.IdleTimeout, server.MaxHeaderBytes)
	}
	server.ReadHeaderTimeout = 100 * time.Millisecond
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	r := &rig{t: t}
	port := listener.Addr().(*net.TCPAddr).Port
	if line, closed := r.raw(port, "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ", 20*time.Second); !closed {
		t.Errorf("a header that does not end is waited for; answer %q", line)
	}
}

// TestOneAddressIsBoundAndPrinted is case C66: 127.0.0.1 and nothing else, though
// a client that says localhost is understood.
func TestOneAddressIsBoundAndPrinted(t *testing.T) {
	r := newRig(t)
	if got := r.send(request{method: "GET", path: "/v1/status", as: "operator", header: map[string]string{"Host": fmt.Sprintf("LOCALHOST:%d", r.port)}}); got.status != 200 {
		t.Errorf("localhost is answered with %d %s", got.status, got.body)
	}
	for _, route := range []string{"/v1/status", "/v1/plugins", "/api/desktop-health"} {
		if got := r.send(request{method: "GET", path: route, as: "operator"}); strings.Contains(got.body, "localhost") {
			t.Errorf("%s prints localhost: %s", route, got.body)
		}
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		ip, _, err := net.ParseCIDR(address.String())
		if err != nil || ip.Equal(net.IPv4(127, 0, 0, 1)) {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(ip.String(), fmt.Sprint(r.port)))
		cancel()
		if err == nil {
			connection.Close()
			t.Errorf("%s is bound too", ip)
		}
	}
}
