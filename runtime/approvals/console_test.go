package approvals_test

import (
	"path/filepath"
	"testing"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/approvals/approvalstest"
)

// One row is one way in, and who has a console by it: as it is at first, where browsers
// may have it, and where only the window may answer.
func TestWhoMayUseAConsole(t *testing.T) {
	gui := approvals.By{User: "x", Via: approvals.ViaGUI}
	const no, notHere = "answer-not-allowed", "console-only-in-window"
	for _, row := range []struct{ via, first, inBrowser, onlyWindow string }{
		{approvals.ViaGUI, "", "", ""},
		{approvals.ViaWindowAttached, "", "", notHere},
		{approvals.ViaCLI, "", "", notHere},
		{approvals.ViaBrowser, notHere, "", notHere},
		{approvals.ViaAPI, notHere, "", notHere},
		{approvals.ViaAgent, no, no, no},
		{approvals.ViaCompanion, no, no, no},
		{approvals.ViaSallyport, no, no, no},
		{"", no, no, no},
	} {
		t.Run(row.via, func(t *testing.T) {
			r := approvalstest.New(t)
			by := approvals.By{User: "x", Via: row.via}
			may := func(when, want string) {
				t.Helper()
				if err := r.Gate.MayUseConsole(by); coded.Of(err) != want {
					t.Errorf("%s: %v", when, err)
				}
			}
			may("at first", row.first)
			if err := r.Gate.SetConsoleInBrowser(t.Context(), true, gui); err != nil {
				t.Fatal(err)
			}
			r.Reopen()
			may("where browsers may have it", row.inBrowser)
			if err := r.Gate.SetAnswerOnlyInGUI(t.Context(), true, gui); err != nil {
				t.Fatal(err)
			}
			may("where only the window may answer", row.onlyWindow)
		})
	}
}

func TestWhoTurnsConsolesInBrowsersOn(t *testing.T) {
	r := approvalstest.New(t)
	by := func(via string) approvals.By { return approvals.By{User: "x", Via: via} }
	for _, via := range []string{approvals.ViaBrowser, approvals.ViaAPI} {
		wantCode(t, r.Gate.SetConsoleInBrowser(t.Context(), true, by(via)), "console-only-in-window")
	}
	wantCode(t, r.Gate.SetConsoleInBrowser(t.Context(), true, by(approvals.ViaAgent)), "answer-not-allowed")
	if r.Gate.ConsoleInBrowser() {
		t.Fatal("a refusal turned it on")
	}
	if err := r.Gate.SetConsoleInBrowser(t.Context(), true, by(approvals.ViaCLI)); err != nil || !r.Gate.ConsoleInBrowser() {
		t.Fatal(err)
	}
	if err := r.Gate.SetConsoleInBrowser(t.Context(), false, by(approvals.ViaBrowser)); err != nil || r.Gate.ConsoleInBrowser() {
		t.Fatal("a browser does not turn it off", err)
	}
	if err := r.Gate.SetAnswerOnlyInGUI(t.Context(), true, by(approvals.ViaGUI)); err != nil {
		t.Fatal(err)
	}
	wantCode(t, r.Gate.SetConsoleInBrowser(t.Context(), true, by(approvals.ViaCLI)), "console-only-in-window")
	if err := r.Gate.SetConsoleInBrowser(t.Context(), true, by(approvals.ViaGUI)); err != nil || !r.Gate.ConsoleInBrowser() {
		t.Fatal(err)
	}
}

// An older store that has the setting on, put back, opens no console in a browser: not
// before it is accepted, and not after.
func TestAnOlderStoreOpensNoConsole(t *testing.T) {
	r := approvalstest.New(t)
	gui := approvals.By{User: "x", Via: approvals.ViaGUI}
	if err := r.Gate.SetConsoleInBrowser(t.Context(), true, gui); err != nil {
		t.Fatal(err)
	}
	r.Close()
	old := filepath.Join(r.Dir, "old.db")
	copyStore(t, r.Database(), old)
	r.Open()
	if err := r.Gate.SetConsoleInBrowser(t.Context(), false, gui); err != nil {
		t.Fatal(err)
	}
	r.Close()
	copyStore(t, old, r.Database())
	r.Open()
	if r.Gate.ConsoleInBrowser() {
		t.Fatal("an older store put back opens consoles")
	}
	if err := r.Gate.AcceptRollback(t.Context(), false, gui); err != nil {
		t.Fatal(err)
	}
	if r.Gate.ConsoleInBrowser() {
		t.Fatal("accepting the store opens consoles")
	}
}
