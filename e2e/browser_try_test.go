//go:build linux

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// waitingServer never answers, says what it does and has a child that would outlive it.
const waitingServer = "#!/bin/sh\n" +
	"printf 'looking for <b>the index</b>\\n\\342\\200\\256\\033[2J\\n' >&2\n" +
	"sleep 1000 &\n" +
	"n=0; while :; do n=$((n+1)); echo \"still looking, $n\" >&2; sleep 1; done\n"

// TestAPersonTriesTools: what was allowed to run is tried in sight, with what it writes,
// and cancelled with its whole tree; one that crashes says how. Its tools are then tried
// from forms made of their schemas, with every digit, through the same gate and on
// record.
func TestAPersonTriesTools(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.addFake("fake", "forms")
	h.addFake("broken", "fails")
	h.addFake("slow", "polite")
	h.write("slow", "bin/server", []byte(waitingServer), 0o755)
	s := h.serve()
	token := h.addClient("claude")
	p := h.sitDown(t, "try-tool.mjs")

	p.says("cancelled")
	if got := h.connector("slow/main"); got.State != "approval_required" || got.Reason != "probe-cancelled" {
		t.Errorf("after the cancel it is %+v", got)
	}
	if left := h.plugins(); countOf(left, "sleep 1000")+countOf(left, "bin/server") != 0 {
		t.Errorf("of the try there is left: %v", left)
	}
	p.goOn()

	p.says("tried")
	waitFor(t, "the cancelled call is on record", 20*time.Second, func() bool {
		return strings.Contains(h.ok("audit", "list", "--json", "--plugin", "fake"), `"reason": "cancelled"`)
	})
	agent := s.sdkOverHTTP(t, token, "")
	ended := agent.start(t, "fake__main__order", map[string]any{"name": "Ann", "count": 1, "place": map[string]any{"street": "High Street"}})
	h.openCall()
	p.goOn()
	p.says("done")
	if got := <-ended; got.err != nil {
		t.Errorf("the call that was allowed in the browser: %v", got.err)
	}
	var records []struct{ Action, Via, Client, Target, Result string }
	if err := json.Unmarshal([]byte(h.ok("audit", "list", "--json", "--plugin", "fake")), &records); err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, record := range records {
		if record.Action == "call" && record.Client == "operator" && record.Via == "browser" && record.Target == "order" {
			own++
		}
	}
	if own != 2 {
		t.Errorf("of the two calls from the form %d are on record as the operator's own", own)
	}
	s.stop()
}

func countOf(all []process, part string) int {
	n := 0
	for _, one := range all {
		if strings.Contains(one.line, part) {
			n++
		}
	}
	return n
}
