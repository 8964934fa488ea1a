//go:build !linux && !windows

package tray

import "context"

// Tray is nothing here.
type Tray struct{}

// Run says that there is no icon on this system: it would need cgo.
func Run(ctx context.Context, _ func(*Tray)) error { return Available(ctx) }

// Available says why there is none.
func Available(context.Context) error {
	return unavailable("an icon is not shown on this system", "open the window or: sallyport open")
}

// Show does nothing.
func (*Tray) Show(Picture) {}
