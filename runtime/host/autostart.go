package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"sallyport/internal/loginitem"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/env"
)

// Autostart says whether this program is started when its user logs in.
func (h *Host) Autostart() (loginitem.Status, error) {
	item, err := h.loginItem()
	if err != nil {
		return loginitem.Status{}, err
	}
	return item.Status()
}

// SetAutostart has it started, or no longer. It is on record before it is done; what
// cannot be done is refused before that.
func (h *Host) SetAutostart(ctx context.Context, on bool, by approvals.By) error {
	item, err := h.loginItem()
	if err != nil {
		return err
	}
	act, err := item.Prepare(on)
	if err != nil || act == nil {
		return err
	}
	word := map[bool]string{true: "on", false: "off"}[on]
	if _, err := h.Audit.Append(ctx, audit.Record{Action: audit.Setting, Result: audit.OK, Actor: by.User, Via: by.Via, Target: "autostart " + word}); err != nil {
		return err
	}
	return act()
}

// loginItem is this program, for this installation.
func (h *Host) loginItem() (loginitem.Item, error) {
	program := h.config.Program
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return loginitem.Item{}, fmt.Errorf("cannot find this program: %w", err)
		}
	}
	item := loginitem.Item{Program: program, Args: []string{"serve"}, Home: h.home, Temps: h.config.Temps}
	item.ConfigHome, _ = env.ParentOf(runtime.GOOS, h.config.Environ).Lookup("XDG_CONFIG_HOME")
	if root, ok := h.Places.root(); ok {
		item.Args = append(item.Args, "--home", root)
	}
	return item, nil
}

// root is the folder that everything is below, for an installation that is not the
// system's own.
func (p Places) root() (string, bool) {
	dir := filepath.Dir(p.Data)
	return dir, p == PlacesIn(dir)
}
