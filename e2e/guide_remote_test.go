//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/internal/keyringtest"
	"sallyport/internal/oauthtest"
)

// The addresses of the page: this machine's own, which nobody else uses.
const (
	guideServer = "127.0.83.1:8443"
	guideLogin  = "127.0.83.2:8443"
)

// remoteGuide is what docs/guide/remote.md takes for granted: a keyring, a package
// whose server wants a sign-in, and a reader with a browser.
func remoteGuide(h *home) {
	h.in(keyringtest.Unlocked(h.t))
	auth := oauthtest.NewAt(h.t, guideLogin)
	server := sdk.NewServer(&sdk.Implementation{Name: "notes", Version: "1"}, nil)
	server.AddTool(&sdk.Tool{Name: "list_notes", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "buy milk"}}}, nil
		})
	guard := oauthtest.GuardAt(h.t, guideServer, auth, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server },
		&sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	h.write("notes-sync", "plugin.json", encode(h.t, map[string]any{
		"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": "notes-sync", "version": "1.4.0"}), 0o644)
	h.write("notes-sync", "mcp.json", encode(h.t, map[string]any{
		"$schema":    "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json",
		"mcpServers": map[string]any{"main": map[string]any{"type": "streamable-http", "url": guard.URL}}}), 0o644)
	h.signsInWhenAsked("notes-sync/main")
}

// signsInWhenAsked is a person who opens every address that a sign-in to the connector
// shows, for the length of the test.
func (h *home) signsInWhenAsked(id string) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	h.t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for last := ""; ; {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if address := h.loginAddress(ctx, id); address != "" && address != last {
				last = address
				_, _ = oauthtest.Browse(ctx, address) // the command says what came of it
			}
		}
	}()
}

// loginAddress is what the sidecar shows now, "" for nothing.
func (h *home) loginAddress(ctx context.Context, id string) string {
	var found struct {
		URL string `json:"url"`
	}
	raw, err := os.ReadFile(h.state("desktop.json"))
	token, tokenErr := os.ReadFile(h.state("operator.token"))
	if err != nil || tokenErr != nil || json.Unmarshal(raw, &found) != nil {
		return ""
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, found.URL+"/v1/plugins/"+id+"/login", nil)
	if err != nil {
		return ""
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	var shown struct {
		Address string `json:"address"`
	}
	_ = json.NewDecoder(response.Body).Decode(&shown)
	return shown.Address
}
