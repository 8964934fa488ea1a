package approvals

import (
	"context"
	"encoding/json"

	"sallyport/internal/coded"
	"sallyport/runtime/audit"
)

const consoleInBrowser = "console-in-browser"

// ConsoleInBrowser reports whether a console may be opened outside the window and a
// person's own terminal. A setting that does not verify counts as off: the strict
// reading.
func (g *Gate) ConsoleInBrowser() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	body, ok, problem := g.docs.get(settingKind, consoleInBrowser)
	var s setting
	return ok && problem == nil && g.docs.fault == nil && json.Unmarshal(body, &s) == nil && s.On
}

// MayUseConsole refuses a way in that no console is for: what a console shows may be
// secrets. The window may, the command line where anybody but the window may answer,
// and a browser or another program only where the operator said so.
func (g *Gate) MayUseConsole(by By) error {
	if err := by.mayOperate(); err != nil {
		return err
	}
	window := by.Via == ViaGUI || by.Via == ViaWindowAttached
	switch {
	case by.Via == ViaGUI:
		return nil
	case g.AnswerOnlyInGUI():
		return consoleOnlyInWindow("a setting lets only the window answer, and so only the window has a console", "open Sallyport's window")
	case window || by.Via == ViaCLI || g.ConsoleInBrowser():
		return nil
	}
	return consoleOnlyInWindow("a console opens in the window or in a terminal, and not here",
		"run it in a terminal: sallyport console ID; or let browsers have it: sallyport console --in-browser on")
}

func consoleOnlyInWindow(sentence, next string) *coded.Error {
	return &coded.Error{Code: "console-only-in-window", Sentence: sentence, Next: next}
}

// SetConsoleInBrowser changes the setting. Turning it on takes what a console takes
// without it; turning it off only takes away, and any operator may.
func (g *Gate) SetConsoleInBrowser(ctx context.Context, on bool, by By) error {
	if err := by.mayOperate(); err != nil {
		return err
	}
	if window := by.Via == ViaGUI || by.Via == ViaWindowAttached; on && !window && by.Via != ViaCLI {
		return consoleOnlyInWindow("only the window and a terminal turn this on", "run it in a terminal: sallyport console --in-browser on")
	}
	if on && by.Via != ViaGUI && g.AnswerOnlyInGUI() {
		return consoleOnlyInWindow("a setting lets only the window answer, and so only the window turns this on", "open Sallyport's window")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	t := newTransaction()
	if err := t.batch.put(settingKind, consoleInBrowser, setting{schemaVersion, on}); err != nil {
		return err
	}
	t.audit = append(t.audit, audit.Record{Action: audit.Setting, Result: audit.OK, Target: consoleInBrowser + map[bool]string{true: "=on", false: "=off"}[on], Actor: by.User, Via: by.Via})
	if err := g.commit(ctx, t); err != nil {
		return err
	}
	g.tell(Event{Kind: "settings", Code: consoleInBrowser})
	return nil
}
