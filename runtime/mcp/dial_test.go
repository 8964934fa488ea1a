package mcp

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/coded"
	"sallyport/runtime/permissions"
	"sallyport/runtime/plugins"
)

// wires is a network of the tests': every name has these addresses, and every
// connection goes to one place, or fails where that is "".
type wires struct {
	mu       sync.Mutex
	answers  [][]string // one after the other; the last stays
	resolved int
	dialled  []string
	to       string
}

func (w *wires) network() Network {
	return Network{
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			var found []netip.Addr
			for _, addr := range w.answers[min(w.resolved, len(w.answers)-1)] {
				found = append(found, netip.MustParseAddr(addr))
			}
			w.resolved++
			return found, nil
		},
		Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			w.mu.Lock()
			w.dialled = append(w.dialled, to.String())
			place := w.to
			w.mu.Unlock()
			if place == "" {
				return nil, errors.New("nobody is there")
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", place)
		},
	}
}

func (w *wires) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.dialled)
}

func TestWhichAddressIsDialled(t *testing.T) {
	one := func(addr string) []string { return []string{addr} }
	for _, row := range []struct {
		name, url string
		answers   []string
		net       []string
		dialled   []string // none: refused
	}{
		{"a public address", "https://api.example.com/mcp", one("1.1.1.1"), nil, one("1.1.1.1:443")},
		{"its port", "https://api.example.com:8443/mcp", one("1.1.1.1"), nil, one("1.1.1.1:8443")},
		{"a public address of IPv6", "https://api.example.com/mcp", one("2606:4700::1111"), nil, one("[2606:4700::1111]:443")},
		{"one after the other", "https://api.example.com/mcp", []string{"1.1.1.1", "1.0.0.1"}, nil, []string{"1.1.1.1:443", "1.0.0.1:443"}},
		{"this machine by name", "http://localhost:7/mcp", []string{"::1", "127.0.0.1"}, nil, []string{"[::1]:7", "127.0.0.1:7"}},
		{"this machine by address", "http://127.0.0.1:7/mcp", nil, nil, one("127.0.0.1:7")},
		{"this machine over https", "https://127.8.9.1:7/mcp", nil, nil, one("127.8.9.1:7")},

		{"a name for this machine that does not say so", "https://api.example.com/mcp", one("127.0.0.1"), nil, nil},
		{"the same in IPv6", "https://api.example.com/mcp", one("::1"), nil, nil},
		{"the same with a dot at its end", "https://localhost./mcp", one("127.0.0.1"), nil, nil},
		{"the same, granted", "https://api.example.com/mcp", one("127.0.0.1"), one("api.example.com"), one("127.0.0.1:443")},
		{"localhost that is another machine", "http://localhost:7/mcp", one("10.0.0.7"), nil, nil},
		{"the same over https", "https://localhost:7/mcp", one("1.1.1.1"), nil, nil},
		{"plain http is for this machine whatever is granted", "http://localhost:7/mcp", one("10.0.0.7"), one("10.0.0.7:7"), nil},
		{"10/8", "https://api.example.com/mcp", one("10.0.0.7"), nil, nil},
		{"10/8 with the host granted", "https://api.example.com/mcp", one("10.0.0.7"), one("api.example.com"), one("10.0.0.7:443")},
		{"10/8 with the address granted", "https://api.example.com/mcp", one("10.0.0.7"), one("10.0.0.7"), one("10.0.0.7:443")},
		{"10/8 with another port granted", "https://api.example.com/mcp", one("10.0.0.7"), one("api.example.com:8443"), nil},
		{"10/8 with its domain granted", "https://api.example.com/mcp", one("10.0.0.7"), one("*.example.com"), nil},
		{"10/8 as the endpoint itself", "https://10.0.0.7/mcp", nil, nil, nil},
		{"the same, granted", "https://10.0.0.7/mcp", nil, one("10.0.0.7"), one("10.0.0.7:443")},
		{"172.16/12", "https://api.example.com/mcp", one("172.31.255.255"), nil, nil},
		{"192.168/16", "https://api.example.com/mcp", one("192.168.1.1"), nil, nil},
		{"100.64/10", "https://api.example.com/mcp", one("100.64.0.1"), nil, nil},
		{"fc00::/7", "https://api.example.com/mcp", one("fd00::1"), nil, nil},
		{"link-local", "https://api.example.com/mcp", one("169.254.1.1"), nil, nil},
		{"metadata with the host granted", "https://api.example.com/mcp", one("169.254.169.254"), one("api.example.com"), nil},
		{"metadata granted itself", "https://api.example.com/mcp", one("169.254.169.254"), one("169.254.169.254"), one("169.254.169.254:443")},
		{"fe80::/10", "https://api.example.com/mcp", one("fe80::1"), nil, nil},
		{"unspecified", "https://api.example.com/mcp", one("0.0.0.0"), nil, nil},
		{"unspecified in IPv6", "https://[::]/mcp", nil, nil, nil},
		{"multicast", "https://api.example.com/mcp", one("224.0.0.1"), nil, nil},
		{"broadcast", "https://api.example.com/mcp", one("255.255.255.255"), nil, nil},
		{"mapped, private", "https://api.example.com/mcp", one("::ffff:10.0.0.7"), nil, nil},
		{"mapped, this machine", "https://api.example.com/mcp", one("::ffff:127.0.0.1"), nil, nil},
		{"mapped, granted", "https://api.example.com/mcp", one("::ffff:10.0.0.7"), one("10.0.0.7"), one("10.0.0.7:443")},
		{"NAT64 of a private one", "https://api.example.com/mcp", one("64:ff9b::a00:7"), nil, nil},
		{"6to4", "https://api.example.com/mcp", one("2002:a00:7::1"), nil, nil},
		{"only the permitted ones of several", "https://api.example.com/mcp", []string{"127.0.0.1", "1.1.1.1", "10.0.0.7"}, nil, one("1.1.1.1:443")},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := &wires{answers: [][]string{row.answers}}
			conn, err := Dial(row.url+"?key=hush", nil, Options{Allowed: permissions.Set{Net: row.net}, Network: w.network()})
			if err != nil {
				t.Fatal(err)
			}
			defer closeAndWait(t, conn)
			_, err = conn.Call(t.Context(), "ping", nil, nil)
			if got := w.seen(); !slices.Equal(got, row.dialled) {
				t.Errorf("dialled %v, want %v", got, row.dialled)
			}
			want := "permission-denied"
			if len(row.dialled) > 0 {
				want = TransportClosed
			}
			if coded.Of(err) != want {
				t.Fatalf("got %v, want %s", err, want)
			}
			target, _ := url.Parse(row.url)
			if want == "permission-denied" && (!strings.Contains(err.Error(), target.Hostname()) || strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "/mcp")) {
				t.Errorf("it says %q", err)
			}
		})
	}
}

func TestAHostThatIsNotTheEndpointIsDialledOnlyIfNamed(t *testing.T) {
	w := &wires{answers: [][]string{{"1.1.1.1"}}}
	out, err := newOutbound(&url.URL{Scheme: "https", Host: "api.example.com"},
		Options{Allowed: permissions.Set{Net: []string{"auth.example.com", "*.example.net:8443"}}, Network: w.network()})
	if err != nil {
		t.Fatal(err)
	}
	for address, ok := range map[string]bool{
		"api.example.com:443": true, "auth.example.com:443": true, "a.example.net:8443": true,
		"api.example.com:80": false, "auth.example.com:8443": false, "example.net:8443": false, "evil.example:443": false,
	} {
		before := len(w.seen())
		_, err := out.dial(t.Context(), "tcp", address)
		if denied := coded.Of(err) == "permission-denied"; denied == ok || (len(w.seen()) > before) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestTheAddressThatWasCheckedIsTheOneDialled(t *testing.T) {
	w := &wires{answers: [][]string{{"1.1.1.1"}, {"127.0.0.1"}}}
	conn, err := Dial("https://api.example.com/mcp", nil, Options{Network: w.network()})
	if err != nil {
		t.Fatal(err)
	}
	defer closeAndWait(t, conn)
	if _, err := conn.Call(t.Context(), "ping", nil, nil); coded.Of(err) != TransportClosed {
		t.Fatal(err)
	}
	if w.resolved != 1 || !slices.Equal(w.seen(), []string{"1.1.1.1:443"}) {
		t.Fatalf("resolved %d times, dialled %v", w.resolved, w.seen())
	}
}

func TestANameThatComesToMeanThisMachineIsNotFollowedThere(t *testing.T) {
	server := secureServer(t)
	w := &wires{answers: [][]string{{"1.1.1.1"}, {"127.0.0.1"}}, to: server.Listener.Addr().String()}
	conn := trusting(t, server, Options{Network: w.network()})
	if _, err := Handshake(t.Context(), conn, "1"); err != nil {
		t.Fatal(err)
	}
	conn.wire.(*endpoint).client.CloseIdleConnections()
	server.CloseClientConnections()
	within(t, 10*time.Second, "the refusal", func() bool {
		_, err := callTool(t.Context(), conn, "echo", "{}")
		return coded.Of(err) == "permission-denied"
	})
	w.mu.Lock() // the session can be ended only where it is
	w.answers = [][]string{{"1.1.1.1"}}
	w.mu.Unlock()
	for _, address := range w.seen() {
		if address != "1.1.1.1:443" {
			t.Errorf("%s was dialled", address)
		}
	}
}

func TestAServerAtAPrivateAddressIsUsedWithAGrant(t *testing.T) {
	server := secureServer(t)
	w := &wires{answers: [][]string{{"10.0.0.7"}}, to: server.Listener.Addr().String()}
	conn := trusting(t, server, Options{Network: w.network(), Allowed: permissions.Set{Net: []string{"example.com"}}})
	if _, err := Handshake(t.Context(), conn, "1"); err != nil {
		t.Fatal(err)
	}
	if result, err := callTool(t.Context(), conn, "echo", `{"a":1}`); err != nil || !strings.Contains(string(result), "here") {
		t.Fatal(string(result), err)
	}
	if seen := w.seen(); len(seen) == 0 || seen[0] != "10.0.0.7:443" {
		t.Fatal(seen)
	}
}

// secureServer is a server behind TLS whose certificate is for example.com.
func secureServer(t *testing.T) *httptest.Server {
	t.Helper()
	server := sdk.NewServer(&sdk.Implementation{Name: "official", Version: "1"}, nil)
	server.AddTool(&sdk.Tool{Name: "echo", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "here"}}}, nil
		})
	web := httptest.NewTLSServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server },
		&sdk.StreamableHTTPOptions{JSONResponse: true, DisableLocalhostProtection: true}))
	t.Cleanup(web.Close)
	return web
}

// trusting is a connection with example.com that trusts the server's certificate.
func trusting(t *testing.T, server *httptest.Server, o Options) *Conn {
	t.Helper()
	conn, err := Dial("https://example.com/mcp", nil, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAndWait(t, conn) })
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.RootCAs = roots
	conn.wire.(*endpoint).client.Transport.(*http.Transport).TLSClientConfig = config
	return conn
}

// dialledHouse is a gatehouse whose connector is dialled.
type dialledHouse struct {
	*gatehouse
	url string
}

func (h dialledHouse) grant(_ context.Context, id plugins.ID) (permit, error) {
	p, _ := newPass(id, plugins.StreamableHTTP, h.url)
	return p, nil
}

func TestAStartThatIsNotPermittedIsARefusalAndNoCrash(t *testing.T) {
	w := &wires{answers: [][]string{{"10.0.0.7"}}}
	var crashes []EventKind
	p := newPool(Config{Network: w.network(), Events: func(e Event) { crashes = append(crashes, e.Kind) }},
		dialledHouse{&gatehouse{t: t}, "https://api.example.com/mcp"})
	defer p.Close(context.Background())
	for range 8 { // a crash would be held back, and park it in the end
		_, err := p.Session(t.Context(), demo)
		var refusal *coded.Error
		var fault *ProtocolError
		if !errors.As(err, &refusal) || refusal.Code != "permission-denied" || errors.As(err, &fault) {
			t.Fatalf("got %v", err)
		}
	}
	if len(crashes) != 0 || len(w.seen()) != 0 {
		t.Fatal(crashes, w.seen())
	}
}

func TestNoProxyComesBetween(t *testing.T) {
	conn, err := Dial("https://api.example.com/mcp", nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closeAndWait(t, conn)
	if conn.wire.(*endpoint).client.Transport.(*http.Transport).Proxy != nil {
		t.Error("a proxy would choose the address that is dialled")
	}
}
