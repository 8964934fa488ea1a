//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// generations are the two that one address serves.
var generations = []string{"2025-11-25", "2026-07-28"}

// everyWay runs a test for the official SDK's client in every way that an agent
// may connect.
func everyWay(t *testing.T, h *home, s *sidecar, each func(t *testing.T, connect func() *sdkAgent)) {
	token := h.addClient("sdk")
	for _, version := range generations {
		t.Run("over HTTP "+version, func(t *testing.T) {
			each(t, func() *sdkAgent { return s.sdkOverHTTP(t, token, version) })
		})
		t.Run("over a command "+version, func(t *testing.T) {
			each(t, func() *sdkAgent { return h.sdkOverStdio(t, "sdk", version) })
		})
	}
}

func TestSDKClientGetsWhatTheServerSays(t *testing.T) {
	h := newHome(t)
	h.addOfficial("everything")
	h.addFake("fake", "polite")
	h.ok("approve", "everything", "--yes", "--all-tools")
	h.ok("approve", "fake", "--yes", "--all-tools")
	s := h.serve()
	everyWay(t, h, s, func(t *testing.T, connect func() *sdkAgent) {
		a := connect()
		weather := a.call(t, "everything__main__get-structured-content", map[string]any{"location": "New York"})
		if structured, ok := weather.StructuredContent.(map[string]any); !ok || structured["conditions"] != "Cloudy" {
			t.Errorf("structured content: %#v", weather.StructuredContent)
		}
		if got := stepsHeard(t, a, "everything__main__trigger-long-running-operation", map[string]any{"duration": 0.3, "steps": 3}); got != "1/3 2/3 3/3" {
			t.Errorf("progress of a real operation: %s", got)
		}
		logsHeard(t, a)
	})
}

// stepsHeard calls a tool with a progress token and returns the progress that was
// heard for it.
func stepsHeard(t *testing.T, a *sdkAgent, tool string, args map[string]any) string {
	t.Helper()
	params := &sdk.CallToolParams{Name: tool, Arguments: args}
	params.SetProgressToken("token-" + t.Name())
	if _, err := a.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	holds(5*time.Second, func() bool { n, _, _ := a.heard(); return n >= 3 })
	a.mu.Lock()
	defer a.mu.Unlock()
	var steps []string
	for _, p := range a.progress {
		if p.ProgressToken != params.GetProgressToken() {
			t.Errorf("progress for a token that was never given: %v", p.ProgressToken)
		}
		steps = append(steps, fmt.Sprintf("%v/%v", p.Progress, p.Total))
	}
	return strings.Join(steps, " ")
}

func logsHeard(t *testing.T, a *sdkAgent) {
	t.Helper()
	params := &sdk.CallToolParams{Name: "fake__main__log", Arguments: map[string]any{"n": 3}}
	if a.InitializeResult().ProtocolVersion < "2026" {
		if err := a.SetLoggingLevel(t.Context(), &sdk.SetLoggingLevelParams{Level: "debug"}); err != nil {
			t.Fatal(err)
		}
	} else { // without a session, each request says what it wants to hear
		params.Meta = sdk.Meta{"io.modelcontextprotocol/logLevel": "debug"}
	}
	if _, err := a.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "three log messages are heard", 5*time.Second, func() bool { _, n, _ := a.heard(); return n >= 3 })
}

// A call that an agent gives up is given up at the server too.
func TestCancellationReachesTheServer(t *testing.T) {
	h := newHome(t)
	received := h.addRecorder()
	h.ok("approve", "recorder", "--yes", "--all-tools")
	s := h.serve()
	everyWay(t, h, s, func(t *testing.T, connect func() *sdkAgent) {
		a := connect()
		count := func(method string) int { return strings.Count(received(), `"method":"`+method+`"`) }
		calls, cancels := count("tools/call"), count("notifications/cancelled")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := a.CallTool(ctx, &sdk.CallToolParams{Name: "recorder__main__wait"})
			ended <- err
		}()
		waitFor(t, "the call reaches the server", 20*time.Second, func() bool { return count("tools/call") == calls+1 })
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the cancelled call ended with %v", err)
		}
		waitFor(t, "the cancellation reaches the server", 5*time.Second, func() bool {
			return count("notifications/cancelled") == cancels+1
		})
		if lines := strings.Split(strings.TrimSpace(received()), "\n"); idOfLastCall(t, lines) != cancelledID(t, lines[len(lines)-1]) {
			t.Errorf("another call was cancelled:\n%s", received())
		}
	})
}

func idOfLastCall(t *testing.T, lines []string) string {
	t.Helper()
	for i := len(lines) - 1; i >= 0; i-- {
		var call struct {
			ID     json.RawMessage
			Method string
		}
		decode(t, lines[i], &call)
		if call.Method == "tools/call" {
			return string(call.ID)
		}
	}
	return ""
}

func cancelledID(t *testing.T, line string) string {
	t.Helper()
	var note struct {
		Params struct{ RequestID json.RawMessage }
	}
	decode(t, line, &note)
	return string(note.Params.RequestID)
}

// Two SDK clients count their ids and tokens from the same numbers; many calls at
// once on one server must come back to who made them.
func TestClientsWithEqualIDsAreNeverMixed(t *testing.T) {
	const rounds, steps = 40, 5
	h := newHome(t)
	h.addFake("fake", "polite")
	h.ok("approve", "fake", "--yes", "--all-tools")
	s := h.serve()
	everyWay(t, h, s, func(t *testing.T, connect func() *sdkAgent) {
		var all sync.WaitGroup
		for _, who := range []string{"one", "two"} {
			a := connect()
			all.Go(func() {
				var calls sync.WaitGroup
				for n := range rounds {
					calls.Go(func() { echoes(t, a, who, n) })
					calls.Go(func() { progresses(t, a, n, steps) })
				}
				calls.Wait()
			})
			t.Cleanup(func() { heardOnce(t, a, who, rounds, steps) })
		}
		all.Wait()
	})
}

// echoes sends what only this client sends, and must get that back.
func echoes(t *testing.T, a *sdkAgent, who string, n int) {
	mark := fmt.Sprintf("%s-%d", who, n)
	result, err := a.CallTool(t.Context(), &sdk.CallToolParams{Name: "fake__main__echo", Arguments: map[string]any{"mark": mark}})
	if err != nil {
		t.Errorf("%s: %v", mark, err)
		return
	}
	raw, err := json.Marshal(result.StructuredContent)
	if err != nil || !strings.Contains(string(raw), `"mark":"`+mark+`"`) {
		t.Errorf("%s got another's answer: %s %v", mark, raw, err)
	}
}

// progresses uses tokens that both clients use.
func progresses(t *testing.T, a *sdkAgent, n, steps int) {
	params := &sdk.CallToolParams{Name: "fake__main__progress", Arguments: map[string]any{"steps": steps}}
	params.SetProgressToken(n)
	if _, err := a.CallTool(t.Context(), params); err != nil {
		t.Errorf("progress %d: %v", n, err)
	}
}

// heardOnce checks that each client heard its own progress and no more.
func heardOnce(t *testing.T, a *sdkAgent, who string, rounds, steps int) {
	holds(5*time.Second, func() bool { n, _, _ := a.heard(); return n >= rounds*steps })
	a.mu.Lock()
	defer a.mu.Unlock()
	heard := map[string]int{}
	for _, p := range a.progress {
		heard[fmt.Sprintf("%v:%v", p.ProgressToken, p.Progress)]++
	}
	if len(heard) != rounds*steps || len(a.progress) != rounds*steps {
		t.Errorf("%s heard %d of progress, %d different; want %d", who, len(a.progress), len(heard), rounds*steps)
	}
}

func TestApprovalChangesTheListOfConnectedAgents(t *testing.T) {
	h := newHome(t)
	h.addFake("fake", "polite")
	s := h.serve()
	everyWay(t, h, s, func(t *testing.T, connect func() *sdkAgent) {
		a := connect()
		if tools := a.tools(t); len(tools) != 0 {
			t.Fatalf("nothing is approved, and yet there is %v", tools)
		}
		h.ok("approve", "fake", "--yes", "--tools", "echo,pid")
		waitFor(t, "the agent hears that the list changed", 5*time.Second, func() bool { _, _, n := a.heard(); return n >= 1 })
		if tools := a.tools(t); len(tools) != 2 || !tools["fake__main__echo"] {
			t.Errorf("the approved tools are %v", tools)
		}
		a.call(t, "fake__main__echo", nil)
		h.ok("revoke", "fake")
		waitFor(t, "it hears that the tools are gone", 5*time.Second, func() bool { _, _, n := a.heard(); return n >= 2 })
		if tools := a.tools(t); len(tools) != 0 {
			t.Errorf("revoked, and yet there is %v", tools)
		}
	})
}

// A refusal is an ordinary MCP error: the code is in its data and its text, and
// the session goes on.
func TestRefusedCallIsAnErrorWithTheReason(t *testing.T) {
	h := newHome(t)
	h.addFake("fake", "polite")
	h.addFake("good", "polite")
	h.ok("approve", "good", "--yes", "--tools", "echo")
	s := h.serve()
	everyWay(t, h, s, func(t *testing.T, connect func() *sdkAgent) {
		h.ok("approve", "fake", "--yes", "--tools", "echo")
		a := connect()
		a.call(t, "fake__main__echo", nil)
		h.write("fake", "notes.txt", []byte("changed for "+t.Name()+"\n"), 0o644)
		var wire *jsonrpc.Error
		waitFor(t, "the call is refused", 3*time.Second, func() bool {
			_, err := a.CallTool(t.Context(), &sdk.CallToolParams{Name: "fake__main__echo"})
			return errors.As(err, &wire)
		})
		var data struct{ Code, Next string }
		if err := json.Unmarshal(wire.Data, &data); err != nil || data.Code != "artifact-changed" || data.Next == "" {
			t.Errorf("data %s, %v", wire.Data, err)
		}
		contains(t, "the message", wire.Message, "artifact-changed")
		if strings.Contains(wire.Message+string(wire.Data), h.dir) {
			t.Errorf("an agent is told a path of this machine: %v", wire)
		}
		a.call(t, "good__main__echo", nil)
	})
}
