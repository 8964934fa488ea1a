//go:build linux

package e2e

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/host"
	runtimemcp "sallyport/runtime/mcp"
	"sallyport/runtime/plugins"
)

// remote is an MCP server over HTTP that counts who comes.
type remote struct {
	*httptest.Server
	requests, calls atomic.Int64
	header          atomic.Value // X-Team of the last request
}

func newRemote(t *testing.T) *remote {
	t.Helper()
	r := &remote{}
	server := mcp.NewServer(&mcp.Implementation{Name: "remote", Version: "1"}, nil)
	type nothing struct{}
	mcp.AddTool(server, &mcp.Tool{Name: "where", Description: "says where it is"},
		func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, any, error) {
			r.calls.Add(1)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "here"}}}, nil, nil
		})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.requests.Add(1)
		r.header.Store(request.Header.Get("X-Team"))
		handler.ServeHTTP(w, request)
	}))
	t.Cleanup(func() { r.CloseClientConnections(); r.Close() })
	return r
}

func (f *fort) addRemote(name, url string) {
	f.t.Helper()
	f.declare(name, object{"version": "1.0.0"})
	f.declareServer(name, object{"type": "streamable-http", "url": url + "/mcp"})
}

func TestARemoteServerIsDialledOnlyAsApproved(t *testing.T) {
	f := newFort(t)
	f.with(secretive()...)
	one, two := newRemote(t), newRemote(t)
	f.addRemote("far", one.URL)
	s := f.serve()
	f.wantStanding("far/main", "approval_required", "never-approved")
	f.refused("never-approved", "call", "far", "where")
	if n := one.requests.Load(); n != 0 {
		t.Fatalf("it was dialled %d times before anybody said yes", n)
	}
	f.approve("far")
	agent := s.overHTTP("claude")
	if said := agent.wantOK("far__main__where"); said != "here" {
		t.Errorf("got %q", said)
	}

	// The header alone: the operator's own configuration is no file of the bundle.
	calls := one.calls.Load()
	f.overlay("far/main", object{"headers": object{"X-Team": "blue"}})
	waitFor(t, "the session is ended", noticeWithin, func() bool { return !s.runs("far/main") })
	f.wantStanding("far/main", "approval_required", "headers-changed")
	agent.wantRefused("far__main__where", "headers-changed")
	if n := one.calls.Load(); n != calls {
		t.Errorf("%d calls were sent, %d before", n, calls)
	}
	f.approve("far")
	agent.wantOK("far__main__where")
	if got := one.header.Load(); got != "blue" {
		t.Errorf("the header is %q", got)
	}

	// The address is in a file of the bundle, so the artifact differs as well.
	requests := one.requests.Load()
	f.addRemote("far", two.URL)
	waitFor(t, "the session is ended", noticeWithin, func() bool { return !s.runs("far/main") })
	f.wantStanding("far/main", "approval_required", "artifact-changed")
	agent.wantRefused("far__main__where", "artifact-changed")
	if codes := f.diffCodes("far/main"); !strings.Contains(strings.Join(codes, " "), "endpoint-changed") {
		t.Errorf("diff tells of %v", codes)
	}
	if n := two.requests.Load(); n != 0 {
		t.Errorf("the new address was dialled %d times", n)
	}
	t.Logf("the old address heard %d requests after the change", one.requests.Load()-requests)
	f.approve("far")
	agent.wantOK("far__main__where")
	if two.calls.Load() != 1 || one.calls.Load() != calls+1 {
		t.Errorf("the first was called %d times, the second %d", one.calls.Load(), two.calls.Load())
	}
}

// runs reports whether a connector has a session.
func (s *sidecar) runs(id string) bool {
	_, body := s.ask("GET", "/v1/plugins/"+id)
	return bytes.Contains(body, []byte(`"running":true`))
}

// A server that sends its clients elsewhere is not followed: the address that was
// approved is the only one.
func TestARedirectIsNotFollowed(t *testing.T) {
	f := newFort(t)
	elsewhere := newRemote(t)
	here := httptest.NewServer(http.RedirectHandler(elsewhere.URL+"/mcp", http.StatusTemporaryRedirect))
	t.Cleanup(here.Close)
	f.addRemote("far", here.URL)
	begun := time.Now()
	f.refused("http-status", "approve", "far", "--yes", "--all-tools")
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("that took %s", took)
	}
	if n := elsewhere.requests.Load(); n != 0 {
		t.Errorf("an address that nobody approved was dialled %d times", n)
	}
	if one := f.connector("far/main"); one.State == "enabled" {
		t.Errorf("it is %+v", one)
	}
}

// Where an endpoint's address is no host of the internet's, that has to be approved
// as well, whoever wrote it there.
func TestAPrivateAddressIsNotDialledUnasked(t *testing.T) {
	f := newFort(t)
	for name, url := range map[string]string{"private": "https://10.255.255.254", "metadata": "https://169.254.169.254", "mapped": "https://[::ffff:192.168.0.1]:8443", "unspecified": "https://0.0.0.0"} {
		f.addRemote(name, url)
		begun := time.Now()
		f.refused("permission-denied", "approve", name, "--yes", "--all-tools")
		if took := time.Since(begun); took > 20*time.Second {
			t.Errorf("%s: that took %s", name, took)
		}
		recorded := false
		for _, r := range f.audit() {
			recorded = recorded || r.Plugin == name && r.Reason == "permission-denied"
		}
		if !recorded {
			t.Errorf("%s: nothing is on record", name)
		}
	}
}

// names is a network in which every name stands for one address, and every address
// but this machine's leads to one place.
type names struct {
	addr    atomic.Value // string
	dialled atomic.Value // string: the last one
	place   string
}

func (n *names) network() runtimemcp.Network {
	return runtimemcp.Network{
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr(n.addr.Load().(string))}, nil
		},
		Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			n.dialled.Store(to.String())
			place := to.String()
			if !to.Addr().IsLoopback() {
				place = n.place
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", place)
		},
	}
}

// hostIn opens a host inside of this process, for what no command can be told.
func (f *fort) hostIn(n *names) *host.Host {
	f.t.Helper()
	h, err := host.Open(f.t.Context(), host.Config{Places: host.PlacesIn(filepath.Join(f.dir, "own")), Version: "1.2.3", Home: f.dir,
		Environ: []string{"HOME=" + f.dir, "PATH=/usr/bin:/bin", "SHELL=/bin/sh"}, Network: n.network()})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := h.Close(ctx); err != nil {
			f.t.Error(err)
		}
	})
	return h
}

var remoteOperator = approvals.By{User: "tester", Via: approvals.ViaCLI}

// try answers the first question with yes, which dials it.
func try(t *testing.T, h *host.Host, id plugins.ID) (approvals.Decision, error) {
	t.Helper()
	asked, err := h.Ask(t.Context(), id, remoteOperator)
	if err != nil {
		t.Fatal(err)
	}
	return h.Answer(t.Context(), asked.ID, approvals.Answer{Allow: true}, remoteOperator)
}

func TestAServerIsDialledOnlyAtAddressesThatArePermitted(t *testing.T) {
	f := newFort(t)
	far := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(far.Close)
	heard := func(n *names) string { said, _ := n.dialled.Load().(string); return said }
	id := plugins.ID{Plugin: "far", Server: "main"}
	for _, row := range []struct {
		name, addr string
		net        []string
		dialled    string // "": refused
	}{
		{"a name for this machine that does not say so", "127.0.0.1", nil, ""},
		{"a name for a private address", "10.1.2.3", nil, ""},
		{"the same with a grant of the domain", "10.1.2.3", []string{"*.example.test"}, ""},
		{"the same with a grant", "10.1.2.3", []string{"far.example.test"}, "10.1.2.3:443"},
		{"metadata", "169.254.169.254", []string{"far.example.test"}, ""},
		{"a public address", "1.1.1.1", nil, "1.1.1.1:443"},
	} {
		n := &names{place: far.Listener.Addr().String()}
		n.addr.Store(row.addr)
		h := f.hostIn(n)
		f.addRemote("far", "https://far.example.test")
		f.declare("far", object{"version": "1.0.0", "extensions": object{"app.sallyport": object{"permissions": object{"net": row.net}}}})
		if row.net == nil {
			f.declare("far", object{"version": "1.0.0"})
		}
		_, err := try(t, h, id)
		if got := heard(n); err == nil || (coded.Of(err) == "permission-denied") != (row.dialled == "") || got != row.dialled {
			t.Errorf("%s: dialled %q, %v", row.name, got, err)
		}
		if err := h.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A name that was one machine when it was approved and is another one now is not
// followed, and the refusal is on record.
func TestANameThatLeadsElsewhereIsNotFollowedThere(t *testing.T) {
	f := newFort(t)
	server := newRemote(t)
	n := &names{place: server.Listener.Addr().String()}
	n.addr.Store("127.0.0.1")
	h := f.hostIn(n)
	f.addRemote("far", strings.Replace(server.URL, "127.0.0.1", "localhost", 1))
	id := plugins.ID{Plugin: "far", Server: "main"}
	offered, err := try(t, h, id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Answer(t.Context(), offered.ID, approvals.Answer{Allow: true, Tools: []string{"where"}, Always: true}, remoteOperator); err != nil {
		t.Fatal(err)
	}
	call := func() error {
		_, err := h.Call(t.Context(), approvals.ViaCLI, id, "where", []byte(`{"name":"where","arguments":{}}`))
		return err
	}
	if err := call(); err != nil {
		t.Fatal("a server on this machine:", err)
	}
	if err := h.Pool.Stop(t.Context(), id, nil); err != nil {
		t.Fatal(err)
	}
	n.addr.Store("10.1.2.3")
	heard := server.requests.Load()
	for range 8 { // no crash, which would be held back
		if err := call(); coded.Of(err) != "permission-denied" || strings.Contains(err.Error(), "/mcp") || !strings.Contains(err.Error(), "localhost:") {
			t.Fatalf("got %v", err)
		}
	}
	if now := server.requests.Load(); now != heard {
		t.Errorf("it heard %d requests more", now-heard)
	}
	if err := h.Audit.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	page, err := h.Audit.Query(t.Context(), audit.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, r := range page.Records {
		if r.Action == audit.Refuse && r.Reason == "permission-denied" && r.Plugin == "far" {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no refusal is on record")
	}
	n.addr.Store("127.0.0.1")
	if err := call(); err != nil {
		t.Error("back where it was:", err)
	}
}
