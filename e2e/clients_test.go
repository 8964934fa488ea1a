//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// clientRig is a sidecar with two approved plugins, one of which records what reaches
// it and never answers a call of wait.
func clientRig(t *testing.T) (h *home, s *sidecar, waiting func() int) {
	t.Helper()
	h = newHome(t)
	h.addFake("fake", "polite")
	received := h.addRecorder()
	h.ok("approve", "fake", "--yes", "--tools", "echo,hang")
	h.ok("approve", "recorder", "--yes", "--all-tools")
	return h, h.serve(), func() int { return strings.Count(received(), `"method":"tools/call"`) }
}

func codeOf(err error) string {
	var wire *jsonrpc.Error
	var data struct{ Code string }
	if !errors.As(err, &wire) || json.Unmarshal(wire.Data, &data) != nil {
		return ""
	}
	return data.Code
}

// TestAChangeOfScopeTakesEffectInOpenSessions: the list is another one at once, the
// agent is told, and what is in flight of what it lost is cancelled with the reason.
func TestAChangeOfScopeTakesEffectInOpenSessions(t *testing.T) {
	h, s, waiting := clientRig(t)
	everyWay(t, h, s, func(t *testing.T, connect func() *sdkAgent) {
		h.run("clients", "grant", "sdk", "--all")
		a := connect()
		if tools := a.tools(t); len(tools) != 3 {
			t.Fatalf("it sees %v", tools)
		}
		before := waiting()
		ctx, giveUp := context.WithCancel(t.Context())
		defer giveUp()
		kept, lost := a.startWith(ctx, t, "fake__main__hang", nil), a.start(t, "recorder__main__wait", nil)
		waitFor(t, "the call reaches the server", 20*time.Second, func() bool { return waiting() > before })
		h.ok("clients", "revoke", "sdk", "recorder/main")
		select {
		case got := <-lost:
			if codeOf(got.err) != "scope-changed" {
				t.Errorf("the call in flight ends with %+v %v", got.result, got.err)
			}
		case <-time.After(5 * time.Second):
			t.Error("the call in flight goes on")
		}
		if tools := a.tools(t); len(tools) != 2 || tools["recorder__main__wait"] {
			t.Errorf("it sees %v", tools)
		}
		waitFor(t, "the agent is told", 5*time.Second, func() bool { _, _, n := a.heard(); return n >= 1 })
		_, there := a.CallTool(t.Context(), &sdk.CallToolParams{Name: "recorder__main__wait"})
		_, absent := a.CallTool(t.Context(), &sdk.CallToolParams{Name: "recorded__main__wait"})
		if there == nil || absent == nil || there.Error() != strings.ReplaceAll(absent.Error(), "recorded", "recorder") {
			t.Errorf("what it lost answers %v, what is nowhere %v", there, absent)
		}
		h.ok("clients", "grant", "sdk", "recorder/main:wait")
		waitFor(t, "the agent is told again", 5*time.Second, func() bool { _, _, n := a.heard(); return n >= 2 })
		if tools := a.tools(t); len(tools) != 3 {
			t.Errorf("it sees %v", tools)
		}
		select {
		case got := <-kept:
			t.Errorf("the call of what it kept ended: %+v %v", got.result, got.err)
		default:
		}
	})
}

// TestAClientThatIsRemovedOrRotatedLosesWhatItHasOpen at once, however it is connected.
func TestAClientThatIsRemovedOrRotatedLosesWhatItHasOpen(t *testing.T) {
	h, s, waiting := clientRig(t)
	for _, row := range []struct{ what, code string }{{"rotate", ""}, {"remove", "client-removed"}} {
		for _, version := range generations {
			t.Run(row.what+" "+version, func(t *testing.T) {
				token := h.addClient("gone")
				over := map[string]*sdkAgent{"HTTP": s.sdkOverHTTP(t, token, version), "a command": h.sdkOverStdio(t, "gone", version)}
				stays := s.sdkOverHTTP(t, h.addClient("stays"), version)
				var shown struct {
					OpenSessions int
					SeenAt       time.Time
				}
				flying := map[string]<-chan called{}
				for how, a := range over {
					before := waiting()
					flying[how] = a.start(t, "recorder__main__wait", nil)
					waitFor(t, "the call reaches the server", 20*time.Second, func() bool { return waiting() > before })
				}
				if h.read(&shown, "clients", "show", "gone"); shown.OpenSessions == 0 || time.Since(shown.SeenAt) > time.Minute {
					t.Errorf("it is shown as %+v", shown)
				}
				fresh := h.ok("clients", row.what, "gone")
				for how, ended := range flying {
					select {
					case got := <-ended:
						if got.err == nil {
							t.Errorf("the call over %s: %+v", how, got.result)
						}
					case <-time.After(5 * time.Second):
						t.Errorf("the call over %s goes on", how)
					}
					if _, err := over[how].CallTool(t.Context(), &sdk.CallToolParams{Name: "fake__main__echo"}); err == nil {
						t.Errorf("over %s it still calls", how)
					}
				}
				waitFor(t, "its command ends", 5*time.Second, func() bool {
					for _, p := range h.processes() {
						if strings.Contains(p.line, "--client gone") {
							return false
						}
					}
					return true
				})
				if status := s.statusFor(t, token); status != http.StatusUnauthorized {
					t.Errorf("its old token is answered with %d", status)
				}
				stays.call(t, "fake__main__echo", nil)
				if row.code == "" {
					words := strings.Fields(fresh)
					s.sdkOverHTTP(t, words[len(words)-1], version).call(t, "fake__main__echo", nil)
					h.sdkOverStdio(t, "gone", version).call(t, "fake__main__echo", nil)
					h.ok("clients", "remove", "gone")
				} else if again := h.finish(h.command("mcp", "--client", "gone"), 20*time.Second); again.code != 1 || !strings.Contains(again.stderr, row.code) {
					t.Errorf("its command, started again: %+v", again)
				}
				h.ok("clients", "remove", "stays")
			})
		}
	}
}

// statusFor is what /mcp says to a token.
func (s *sidecar) statusFor(t *testing.T, token string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/mcp", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}
