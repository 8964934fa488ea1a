//go:build linux

package e2e

import (
	"strings"
	"testing"
)

// TestAConsoleInABrowser: off at first; once the operator said so it is a real terminal
// that keeps to the pages' policy, and it ends with the approval. What was typed is on
// no record.
func TestAConsoleInABrowser(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.with("SHELL=/bin/bash")
	h.addFake("fake", "polite")
	s := h.serve()
	h.ok("approve", "fake", "--yes", "--tools", "echo")
	p := h.sitDown(t, "console.mjs")

	p.says("off")
	h.ok("console", "--in-browser", "on")
	p.goOn()
	p.says("open")
	if list := h.ok("console", "--json"); !strings.Contains(list, `"shell": "bash"`) || !strings.Contains(list, `"via": "browser"`) {
		t.Errorf("open are %s", list)
	}
	h.ok("revoke", "fake")
	p.goOn()
	p.says("done")
	records := h.ok("audit", "list", "--json")
	for _, want := range []string{`"target": "open"`, `"target": "close exit=`, `"reason": "revoked"`, `"target": "console-in-browser=on"`} {
		if !strings.Contains(records, want) {
			t.Errorf("on record is no %s", want)
		}
	}
	if strings.Contains(records, "interrupted") || strings.Contains(records, "seq 1 12000") {
		t.Error("what was typed or printed is on record")
	}
	s.stop()
}
