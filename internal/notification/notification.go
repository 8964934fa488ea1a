// Package notification shows a person short notices in the manner of their desktop.
//
// The one idea: a notice has a key. Showing a second one of the same key takes the
// place of the first, withdrawing it takes it away, and a click gives the key back:
// what a click does is its owner's business.
//
// Text is text: markup in it is shown as it is written. It keeps no history, decides
// nothing and starts nothing. It is there where the desktop has a D-Bus session; on
// other systems Open says that it is not. cli and app import it.
package notification

import (
	"context"
	"strings"
	"unicode/utf8"

	"sallyport/internal/coded"
)

const (
	longestTitle = 120 // characters
	longestBody  = 300
)

// Notice is what is shown.
type Notice struct {
	Key   string // of its owner's choosing
	Title string
	Body  string
	// Action is what a click does, in words, such as "Review".
	Action string
}

// Config says who shows notices.
type Config struct {
	Name    string // of the program, as a person knows it
	Desktop string // its desktop file's name, without .desktop
	Icon    Pixels
	Getenv  func(string) string
	// Clicked is called with the key of a notice that was clicked, in a goroutine of
	// this package's, one at a time.
	Clicked func(key string)
}

// Pixels is an icon, 8 bits for each of red, green, blue and opacity, by rows.
type Pixels struct {
	Width, Height int
	RGBA          []byte
}

// Open connects to the desktop. The error's code is notifications-unavailable where
// there is nobody to show anything.
func Open(ctx context.Context, cfg Config) (*Desktop, error) { return open(ctx, cfg) }

func unavailable(sentence, next string, err error) error {
	return &coded.Error{Code: "notifications-unavailable", Sentence: sentence, Next: next, Err: err}
}

// shortened cuts text to so many characters, and keeps it on one line.
func shortened(text string, limit int) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "�")), " ")
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}
