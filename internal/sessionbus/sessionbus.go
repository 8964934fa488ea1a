// Package sessionbus says where the D-Bus session bus of this login is.
//
// The one idea: a bus that is there is used, and none is ever launched: one that was
// started to ask a question has nobody on it, and would stay behind (C57).
//
// It connects to nothing. Whoever speaks to the desktop may import it.
package sessionbus

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/godbus/dbus/v5"
)

// Address returns where the session bus is, or "" where there is none.
func Address(getenv func(string) string) string {
	set := strings.Split(getenv("DBUS_SESSION_BUS_ADDRESS"), ";")
	set = slices.DeleteFunc(set, func(one string) bool {
		return one == "" || strings.HasPrefix(one, "autolaunch:") || strings.HasPrefix(one, "unixexec:")
	})
	if len(set) > 0 {
		return strings.Join(set, ";")
	}
	folder := getenv("XDG_RUNTIME_DIR")
	if !filepath.IsAbs(folder) {
		return ""
	}
	path := filepath.Join(folder, "bus")
	if info, err := os.Stat(path); err != nil || info.Mode().Type() != os.ModeSocket {
		return ""
	}
	return "unix:path=" + dbus.EscapeBusAddressValue(path)
}
