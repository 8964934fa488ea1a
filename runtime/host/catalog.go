package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sallyport/internal/coded"
	"sallyport/internal/onejson"
	"sallyport/runtime/health"
	"sallyport/runtime/plugins"
	"sallyport/runtime/plugins/bundled"
)

// Configuration is config.json: what the operator sets by hand.
type Configuration struct {
	// PluginFolders are looked at after the standard ones; ~/ is the home folder.
	PluginFolders []string `json:"pluginFolders"`
	// Connectors adds to single connectors, by PLUGIN/SERVER: see plugins.Overlay.
	Connectors json.RawMessage `json:"connectors"`
	// Times are how long questions wait and unused servers run.
	Times ConfiguredTimes `json:"times"`
}

// newCatalog reads the configuration once. One that cannot be read is a health
// item: nothing of it is guessed, and a connector that was approved with an
// overlay then differs and does not run.
func (h *Host) newCatalog() *plugins.Catalog {
	now := stampOf(h.Places.ConfigFile())
	h.configStamp.Store(&now)
	configuration, err := h.readConfiguration()
	var overlays map[string]plugins.Overlay
	if err == nil && len(configuration.Connectors) > 0 {
		overlays, err = plugins.ParseOverlays(configuration.Connectors)
	}
	times, wrong := configuration.Times.effective()
	if wrong != nil {
		err = errors.Join(err, wrong)
	} else {
		h.times.Store(&times)
	}
	if err != nil {
		h.log.Error("the configuration cannot be used", "error", err)
		h.Health.Set(health.ConfigInvalid, "", health.Args{"what": err.Error()})
	} else {
		h.Health.Clear(health.ConfigInvalid, "")
	}
	return plugins.New(plugins.Config{
		Folders: h.folders(configuration), Hand: h.Places.ConnectorsFile(), Overlay: overlays, Publisher: h.publisherAt, Logger: h.log,
	})
}

// publisherAt is who signed what Sallyport installed at a folder, and the digest of
// what was signed.
func (h *Host) publisherAt(root string) (publisher, tree string) {
	dir, name := filepath.Split(root)
	if h.Installer == nil || filepath.Clean(dir) != h.pluginsRoot() {
		return "", ""
	}
	installed, err := h.Installer.Info(name)
	if err != nil {
		return "", ""
	}
	return installed.Publisher, string(installed.Digest)
}

// pluginsRoot is the plugins folder as its links resolve, which is how roots are
// written.
func (h *Host) pluginsRoot() string {
	resolved, err := filepath.EvalSymlinks(h.Places.Plugins())
	if err != nil {
		return h.Places.Plugins()
	}
	return resolved
}

func (h *Host) readConfiguration() (Configuration, error) {
	raw, err := os.ReadFile(h.Places.ConfigFile())
	if errors.Is(err, fs.ErrNotExist) {
		return Configuration{}, nil
	}
	if err != nil {
		return Configuration{}, errors.New("config.json cannot be read")
	}
	var c Configuration
	if err := onejson.Decode(raw, &c); err != nil {
		return Configuration{}, fmt.Errorf("config.json: %w", err)
	}
	return c, nil
}

// folders are the places that plugins are looked for in; of two with one name
// the earlier wins.
func (h *Host) folders(c Configuration) []plugins.Folder {
	var all []plugins.Folder
	if h.home != "" {
		all = append(all, plugins.Folder{Path: filepath.Join(h.home, ".agents", "plugins"), Label: "~/.agents/plugins", Kind: plugins.Many})
	}
	all = append(all, plugins.Folder{Path: h.Places.Plugins(), Label: "data/plugins", Kind: plugins.Many})
	for _, folder := range c.PluginFolders {
		path := folder
		if rest, ok := strings.CutPrefix(folder, "~/"); ok && h.home != "" {
			path = filepath.Join(h.home, rest)
		}
		all = append(all, plugins.Folder{Path: path, Label: label(path, h.home)})
	}
	return append(all, plugins.Folder{Path: h.Places.Bundled(), Label: "bundled", Kind: plugins.Many})
}

// PluginFolders are the places that plugins are looked for in, as people see them.
func (h *Host) PluginFolders() []string {
	configuration, _ := h.readConfiguration() // health says what is wrong with it
	labels := []string{}
	for _, folder := range h.folders(configuration) {
		labels = append(labels, folder.Label)
	}
	return labels
}

// fresh is how old a listing may be where a connector is looked up as it is now.
// An older manifest beside newer files never passes the gate: the digest that
// covers both is taken at that moment.
const fresh = 250 * time.Millisecond

// listing is the last scan.
type listing struct {
	unpack sync.Once
	scan   sync.Mutex // one scan at a time

	mu   sync.Mutex
	last *plugins.Listing
	at   time.Time
}

// Rescan looks at all folders now.
func (h *Host) Rescan(ctx context.Context) error {
	_, err := h.scan(ctx, 0)
	return err
}

// Listing returns the plugins on disk as they are now: unchanged ones are not
// read again.
func (h *Host) Listing(ctx context.Context) (*plugins.Listing, error) { return h.scan(ctx, fresh) }

// scan returns a listing that is at most that old.
func (h *Host) scan(ctx context.Context, maxAge time.Duration) (*plugins.Listing, error) {
	h.listing.unpack.Do(func() {
		if err := bundled.Unpack(h.Places.Bundled()); err != nil {
			h.log.Error("the bundled plugins cannot be unpacked", "error", err)
		}
	})
	asked := time.Now()
	h.listing.scan.Lock()
	defer h.listing.scan.Unlock()
	h.listing.mu.Lock()
	last, at := h.listing.last, h.listing.at
	h.listing.mu.Unlock()
	if last != nil && at.After(asked.Add(-maxAge)) {
		return last, nil
	}
	begun := time.Now()
	// A question right after an edit of config.json is about what it says now, and not
	// about what it said before somebody noticed.
	if read := h.configStamp.Load(); read == nil || *read != stampOf(h.Places.ConfigFile()) {
		h.catalog.Store(h.newCatalog())
	}
	found, err := h.catalog.Load().Scan(ctx)
	if err != nil {
		return nil, err
	}
	h.listing.mu.Lock()
	h.listing.last, h.listing.at = found, begun
	h.listing.mu.Unlock()
	h.reportFolders(found)
	return found, nil
}

// connector returns a connector as it is declared on disk now, for the gate.
func (h *Host) connector(id plugins.ID) (plugins.Connector, bool) {
	found, err := h.scan(h.ctx, fresh)
	if err != nil {
		return plugins.Connector{}, false
	}
	return found.Connector(id)
}

func (h *Host) connectorIDs() []plugins.ID {
	found, err := h.Listing(h.ctx)
	if err != nil {
		return nil
	}
	var ids []plugins.ID
	for _, c := range found.Connectors() {
		ids = append(ids, c.ID)
	}
	return ids
}

// Find reads PLUGIN/SERVER, or a name alone: of a plugin that has one server, or of a
// connector in connectors.json.
func (h *Host) Find(ctx context.Context, text string) (plugins.ID, error) {
	if strings.Contains(text, "/") {
		return plugins.ParseID(text)
	}
	found, err := h.Listing(ctx)
	if err != nil {
		return plugins.ID{}, err
	}
	plugin, ok := found.Plugin(text)
	byHand := plugins.ID{Plugin: plugins.ByHand, Server: text}
	if _, written := found.Connector(byHand); written {
		if ok {
			return plugins.ID{}, &coded.Error{Code: "plugin-ambiguous",
				Sentence: fmt.Sprintf("%q is a plugin, and a connector in connectors.json", text),
				Next:     fmt.Sprintf("name the server of the plugin as %s/SERVER, or the connector as %s", text, byHand)}
		}
		return byHand, nil
	}
	switch {
	case !ok:
		return plugins.ID{}, &coded.Error{Code: "plugin-unknown", Sentence: fmt.Sprintf("there is no plugin %q", text),
			Next: "see what there is: sallyport plugins list"}
	case len(plugin.Connectors) != 1:
		return plugins.ID{}, &coded.Error{Code: "plugin-ambiguous",
			Sentence: fmt.Sprintf("%s has %d servers", plugin.Name, len(plugin.Connectors)),
			Next:     "name one as PLUGIN/SERVER; sallyport plugins list shows them"}
	}
	return plugin.Connectors[0].ID, nil
}

// reportFolders keeps health in step with what a scan could not read.
func (h *Host) reportFolders(found *plugins.Listing) {
	h.Health.ClearAll(health.PluginFolderUnreadable)
	for _, p := range found.Problems {
		if p.Code == "folder-unreadable" {
			h.Health.Set(health.PluginFolderUnreadable, p.Path, health.Args{"folder": p.Path, "problem": p.Sentence})
		}
	}
}
