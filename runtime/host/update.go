package host

import (
	"context"
	"path/filepath"
	"strings"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/install"
)

// Update begins to stage the next version of an installed plugin: from source, or
// from where the installed one came from. Of an npm package it takes the version.
func (h *Host) Update(ctx context.Context, plugin, source, version string, by approvals.By) (Installation, error) {
	installed, err := h.Installer.Info(plugin)
	if err != nil {
		return Installation{}, h.notOurs(ctx, plugin, err)
	}
	from, err := h.sourceOfUpdate(installed.Origin, source, version)
	if err != nil {
		return Installation{}, err
	}
	return h.Install(from, by), nil
}

func (h *Host) sourceOfUpdate(origin install.Origin, source, version string) (install.Source, error) {
	switch {
	case source != "":
		return h.Source(source)
	case origin.Kind == install.NPM && version == "":
		return install.Source{}, &coded.Error{Code: "source-version-floating", Sentence: "it came from npm, where each version is another package",
			Next: "name the version: --to VERSION"}
	case origin.Kind == install.NPM:
		name := strings.TrimPrefix(origin.Text, "npm:")
		if at := strings.LastIndexByte(name, '@'); at > 0 {
			name = name[:at]
		}
		return install.ParseSource("npm:"+name+"@"+version, "")
	case version != "":
		return install.Source{}, &coded.Error{Code: "source-unknown", Sentence: "it did not come from npm, so a version does not say where the next one is",
			Next: "name the source instead"}
	case origin.Kind == install.Git:
		return install.Source{}, &coded.Error{Code: "source-commit-floating", Sentence: "it came from one commit, which stays what it is",
			Next: "name the next one: FOLDER#COMMIT"}
	}
	return h.Source(origin.Text)
}

// Source reads where a plugin is to be installed from, as a person writes it who has
// no folder of their own to be in: a relative path would be below the sidecar's, which
// nobody means. "~/" is the home folder.
func (h *Host) Source(text string) (install.Source, error) {
	text = strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(text, "~/"); ok && h.home != "" {
		text = filepath.Join(h.home, filepath.FromSlash(rest))
	}
	return install.ParseSource(text, "")
}
