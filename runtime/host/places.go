package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/adrg/xdg"

	"sallyport/internal/coded"
	"sallyport/internal/owneronly"
	"sallyport/runtime/plugins"
)

// Places are the folders that Sallyport keeps things in. Each is made its owner's
// alone when the host opens.
type Places struct {
	Data   string // database, plugins, snapshots, plugins' own data
	State  string // port, discovery file, tokens, seal key, children, log
	Config string // config.json, connectors.json
}

// PlacesIn puts everything below one folder: for a second installation, for
// trying things out and for tests.
func PlacesIn(dir string) Places {
	return Places{
		Data:   filepath.Join(dir, "data"),
		State:  filepath.Join(dir, "state"),
		Config: filepath.Join(dir, "config"),
	}
}

// PlacesFor are the places below home, below SALLYPORT_HOME where home is empty, or the
// standard ones where both are.
func PlacesFor(home string) Places {
	if home == "" {
		home = os.Getenv("SALLYPORT_HOME")
	}
	if home == "" {
		return StandardPlaces()
	}
	if whole, err := filepath.Abs(home); err == nil {
		home = whole // children have other folders to start in
	}
	return PlacesIn(home)
}

// StandardPlaces are the system's own folders for this user (XDG on Linux,
// Library on macOS, AppData on Windows).
func StandardPlaces() Places {
	xdg.Reload()
	return Places{
		Data:   filepath.Join(xdg.DataHome, "sallyport"),
		State:  filepath.Join(xdg.StateHome, "sallyport"),
		Config: filepath.Join(xdg.ConfigHome, "sallyport"),
	}
}

// Database is the file of decisions, approvals, clients and the audit.
func (p Places) Database() string { return filepath.Join(p.Data, "sallyport.db") }

// Plugins is the data folder's own plugin folder.
func (p Places) Plugins() string { return filepath.Join(p.Data, "plugins") }

// Bundled is where the plugins inside the program are unpacked.
func (p Places) Bundled() string { return filepath.Join(p.Data, "bundled") }

// Snapshots is the content-addressed store of approved trees.
func (p Places) Snapshots() string { return filepath.Join(p.Data, "snapshots") }

// Staging holds bundles that wait for an answer.
func (p Places) Staging() string { return filepath.Join(p.Data, "staging") }

// Previous holds the version before of each installed plugin, for undo.
func (p Places) Previous() string { return filepath.Join(p.Data, "previous") }

// InstallInfo says where each installed plugin came from.
func (p Places) InstallInfo() string { return filepath.Join(p.Data, "installed") }

// PluginData is PLUGIN_DATA of one plugin, or of one connector without a plugin
// (plugins.Connector.DataName): its own, and kept across updates.
func (p Places) PluginData(name string) string {
	return filepath.Join(p.Data, "plugin-data", filepath.FromSlash(name))
}

// StatCache speeds up lists and scans; it may be deleted at any time.
func (p Places) StatCache() string { return filepath.Join(p.State, "stat-cache") }

// SecretsFile is the encrypted file of secrets, for an operator who chose one.
func (p Places) SecretsFile() string { return filepath.Join(p.Data, "secrets.age") }

// Backups holds what other programs' files were before Sallyport edited them, and
// what it wrote into which.
func (p Places) Backups() string { return filepath.Join(p.Data, "backups") }

// Keys holds the seal key and the sealed head, apart from the database
// (spec/approval.md 5.4).
func (p Places) Keys() string { return filepath.Join(p.State, "keys") }

// ConfigFile is the operator's configuration.
func (p Places) ConfigFile() string { return filepath.Join(p.Config, "config.json") }

// ConnectorsFile holds the connectors without a bundle.
func (p Places) ConnectorsFile() string { return filepath.Join(p.Config, plugins.HandFile) }

// create makes the folders, or says which of them cannot be used; its path is the
// user's own and stays out of the sentence.
func (p Places) create() error {
	for _, folder := range []struct{ what, path string }{
		{"data", p.Data}, {"state", p.State}, {"configuration", p.Config}, {"plugins", p.Plugins()}, {"keys", p.Keys()},
	} {
		if err := owneronly.Folder(folder.path); err != nil {
			return &coded.Error{Code: "folder-unusable", Err: err,
				Sentence: fmt.Sprintf("the %s folder cannot be made or is not yours", folder.what),
				Next:     "see which folder with: sallyport doctor; or choose another place with --home DIR"}
		}
	}
	return nil
}

// label writes a path for people and for the identity: the home folder as ~.
func label(path, home string) string {
	if home == "" {
		return path
	}
	if rest, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok {
		return "~/" + filepath.ToSlash(rest)
	}
	return path
}
