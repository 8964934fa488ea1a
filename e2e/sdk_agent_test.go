//go:build linux

package e2e

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// sdkAgent is the official Go SDK's client, and what it heard.
type sdkAgent struct {
	*sdk.ClientSession
	mu       sync.Mutex
	progress []*sdk.ProgressNotificationParams
	logs     []*sdk.LoggingMessageParams
	changes  int // of the list of tools
}

// heard returns how many notifications of progress, logging and changed lists
// came so far.
func (a *sdkAgent) heard() (progress, logs, changes int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.progress), len(a.logs), a.changes
}

// withToken adds a token to each request.
type withToken string

func (token withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(token))
	return http.DefaultTransport.RoundTrip(r)
}

// sdkOverHTTP connects to the sidecar's /mcp.
func (s *sidecar) sdkOverHTTP(t testing.TB, token, version string) *sdkAgent {
	t.Helper()
	return connectSDK(t, &sdk.StreamableClientTransport{Endpoint: s.URL + "/mcp", HTTPClient: &http.Client{Transport: withToken(token)}}, version)
}

// sdkOverStdio starts `sallyport mcp`, as agents do that only start commands.
func (h *home) sdkOverStdio(t testing.TB, client, version string) *sdkAgent {
	t.Helper()
	return connectSDK(t, &sdk.CommandTransport{Command: h.command("mcp", "--client", client)}, version)
}

func connectSDK(t testing.TB, transport sdk.Transport, version string) *sdkAgent {
	t.Helper()
	a := &sdkAgent{}
	note := func(f func()) {
		a.mu.Lock()
		defer a.mu.Unlock()
		f()
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "e2e", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			note(func() { a.progress = append(a.progress, r.Params) })
		},
		LoggingMessageHandler: func(_ context.Context, r *sdk.LoggingMessageRequest) {
			note(func() { a.logs = append(a.logs, r.Params) })
		},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { note(func() { a.changes++ }) },
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	session, err := client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	a.ClientSession = session
	t.Cleanup(func() { session.Close() })
	return a
}

// call calls a tool and fails the test if that is refused.
func (a *sdkAgent) call(t testing.TB, tool string, args map[string]any) *sdk.CallToolResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	result, err := a.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return result
}

// tools are the names that it may call.
func (a *sdkAgent) tools(t testing.TB) map[string]bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	names := map[string]bool{}
	for tool, err := range a.Tools(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		names[tool.Name] = true
	}
	return names
}
