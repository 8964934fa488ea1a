//go:build !linux

package notification

import "context"

// Desktop is nothing here: macOS and Windows show notices for programs that are
// installed as applications, by calls that need one.
type Desktop struct{}

func open(context.Context, Config) (*Desktop, error) {
	return nil, unavailable("notices are not shown on this system", "look at what waits: sallyport decisions", nil)
}

// Show does nothing.
func (*Desktop) Show(context.Context, Notice) error { return nil }

// Withdraw does nothing.
func (*Desktop) Withdraw(context.Context, string) {}

// Close does nothing.
func (*Desktop) Close(context.Context) {}
