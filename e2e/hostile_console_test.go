//go:build linux

package e2e

import (
	"bytes"
	"encoding/base64"
	"os"
	"strings"
	"testing"
	"time"
)

// TestAKilledSidecarLeavesNoConsole: with a console open in which something runs that
// ignores the end of its terminal, the sidecar is killed; the next one finds the whole
// tree and ends it, and no console is open.
func TestAKilledSidecarLeavesNoConsole(t *testing.T) {
	f := newFort(t)
	f.with("SHELL=/bin/bash")
	f.addServer("fake", "polite")
	s := f.serve()
	f.approve("fake")
	status, body := s.sendVia("cli", "POST", "/v1/plugins/fake/main/console", `{"cols":80,"rows":24}`)
	if status != 200 {
		t.Fatalf("opening a console: %d %s", status, body)
	}
	var opened struct{ ID string }
	decode(t, string(body), &opened)
	line := base64.StdEncoding.EncodeToString([]byte("(trap '' HUP TERM INT; while :; do sleep 1000; done) & (trap '' HUP; exec sleep 1001) &\n"))
	if status, body := s.sendVia("cli", "POST", "/v1/consoles/"+opened.ID+"/input", `{"data":"`+line+`"}`); status != 200 {
		t.Fatalf("typing: %d %s", status, body)
	}
	sleeping := func() (n int) {
		for _, p := range f.processes() {
			if strings.Contains(p.line, "sleep 100") {
				n++
			}
		}
		return n
	}
	waitFor(t, "both run", time.Minute, func() bool { return sleeping() == 2 })
	s.kill()
	next := f.serve()
	waitFor(t, "nothing of the console is left", time.Minute, func() bool { return sleeping() == 0 && len(f.plugins()) == 0 })
	if _, body := next.sendVia("cli", "GET", "/v1/consoles", ""); !bytes.Contains(body, []byte(`"consoles":[]`)) {
		t.Errorf("open are %s", body)
	}
	next.stop()
	if _, err := os.Stat(f.data("plugin-data", "fake")); err != nil {
		t.Errorf("its data went with it: %v", err)
	}
}
