package loginitem

import (
	"os"
	"path/filepath"
)

// system: Linux reads $XDG_CONFIG_HOME/autostart when a desktop session begins.
func (i Item) system() (place, form, error) {
	if err := i.checkHome(); err != nil {
		return nil, form{}, err
	}
	return file{"XDG autostart", filepath.Join(i.configHome(), "autostart", Name+".desktop")}, desktopEntry, nil
}

func (i Item) configHome() string {
	if filepath.IsAbs(i.ConfigHome) {
		return i.ConfigHome
	}
	return filepath.Join(i.Home, ".config")
}

// unit is the systemd user unit of the packages, if somebody enabled it.
func (i Item) unit() string {
	const unit = "sallyport.service"
	for _, folder := range []string{filepath.Join(i.configHome(), "systemd", "user"), "/etc/systemd/user"} {
		if _, err := os.Lstat(filepath.Join(folder, "default.target.wants", unit)); err == nil {
			return unit
		}
	}
	return ""
}
