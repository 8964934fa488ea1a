//go:build linux

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// decision is one row of `decisions list --json`.
type decision struct {
	ID, Kind, State, Subject string
	Call                     struct{ Sentence, Tool, Client, Arguments string }
}

// openCall waits for the one question about a call.
func (h *home) openCall() decision {
	h.t.Helper()
	var all []decision
	waitFor(h.t, "a call is asked about", 20*time.Second, func() bool {
		h.read(&all, "decisions", "list")
		return len(all) == 1
	})
	return all[0]
}

type called struct {
	result *sdk.CallToolResult
	err    error
}

// start calls a tool with a progress token, and returns where it ends.
func (a *sdkAgent) start(t *testing.T, tool string, args map[string]any) <-chan called {
	t.Helper()
	return a.startWith(context.Background(), t, tool, args)
}

// startWith is start with an end that the test chooses.
func (a *sdkAgent) startWith(ctx context.Context, t *testing.T, tool string, args map[string]any) <-chan called {
	t.Helper()
	ended := make(chan called, 1)
	params := &sdk.CallToolParams{Name: tool, Arguments: args}
	params.SetProgressToken("token-" + t.Name())
	go func() {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		result, err := a.CallTool(ctx, params)
		ended <- called{result, err}
	}()
	return ended
}

// TestACallIsAskedAbout: an agent's call of a tool that was approved with --ask
// waits for a person, in every way that an agent connects.
func TestACallIsAskedAbout(t *testing.T) {
	h := newHome(t)
	h.addFake("fake", "polite")
	h.ok("approve", "fake", "--yes", "--tools", "echo", "--ask")
	s := h.serve()
	watched := h.watch()
	everyWay(t, h, s, func(t *testing.T, connect func() *sdkAgent) {
		a := connect()
		allowed := a.start(t, "fake__main__echo", map[string]any{"text": "hi", "password": "s3cret"})
		d := h.openCall()
		if d.Kind != "call" || d.Subject != "fake/main" || d.Call.Sentence != "sdk wants fake/main to run echo." ||
			!strings.Contains(d.Call.Arguments, `"text": "hi"`) || strings.Contains(d.Call.Arguments, "s3cret") {
			t.Errorf("it asks %+v", d)
		}
		shown := h.ok("decisions", "show", d.ID)
		if !strings.Contains(shown, d.Call.Sentence) || !strings.Contains(shown, "(masked)") {
			t.Errorf("it shows\n%s", shown)
		}
		waitFor(t, "the agent hears that it waits", 20*time.Second, func() bool { n, _, _ := a.heard(); return n > 0 })
		a.mu.Lock()
		if p := a.progress[0]; p.ProgressToken != "token-"+t.Name() || !strings.HasPrefix(p.Message, "waiting for the operator to answer") {
			t.Errorf("it hears %+v", p)
		}
		a.mu.Unlock()
		h.ok("decisions", "answer", d.ID, "allow")
		if got := <-allowed; got.err != nil || got.result.IsError {
			t.Errorf("allowed: %+v %v", got.result, got.err)
		}
		no := map[string]any{"text": "hi", "way": t.Name()}
		denied := a.start(t, "fake__main__echo", no)
		h.ok("decisions", "answer", h.openCall().ID, "deny")
		if got := <-denied; got.err == nil || !strings.Contains(got.err.Error(), "call-denied") {
			t.Errorf("denied: %+v %v", got.result, got.err)
		}
		if got := <-a.start(t, "fake__main__echo", no); got.err == nil || !strings.Contains(got.err.Error(), "denied-recently") {
			t.Errorf("denied, and called again: %+v %v", got.result, got.err)
		}
	})
	a := s.sdkOverHTTP(t, h.addClient("claude"), generations[0])
	first := a.start(t, "fake__main__echo", nil)
	h.ok("decisions", "answer", h.openCall().ID, "allow", "--for", "8h")
	if got := <-first; got.err != nil {
		t.Fatal(got.err)
	}
	a.call(t, "fake__main__echo", nil) // it is not asked about
	if list := h.ok("policy", "list"); !strings.Contains(list, "fake/main:echo") {
		t.Errorf("it is not listed:\n%s", list)
	}
	h.ok("policy", "remove", "--tool", "fake/main:echo", "--client", "claude")
	h.ok("policy", "set", "--tool", "fake/main:echo", "deny")
	if _, err := a.CallTool(t.Context(), &sdk.CallToolParams{Name: "fake__main__echo"}); err == nil || !strings.Contains(err.Error(), "policy-denied") {
		t.Errorf("a denied tool: %v", err)
	}
	watched.saw(t, "open", "allowed", "denied")
}

// watching is a running `decisions watch --json`.
type watching struct {
	lines chan decision
	stop  func() int
}

func (h *home) watch() *watching {
	h.t.Helper()
	cmd := h.command("decisions", "watch", "--json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	w := &watching{lines: make(chan decision, 100)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			var d decision
			if json.Unmarshal(scan.Bytes(), &d) == nil {
				w.lines <- d
			}
		}
		cmd.Wait()
		close(w.lines)
	}()
	w.stop = func() int {
		cmd.Process.Signal(syscall.SIGINT)
		<-done
		return cmd.ProcessState.ExitCode()
	}
	h.t.Cleanup(func() { w.stop() })
	return w
}

// saw ends the watch, which must print decisions in these states and exit with 0.
func (w *watching) saw(t *testing.T, states ...string) {
	t.Helper()
	want := map[string]bool{}
	for _, state := range states {
		want[state] = true
	}
	deadline := time.After(20 * time.Second)
	for len(want) > 0 {
		select {
		case d := <-w.lines:
			delete(want, d.State)
		case <-deadline:
			t.Errorf("decisions watch never prints %v", want)
			clear(want)
		}
	}
	if code := w.stop(); code != 0 {
		t.Errorf("decisions watch exits with %d after Ctrl-C", code)
	}
}

// journalHas waits until a decision's journal has an event.
func (h *home) journalHas(id, event string) {
	h.t.Helper()
	waitFor(h.t, "the journal of "+id+" has "+event, 20*time.Second, func() bool {
		var d struct{ Journal []struct{ Event string } }
		h.read(&d, "decisions", "show", id)
		for _, entry := range d.Journal {
			if entry.Event == event {
				return true
			}
		}
		return false
	})
}

// TestAnAnswerThatComesLateServesOneRetry: the agent gives up first; the operator's
// yes is then for its next identical call, whatever its progress token, and for no
// other.
func TestAnAnswerThatComesLateServesOneRetry(t *testing.T) {
	h := newHome(t)
	h.addFake("fake", "polite")
	h.ok("approve", "fake", "--yes", "--tools", "echo", "--ask")
	s := h.serve()
	everyWay(t, h, s, func(t *testing.T, connect func() *sdkAgent) {
		a := connect()
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error, 1)
		params := &sdk.CallToolParams{Name: "fake__main__echo", Arguments: map[string]any{"text": t.Name()}}
		params.SetProgressToken("first")
		go func() {
			_, err := a.CallTool(ctx, params)
			gaveUp <- err
		}()
		d := h.openCall()
		cancel()
		if err := <-gaveUp; err == nil {
			t.Error("a call that was given up has an answer")
		}
		h.journalHas(d.ID, "client-gone")
		h.ok("decisions", "answer", d.ID, "allow")
		if got := <-a.start(t, params.Name, map[string]any{"text": t.Name()}); got.err != nil {
			t.Fatalf("the retry is refused: %v", got.err)
		}
		h.journalHas(d.ID, "served-retry")
		again := a.start(t, params.Name, map[string]any{"text": t.Name()})
		h.ok("decisions", "answer", h.openCall().ID, "deny")
		if got := <-again; got.err == nil {
			t.Error("a third call is served by the same yes")
		}
	})
}

// TestACallThatWaitsEndsWithItsAgentOrItsApproval: nothing is called for who is gone,
// and nothing of what is no longer approved.
func TestACallThatWaitsEndsWithItsAgentOrItsApproval(t *testing.T) {
	h := newHome(t)
	h.addFake("fake", "polite")
	h.ok("approve", "fake", "--yes", "--tools", "echo", "--ask")
	s := h.serve()
	for _, version := range generations {
		command := h.command("mcp", "--client", "killed")
		killed := connectSDK(t, &sdk.CommandTransport{Command: command}, version)
		gone := killed.start(t, "fake__main__echo", map[string]any{"text": version}) // an equal call is not asked about twice
		d := h.openCall()
		if err := command.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if got := <-gone; got.err == nil {
			t.Errorf("who is gone has the answer %+v", got.result)
		}
		h.journalHas(d.ID, "client-gone")
		h.ok("decisions", "answer", d.ID, "deny")
	}
	a := s.sdkOverHTTP(t, h.addClient("claude"), generations[0])
	ended := a.start(t, "fake__main__echo", nil)
	h.openCall()
	h.ok("revoke", "fake")
	if got := <-ended; got.err == nil || !strings.Contains(got.err.Error(), "revoked") {
		t.Errorf("after revoke: %+v %v", got.result, got.err)
	}
	h.ok("approve", "fake", "--yes", "--tools", "echo", "--ask")
	removed := a.start(t, "fake__main__echo", nil)
	d := h.openCall()
	h.ok("clients", "remove", "claude")
	if got := <-removed; got.err == nil {
		t.Errorf("after its client was removed it has the answer %+v", got.result)
	}
	if got := h.run("decisions", "answer", d.ID, "allow"); got.code != 1 || !strings.Contains(got.stderr, "decision-closed") {
		t.Errorf("a question of who was removed is answered: %+v", got)
	}
}

// TestAToolThatChangesWhileItsCallWaitsIsNotCalled: what was allowed is what was
// shown.
func TestAToolThatChangesWhileItsCallWaitsIsNotCalled(t *testing.T) {
	h := newHome(t)
	h.addFake("fake", "polite")
	h.ok("approve", "fake", "--yes", "--tools", "change,echo", "--ask")
	s := h.serve()
	a := s.sdkOverHTTP(t, h.addClient("claude"), generations[0])
	waiting := a.start(t, "fake__main__echo", nil)
	d := h.openCall()
	h.ok("call", "fake", "change")
	waitFor(t, "the change is seen", 20*time.Second, func() bool { return !a.tools(t)["fake__main__echo"] || h.run("call", "fake", "echo").code != 0 })
	h.ok("decisions", "answer", d.ID, "allow")
	if got := <-waiting; got.err == nil || !strings.Contains(got.err.Error(), "tool-changed") {
		t.Errorf("it is called: %+v %v", got.result, got.err)
	}
}
