//go:build linux

package e2e

import "sallyport/internal/keyringtest"

// in makes later commands part of a login.
func (h *home) in(l *keyringtest.Session) {
	h.with("DBUS_SESSION_BUS_ADDRESS="+l.Address, "XDG_RUNTIME_DIR="+l.Runtime)
}

// sealsByFile makes the first start one without a keyring, so that the seal key is in a
// file: for tests about secrets alone.
func (h *home) sealsByFile() {
	h.t.Helper()
	h.ok("plugins", "list")
}
