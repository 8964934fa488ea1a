package tray

import (
	"context"
	"os"

	"github.com/godbus/dbus/v5"

	"sallyport/internal/sessionbus"
)

// Available says whether anybody shows icons (the StatusNotifierItem specification of
// freedesktop.org). The library would launch a bus where there is none.
func Available(ctx context.Context) error {
	address := sessionbus.Address(os.Getenv)
	if address == "" {
		return unavailable("there is no desktop session to show an icon in", "start it from within the desktop")
	}
	conn, err := dbus.Connect(address, dbus.WithContext(ctx))
	if err != nil {
		return unavailable("the desktop session does not answer", "start it from within the desktop")
	}
	defer func() { _ = conn.Close() }() // it was for one question
	var there bool
	err = conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, "org.kde.StatusNotifierWatcher").Store(&there)
	if err != nil || !there {
		return unavailable("this desktop shows no icons of programs", "in GNOME, turn on the extension AppIndicator; notices are shown without an icon")
	}
	return os.Setenv("DBUS_SESSION_BUS_ADDRESS", address) // where the library looks
}
