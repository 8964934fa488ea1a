package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/health"
	"sallyport/runtime/host"
	"sallyport/runtime/plugins"
)

// budgets writes the operator's own configuration.
func (r *rig) budgets(connectors map[string]any) {
	r.t.Helper()
	raw, err := json.Marshal(map[string]any{"connectors": connectors})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(r.places.ConfigFile()), 0o700); err != nil {
		r.t.Fatal(err)
	}
	r.write(r.places.ConfigFile(), string(raw))
}

// ask calls a tool with arguments as the operator.
func callWith(ctx context.Context, h *host.Host, id plugins.ID, tool, arguments string) error {
	_, err := h.Call(ctx, approvals.ViaCLI, id, tool, []byte(`{"name":"`+tool+`","arguments":`+arguments+`}`))
	return err
}

// TestOverBudget: whoever makes the call that is too much gets the code, health says
// what to do, the call is on record, and other servers go on.
func TestOverBudget(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux measures all of it")
	}
	for _, row := range []struct {
		code, behaviour string
		budget          map[string]any
		call            func(ctx context.Context, h *host.Host, id plugins.ID) error
	}{
		{"budget-memory", "eats-memory", map[string]any{"memoryBytes": 64 << 20}, goes},
		{"budget-cpu", "eats-processor", map[string]any{"cpuSeconds": 1}, goes},
		{"budget-processes", "breeds", map[string]any{"processes": 4}, goes},
		{"budget-result", "polite", map[string]any{"resultBytes": 1000}, func(ctx context.Context, h *host.Host, id plugins.ID) error {
			if err := callWith(ctx, h, id, "big", `{"bytes":900}`); err != nil {
				return fmt.Errorf("within the budget: %w", err)
			}
			return callWith(ctx, h, id, "big", `{"bytes":1000}`)
		}},
		{"budget-calls", "polite", map[string]any{"calls": 4}, tooMany},
	} {
		t.Run(row.code, func(t *testing.T) {
			r := newRig(t)
			id, other := r.install("hog", row.behaviour), r.install("other", "polite")
			r.budgets(map[string]any{"hog/main": map[string]any{"budget": row.budget}})
			h := r.open()
			defer r.close(h)
			r.approve(h, id, "go", "big", "echo", "slow")
			r.approve(h, other, "echo")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := row.call(ctx, h, id); coded.Of(err) != row.code {
				t.Errorf("the call: %v", err)
			}
			within(t, "health tells of it", func() bool {
				return slices.ContainsFunc(h.Health.Problems(), func(p health.Problem) bool {
					return p.Code == health.OverBudget && p.Subject == "hog/main" && strings.Contains(p.Text, row.code) && p.Next != ""
				})
			})
			if err := call(t, h, other, "echo"); err != nil {
				t.Errorf("its neighbour: %v", err)
			}
			within(t, "it is on record", func() bool {
				page, err := h.Audit.Query(ctx, audit.Filter{Reason: row.code})
				return err == nil && len(page.Records) > 0
			})
			if err := h.Gate.Disable(ctx, id, operator); err != nil {
				t.Fatal(err)
			}
			if err := h.Gate.Enable(ctx, id, operator); err != nil {
				t.Fatal(err)
			}
			within(t, "health is silent once the operator has acted", func() bool { return !tells(h, health.OverBudget) })
		})
	}
}

func within(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never happened that %s", what)
		}
	}
}

func tells(h *host.Host, code health.Code) bool {
	return slices.ContainsFunc(h.Health.Problems(), func(p health.Problem) bool { return p.Code == code })
}

func goes(ctx context.Context, h *host.Host, id plugins.ID) error {
	return callWith(ctx, h, id, "go", "{}")
}

// tooMany makes calls that take long, until one is refused, and sees that the others
// are answered.
func tooMany(ctx context.Context, h *host.Host, id plugins.ID) error {
	if err := callWith(ctx, h, id, "echo", "{}"); err != nil {
		return err
	}
	var all sync.WaitGroup
	results := make(chan error, 8)
	for range cap(results) {
		all.Go(func() { results <- callWith(ctx, h, id, "slow", `{"ms":2000}`) })
	}
	all.Wait()
	close(results)
	answered := 0
	var refused error
	for err := range results {
		if err == nil {
			answered++
		} else {
			refused = err
		}
	}
	if answered != 4 {
		return fmt.Errorf("%d calls were answered, want 4 (%w)", answered, refused)
	}
	return refused
}

// TestARequiredBudgetIsStartedOnlyWhereItHolds: on macOS nobody can bound memory.
func TestARequiredBudgetIsStartedOnlyWhereItHolds(t *testing.T) {
	r := newRig(t)
	id := r.install("fake", "polite")
	r.budgets(map[string]any{"fake/main": map[string]any{"budget": map[string]any{"memoryBytes": 1 << 30, "required": true}}})
	h := r.open()
	defer r.close(h)
	asked, err := h.Ask(t.Context(), id, operator)
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Answer(t.Context(), asked.ID, approvals.Answer{Allow: true}, operator)
	want := map[bool]string{true: "budget-unenforceable", false: ""}[runtime.GOOS == "darwin"]
	if coded.Of(err) != want {
		t.Errorf("starting it: %v, want %q", err, want)
	}
}
