package approvals

import (
	"slices"
	"strings"

	"sallyport/internal/coded"
)

// By is who did something: the operating-system user and the way in.
type By struct {
	User string `json:"user"`
	Via  string `json:"via"`
}

// The ways in (spec/approval.md 4.5). Only a window that proved itself is GUI.
const (
	ViaGUI            = "gui"
	ViaBrowser        = "browser"
	ViaWindowAttached = "window-attached"
	ViaCLI            = "cli"
	ViaAPI            = "api"
	ViaCompanion      = "companion"
	ViaAgent          = "agent"
	ViaSallyport      = "sallyport" // the program itself: expiry, watcher
)

// String is "user via way", for the journal; of what nobody did, "via way".
func (b By) String() string { return strings.TrimSpace(b.User + " via " + b.Via) }

// isOperator reports whether b came in a way that an operator's token guards.
// Every other way, known or not, is refused.
func (b By) isOperator() bool {
	return slices.Contains([]string{ViaGUI, ViaBrowser, ViaWindowAttached, ViaCLI, ViaAPI}, b.Via)
}

// MayOperate refuses whoever is no operator, for what ends something and decides nothing.
func (b By) MayOperate() error { return b.mayOperate() }

// mayOperate refuses b where only an operator may act.
func (b By) mayOperate() error {
	if b.isOperator() {
		return nil
	}
	return &coded.Error{Code: "answer-not-allowed", Sentence: "only the operator can do this, not an agent or a companion",
		Next: "answer in the window, the browser or with: sallyport decisions list"}
}

// mayAnswer is mayOperate where a setting restricts answering to the window.
func (b By) mayAnswer(guiOnly bool) error {
	if err := b.mayOperate(); err != nil {
		return err
	}
	if guiOnly && b.Via != ViaGUI {
		return &coded.Error{Code: "answer-only-in-gui", Sentence: "a setting lets only the window answer",
			Next: "open Sallyport's window"}
	}
	return nil
}
