//go:build linux

package e2e

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
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
