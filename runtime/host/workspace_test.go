package host_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/host"
)

// workspace is an agent that works in a folder.
type workspace struct{}

func (workspace) Notify(string, json.RawMessage) {}

func (workspace) Supports(string) bool { return true }

func (workspace) Request(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(`{"roots":[{"uri":"file:///work/` + method + `"}]}`), nil
}

// TestTheWorkspaceIsToldWithThePermissionOnly: which folders an agent works in passes
// the host, to a server that may read them (spec/permissions.md 2, fs).
func TestTheWorkspaceIsToldWithThePermissionOnly(t *testing.T) {
	for _, row := range []struct {
		what   string
		permit []string
		told   bool
	}{
		{"nothing is permitted", nil, false},
		{"its own folder is", []string{"plugin-data"}, false},
		{"reading the workspace is", []string{"workspace-read"}, true},
		{"changing the workspace is", []string{"workspace-write"}, true},
	} {
		t.Run(row.what, func(t *testing.T) {
			r := newRig(t)
			id := r.install("fake", "polite")
			if row.permit != nil {
				r.budgets(map[string]any{"fake/main": map[string]any{"permit": map[string]any{"fs": row.permit}}})
			}
			h := r.open()
			defer r.close(h)
			r.approve(h, id, "ask")
			if _, err := h.Gate.AddClient(t.Context(), "agent", approvals.Scope{All: true}, operator); err != nil {
				t.Fatal(err)
			}
			asks := func(method string) string {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				result, err := host.BackendOf(h).Call(ctx, "agent", id, "ask", json.RawMessage(`{"name":"ask","arguments":{"method":"`+method+`","params":{}}}`), workspace{})
				if err != nil {
					t.Fatal(err)
				}
				return string(result)
			}
			answer := asks("roots/list")
			if told := strings.Contains(answer, "file:///work"); told != row.told || told == strings.Contains(answer, "permission-denied") {
				t.Errorf("it is told %s", answer)
			}
			if answer := asks("elicitation/create"); !strings.Contains(answer, "file:///work") {
				t.Errorf("another question is answered with %s", answer)
			}
			if row.told {
				return
			}
			within(t, "it is on record", func() bool {
				page, err := h.Audit.Query(t.Context(), audit.Filter{Reason: "permission-denied"})
				return err == nil && len(page.Records) == 1 && page.Records[0].Target == "roots/list" && page.Records[0].Plugin == "fake"
			})
		})
	}
}
