//go:build desktop

package app

import "os"

// hidesOnClose: closing the window ends Sallyport here, its plugins with it.
const hidesOnClose = false

// canShow refuses where there is no screen.
func canShow() error {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return noScreen()
	}
	return nil
}
