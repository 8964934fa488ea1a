//go:build !windows

package host_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sallyport/internal/coded"
	"sallyport/internal/pty"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/console"
)

// A console is watched as a running server is: a change of its plugin's files ends it
// within 2 s, with the reason, and both are on record.
func TestAConsoleEndsWhenItsPluginChanges(t *testing.T) {
	r := newRig(t)
	id := r.install("fake", "polite")
	h := r.open()
	defer r.close(h)
	h.Start()
	r.approve(h, id, "echo")
	if err := h.Pool.Stop(t.Context(), id, coded.New("stopped-by-operator", "x")); err != nil {
		t.Fatal(err)
	}
	info, err := h.OpenConsole(t.Context(), id, console.Options{Size: pty.Size{Cols: 80, Rows: 24}, By: operator})
	if err != nil {
		t.Fatal(err)
	}
	if len(h.RunningIDs()) != 0 {
		t.Fatal("its server runs, which would be watched anyway")
	}
	if err := os.WriteFile(filepath.Join(r.places.Plugins(), "fake", "added"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out console.Output
	for !out.Info.Ended && ctx.Err() == nil {
		if out, err = h.Consoles.Output(ctx, info.ID, out.Next); err != nil {
			t.Fatal(err)
		}
	}
	if why := out.Info.Reason; why == nil || why.Code != "artifact-changed" {
		t.Errorf("it ended because of %v", why)
	}
	t.Logf("after %s", time.Since(began).Round(time.Millisecond))
	records, err := h.Audit.Query(t.Context(), audit.Filter{Action: audit.Console})
	if err != nil || len(records.Records) != 2 || records.Records[0].Reason != "artifact-changed" || records.Records[1].Target != "open" {
		t.Errorf("on record is %+v (%v)", records.Records, err)
	}
	if _, err := h.OpenConsole(t.Context(), id, console.Options{Size: pty.Size{Cols: 80, Rows: 24}, By: operator}); coded.Of(err) != "artifact-changed" {
		t.Errorf("another one: %v", err)
	}
}

// A console ends when its way in may have none any more: the operator who takes browsers'
// consoles away, or leaves them to the window alone, means those that are open too.
func TestAConsoleEndsWhenItsWayInMayHaveNone(t *testing.T) {
	r := newRig(t)
	id := r.install("fake", "polite")
	h := r.open()
	defer r.close(h)
	h.Start()
	r.approve(h, id, "echo")
	by := func(via string) approvals.By { return approvals.By{User: "x", Via: via} }
	gui := by(approvals.ViaGUI)
	open := func(via string) string {
		info, err := h.OpenConsole(t.Context(), id, console.Options{Size: pty.Size{Cols: 80, Rows: 24}, By: by(via)})
		if err != nil {
			t.Fatal(err)
		}
		return info.ID
	}
	ended := func(id string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for after := uint64(0); ; {
			out, err := h.Consoles.Output(ctx, id, after)
			if err != nil {
				t.Fatal(err)
			}
			if after = out.Next; out.Info.Ended || ctx.Err() != nil {
				if why := out.Info.Reason; why == nil || why.Code != "console-only-in-window" {
					t.Errorf("it ended because of %v", why)
				}
				return
			}
		}
	}
	if err := h.Gate.SetConsoleInBrowser(t.Context(), true, gui); err != nil {
		t.Fatal(err)
	}
	window, terminal, browser := open(approvals.ViaGUI), open(approvals.ViaCLI), open(approvals.ViaBrowser)
	if err := h.Gate.SetConsoleInBrowser(t.Context(), false, gui); err != nil {
		t.Fatal(err)
	}
	ended(browser)
	if err := h.Gate.SetAnswerOnlyInGUI(t.Context(), true, gui); err != nil {
		t.Fatal(err)
	}
	ended(terminal)
	for _, one := range h.Consoles.List() {
		if one.ID == window && one.Ended {
			t.Errorf("the window's ended because of %v", one.Reason)
		}
	}
}
