package loginitem

import "path/filepath"

// system: macOS reads ~/Library/LaunchAgents when its user logs in.
func (i Item) system() (place, form, error) {
	if err := i.checkHome(); err != nil {
		return nil, form{}, err
	}
	return file{"LaunchAgent", filepath.Join(i.Home, "Library", "LaunchAgents", Name+".plist")}, launchAgent, nil
}

// unit: macOS has no systemd.
func (i Item) unit() string { return "" }
