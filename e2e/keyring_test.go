//go:build linux

package e2e

import "sallyport/internal/keyringtest"

// in makes later commands part of a login.
func (h *home) in(l *keyringtest.Session) {
	h.with("DBUS_SESSION_BUS_ADDRESS="+l.Address, "XDG_RUNTIME_DIR="+l.Runtime)
}
