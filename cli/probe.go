package cli

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"sallyport/api"
	"sallyport/api/client"
)

// shownTail is how much of the error output of a try that failed is printed.
const shownTail = 12

// tryIt allows a connector to run and waits for its first try, which it tells of.
// Ctrl-C ends the try: then nothing is approved.
func (c *command) tryIt(ctx context.Context, h *client.Client, one api.Connector, decision string, how approveHow) (api.Decision, error) {
	c.say("trying %s …", one.ID)
	interrupted, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	type outcome struct {
		next api.Decision
		err  error
	}
	answered := make(chan outcome, 1)
	going := context.WithoutCancel(ctx)
	go func() {
		next, err := c.answer(going, h, decision, api.Answer{Answer: "allow", AcceptUnpinned: how.unpinned}, toolChoice{})
		answered <- outcome{next, err}
	}()
	watching, seen := context.WithCancel(interrupted)
	told := make(chan struct{})
	go func() {
		defer close(told)
		c.tellProbe(watching, h, decision)
	}()
	var got outcome
	select {
	case got = <-answered:
	case <-interrupted.Done():
		stop() // a second Ctrl-C ends this program at once
		c.say("stopping it …")
		_ = h.Post(going, "/v1/decisions/"+url.PathEscape(decision)+"/cancel", nil, nil)
		got = <-answered
	}
	seen()
	<-told
	if got.err != nil {
		c.sayTail(going, h, decision)
	}
	return got.next, got.err
}

// tellProbe tells of a try on a terminal until ctx ends.
func (c *command) tellProbe(ctx context.Context, h *client.Client, decision string) {
	progress := c.progress()
	if progress.w == nil {
		return
	}
	defer progress.end()
	after := -1
	for ctx.Err() == nil {
		var now api.Probe
		query := url.Values{"wait": {"1s"}, "after": {strconv.Itoa(after)}}
		if err := h.Get(ctx, "/v1/decisions/"+url.PathEscape(decision)+"/probe", query, &now); err != nil || now.State != "running" {
			select { // it has not begun, or is over and its answer on the way
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		after = now.Revision
		progress.tell(probeLine(now))
	}
}

// probeLine is a try in one line: what it does, for how long, and what it wrote last.
func probeLine(now api.Probe) string {
	doing := ""
	if n := len(now.Steps); n > 0 {
		doing = now.Steps[n-1].Doing
	}
	words := map[string]string{"checking": "comparing the files", "starting": "starting it", "handshake": "waiting for its MCP handshake",
		"listing": "asking for its tools", "stopping": "stopping it"}
	if word, known := words[doing]; known {
		doing = word
	}
	line := fmt.Sprintf("%s … %d s (Ctrl-C cancels)", doing, now.Ms/1000)
	if n := len(now.Stderr); n > 0 {
		line += "  it says: " + now.Stderr[n-1]
	}
	return line
}

// sayTail prints the end of the error output of a try that came to nothing.
func (c *command) sayTail(ctx context.Context, h *client.Client, decision string) {
	var now api.Probe
	if h.Get(ctx, "/v1/decisions/"+url.PathEscape(decision)+"/probe", nil, &now) != nil || len(now.Stderr) == 0 {
		return
	}
	lines := now.Stderr[max(0, len(now.Stderr)-shownTail):]
	c.say("the end of its error output (the plugin's own text):")
	for _, line := range lines {
		c.say("  | %s", oneLine(line, 200))
	}
}
