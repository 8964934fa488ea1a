// Package tray keeps an icon with a menu where the desktop has icons of programs
// that run: the notification area of Windows, the StatusNotifierItem of Linux
// desktops.
//
// The one idea: a picture of what there is now. Show replaces the whole of it, and a
// click runs the function that stood beside the words.
//
// It knows nothing of Sallyport. A process has one tray at most. On macOS an icon
// needs cgo, and Run says that it is not available. cli imports it.
package tray

import (
	"sallyport/internal/coded"
)

// Picture is all that the tray shows.
type Picture struct {
	// Icon is a PNG, on Windows an ICO.
	Icon    []byte
	Tooltip string
	Items   []Item
}

// Item is a line of the menu. One without a title is a line between groups, one
// without Do says something and cannot be clicked.
type Item struct {
	Title string
	Do    func()
}

func unavailable(sentence, next string) error {
	return &coded.Error{Code: "tray-unavailable", Sentence: sentence, Next: next}
}
