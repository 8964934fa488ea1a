// Package coded gives a refusal a stable code.
//
// The one idea: whoever refuses says three things once, where the refusal is
// made, and every way out (CLI, API, MCP, audit) shows the same three: a code
// that scripts may branch on, one plain sentence, and what to do next. An Error
// holds no secret, no file contents and no absolute path of the user's.
//
// It knows no domain words. Every package may import it.
package coded

import "errors"

// Error is a refusal or failure that has a stable code.
type Error struct {
	// Code is lower-case words joined with '-', listed in a contract.
	Code string
	// Sentence says what happened, in one plain sentence without a full stop.
	Sentence string
	// Next says what to do about it; may be empty.
	Next string
	// Path is relative to whatever root the code is about; may be empty.
	Path string
	// Err is the cause, for errors.Is and errors.As; its text is not shown.
	Err error
}

// New returns an Error with a code and a sentence.
func New(code, sentence string) *Error { return &Error{Code: code, Sentence: sentence} }

// Error returns the sentence, with the relative path where there is one.
func (e *Error) Error() string {
	text := e.Sentence
	if text == "" {
		text = e.Code
	}
	if e.Path != "" {
		text += " (" + e.Path + ")"
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is a *coded.Error with the same code and nothing
// else, so that errors.Is(err, coded.New("x", "")) asks about the code alone.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code && other.Sentence == "" && other.Err == nil
}

// Of returns the code of the first coded error in err's chain, or "".
func Of(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
