package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/coded"
	"sallyport/internal/jsonedit"
	"sallyport/internal/onejson"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
)

// Source is a folder that plugins are looked for in.
type Source struct {
	Label string // as people see it
	// Folder is what config.json says, for one that the operator added; "" for others.
	Folder string
}

// LastSource is the place of a folder that is added at the end.
const LastSource = mostFolders

// mostFolders is more than anybody looks through.
const mostFolders = 100

// Sources are the places that plugins are looked for in, in order: of two plugins of one
// name the one in the earlier counts.
func (h *Host) Sources() []Source {
	configuration, _ := h.readConfiguration() // health says what is wrong with it
	folders := h.folders(configuration)
	sources := make([]Source, len(folders))
	for i, folder := range folders {
		sources[i].Label = folder.Label
		// The operator's stand after the first ones and before the bundled one.
		if at := i - (len(folders) - 1 - len(configuration.PluginFolders)); at >= 0 && at < len(configuration.PluginFolders) {
			sources[i].Folder = configuration.PluginFolders[at]
		}
	}
	return sources
}

// AddSource has plugins looked for in one more folder, at a place among those that the
// operator added; beyond them is the end. What lies there is found, and nothing of it runs.
func (h *Host) AddSource(ctx context.Context, folder string, at int, by approvals.By) error {
	return h.editSources(ctx, "plugin-folder-added", by, func(have []string) ([]string, error) {
		if err := h.checkSource(folder); err != nil {
			return nil, err
		}
		if len(have) >= mostFolders {
			return nil, &coded.Error{Code: "folder-refused", Sentence: "there are 100 folders already", Next: "remove one first: sallyport sources remove FOLDER"}
		}
		return slices.Insert(slices.Clone(have), min(max(at, 0), len(have)), folder), nil
	})
}

// RemoveSource has them looked for there no longer: what is approved of there keeps its
// approval and does not run while the folder is not looked at. It returns the place, for
// AddSource to undo it.
func (h *Host) RemoveSource(ctx context.Context, folder string, by approvals.By) (at int, err error) {
	err = h.editSources(ctx, "plugin-folder-removed", by, func(have []string) ([]string, error) {
		if at = slices.Index(have, folder); at < 0 {
			return nil, &coded.Error{Code: "folder-unknown", Sentence: "this folder is not among those that you added", Next: "see which are: sallyport sources list"}
		}
		return slices.Delete(slices.Clone(have), at, at+1), nil
	})
	return at, err
}

func (h *Host) editSources(ctx context.Context, target string, by approvals.By, change func(have []string) ([]string, error)) error {
	h.configuring.Lock()
	defer h.configuring.Unlock()
	config, err := h.configFile().read()
	if err != nil {
		return err
	}
	var c Configuration
	if !config.absent {
		if err := onejson.Decode(config.now, &c); err != nil {
			return err
		}
	}
	folders, err := change(c.PluginFolders)
	if err != nil {
		return err
	}
	if err := config.edit(func(raw []byte) ([]byte, error) { return jsonedit.Set(raw, folders, "pluginFolders") }); err != nil {
		return err
	}
	if _, err := h.Audit.Append(ctx, audit.Record{Action: audit.Setting, Result: audit.OK, Actor: by.User, Via: by.Via, Target: target}); err != nil {
		return err
	}
	if err := config.write(); err != nil {
		return err
	}
	return h.reconfigured(ctx)
}

// checkSource refuses what is no folder, what is looked at already, and what holds other
// things than plugins: the home folder, everything above it, and Sallyport's own.
func (h *Host) checkSource(folder string) error {
	path := h.expand(folder)
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || strings.ContainsRune(folder, 0) {
		return &coded.Error{Code: "folder-invalid", Sentence: "a folder is named from the root or from ~/, without dots in between", Next: "give the whole path of the folder"}
	}
	real, err := filepath.EvalSymlinks(path)
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(real)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &coded.Error{Code: "folder-missing", Sentence: "there is no such folder", Next: "make it first, or check how it is spelled"}
	case err != nil || !info.IsDir():
		return &coded.Error{Code: "folder-invalid", Sentence: "that is no folder that can be read", Next: "name the folder that the plugins lie in", Err: err}
	}
	for _, own := range []string{h.home, h.Places.Data, h.Places.State, h.Places.Config} {
		if own != "" && inside(resolvedPath(own), real) {
			return &coded.Error{Code: "folder-refused", Sentence: "the home folder, what is above it and what Sallyport's own folders are in are not looked through for plugins",
				Next: "put the plugins into a folder of their own and name that"}
		}
	}
	for _, own := range []string{h.Places.Data, h.Places.State, h.Places.Config} {
		if inside(real, resolvedPath(own)) {
			return &coded.Error{Code: "folder-refused", Sentence: "that is inside Sallyport's own folders", Next: "put the plugins into a folder of their own and name that"}
		}
	}
	configuration, err := h.readConfiguration()
	if err != nil {
		return err
	}
	for _, known := range h.folders(configuration) {
		if resolvedPath(known.Path) == real {
			return &coded.Error{Code: "folder-known", Sentence: "plugins are looked for there already", Next: "see where: sallyport sources list"}
		}
	}
	return nil
}

// expand reads ~/ as the home folder.
func (h *Host) expand(folder string) string {
	if rest, ok := strings.CutPrefix(folder, "~/"); ok && h.home != "" {
		return filepath.Join(h.home, rest)
	}
	return folder
}

func resolvedPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// inside reports whether path is folder or lies below it.
func inside(path, folder string) bool {
	rest, err := filepath.Rel(folder, path)
	return err == nil && rest != ".." && !strings.HasPrefix(rest, ".."+string(filepath.Separator))
}
