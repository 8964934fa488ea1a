//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/runtime/audit"
	"sallyport/runtime/store"
)

// remember puts n calls of the last six days on record, before anything runs.
func (h *home) remember(n int) {
	h.t.Helper()
	t := h.t
	if err := os.MkdirAll(h.data(), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), store.Config{Path: h.data("sallyport.db")})
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(t.Context(), audit.Config{DB: db})
	if err != nil {
		t.Fatal(err)
	}
	begin, step := time.Now().AddDate(0, 0, -6), 6*24*time.Hour/time.Duration(n)
	for i := range n {
		r := audit.Record{At: begin.Add(time.Duration(i) * step), Actor: "sallyport", Via: "mcp", Action: audit.Call, Result: audit.OK,
			Plugin: fmt.Sprintf("old%d", i%7), Binding: "main", Target: "read", Client: "earlier", DurationMs: int64(i % 900)}
		if i%50 == 0 {
			r.Result, r.Reason = audit.Refused, "permission-denied"
		}
		log.Call(r)
	}
	if err := log.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestClientsAndTheAuditInABrowser: an agent's token is shown once and kept nowhere,
// what it sees is changed and put back, a program's file is written exactly as shown
// and undone byte for byte, and 100,000 records are read to their end.
func TestClientsAndTheAuditInABrowser(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.remember(100_000)
	h.addCursor()
	h.addFake("fake", "polite")
	config := filepath.Join(h.dir, ".cursor", "mcp.json")
	read := func() string {
		raw, err := os.ReadFile(config)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	before := read()
	s := h.serve()
	h.ok("approve", "fake", "--yes", "--tools", "echo,pid")
	p := h.sitDown(t, "clients-audit.mjs")

	p.says("looked")
	if read() != before {
		t.Error("looking at what would be written wrote")
	}
	p.goOn()
	p.says("connected")
	if now := read(); !strings.Contains(now, `"sallyport"`) || !strings.Contains(now, "// mine") {
		t.Errorf("the program's file is %s", now)
	}
	p.goOn()
	p.says("undone")
	if now := read(); now != before {
		t.Errorf("undone, the file is %s", now)
	}
	p.goOn()
	p.says("done")
	t.Log(strings.TrimSpace(p.errs.String()))
	s.stop()
}
