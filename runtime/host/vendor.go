package host

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/coded"
	"sallyport/internal/jsonedit"
	"sallyport/runtime/approvals"
	"sallyport/runtime/env"
	"sallyport/runtime/install"
	"sallyport/runtime/launchers"
	"sallyport/runtime/plugins"
)

// Vendor begins to make an installed plugin of a connector whose command line fetches
// an npm package at every start: the package and what it needs become a bundle with a
// digest. A version that floats is the one that npm means now, or version. The
// operator's references (secrets, variables) go to the new plugin's entry in
// config.json; the connector stays as it is.
func (h *Host) Vendor(ctx context.Context, id plugins.ID, version string, by approvals.By) (Installation, error) {
	c, ok := h.connectorNow(id)
	if !ok {
		return Installation{}, &coded.Error{Code: "plugin-unknown", Sentence: "there is no connector of that name", Next: "see what there is: sallyport plugins list"}
	}
	fetch, err := vendored(c)
	if err == nil {
		err = nothingWritten(c)
	}
	if err != nil {
		return Installation{}, err
	}
	wanted := fetch.Version
	if version != "" {
		wanted = version
	}
	vendor := install.Vendor{Name: fetch.Package, Bin: fetch.Bin, Args: fetch.Args, Plugin: vendorName(id)}
	var references map[string]string
	vendor.Env, references = splitEnv(c.Launch.Env)
	return h.stage(by, carried{references, c.Launch.Inherit}, func(ctx context.Context, progress func(install.Step)) (*install.Staged, error) {
		progress(install.Step{Doing: "resolving"})
		var err error
		if vendor.Version, err = h.Installer.ExactVersion(ctx, vendor.Name, wanted); err != nil {
			return nil, err
		}
		return h.Installer.VendorNPM(ctx, vendor, progress)
	}), nil
}

// vendored finds the one npm package that a command line fetches.
func vendored(c plugins.Connector) (launchers.Fetch, error) {
	fetches := launchers.Recognise(c.Launch.Command, c.Launch.Args)
	switch {
	case c.Transport != plugins.Stdio || len(fetches) == 0:
		return launchers.Fetch{}, &coded.Error{Code: "vendor-not-needed", Sentence: "it downloads no code when it starts, as far as its command line says",
			Next: "approve it as it is: sallyport approve " + env.Quote(c.ID.String())}
	case len(fetches) > 1 || !fetches[0].NPM:
		return launchers.Fetch{}, &coded.Error{Code: "vendor-unsupported", Sentence: fmt.Sprintf("only one package of npm can be made a bundle, and this starts %s", approvals.Visible(fetches[0].String())),
			Next: "install it from its source, or accept that its code may change: sallyport approve " + env.Quote(c.ID.String()) + " --accept-unpinned"}
	}
	return fetches[0], nil
}

// nothingWritten refuses credentials that are written out: the bundle would hold them,
// in files and snapshots that nobody edits afterwards.
func nothingWritten(c plugins.Connector) error {
	texts := env.Texts{Args: c.Launch.Args}
	for _, v := range c.Launch.Env {
		if !v.FromOperator || !refers(v.Value) {
			texts.Env = append(texts.Env, env.NameValue{Name: v.Name, Value: v.Value})
		}
	}
	exempt := env.Exempt{NotSecret: c.Options.NotSecret}
	for _, l := range env.FindLiterals(texts) {
		if !exempt.Covers(l) {
			return l.Refusal(c.ID.String())
		}
	}
	return nil
}

// vendorName is the plugin's name for what was a connector of one's own: the name
// that the operator knows. Of a plugin's server it is made from the package.
func vendorName(id plugins.ID) string {
	if id.Plugin != plugins.ByHand {
		return ""
	}
	name := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, id.Server), "-")
	for strings.Contains(name, "--") {
		name = strings.ReplaceAll(name, "--", "-")
	}
	return strings.TrimRight(name[:min(len(name), 64)], "-")
}

// splitEnv tells what a package may say itself from what only the operator may.
func splitEnv(values []plugins.Value) (literal, references map[string]string) {
	literal, references = map[string]string{}, map[string]string{}
	for _, v := range values {
		if v.FromOperator && refers(v.Value) {
			references[v.Name] = v.Value
		} else {
			literal[v.Name] = v.Value
		}
	}
	return literal, references
}

func refers(value string) bool {
	return strings.HasPrefix(value, "secret:") || strings.HasPrefix(value, "env:") || strings.Contains(value, "${") || strings.HasPrefix(value, "~/")
}

// carried is what goes with a bundle to the operator's configuration of it.
type carried struct {
	env     map[string]string
	inherit []string
}

// carryOver writes it there, once the bundle was allowed. What stands there already
// stays.
func (h *Host) carryOver(ctx context.Context, d approvals.Decision) error {
	references, inherit := d.Bundle.Env, d.Bundle.Inherit
	if len(references) == 0 && len(inherit) == 0 || len(d.Bundle.Servers) == 0 {
		return nil
	}
	id, by := plugins.ID{Plugin: d.Plugin, Server: d.Bundle.Servers[0]}, *d.AnsweredBy
	h.configuring.Lock()
	defer h.configuring.Unlock()
	config, err := h.configFile().read()
	if err != nil {
		return err
	}
	own, err := overlayIn(config, id)
	if err != nil {
		return err
	}
	for name, value := range references {
		if _, there := own.Env[name]; there {
			continue
		}
		if err := h.recordSetting(ctx, id, config.name+" "+name, by); err != nil {
			return err
		}
		if err := config.edit(func(text []byte) ([]byte, error) {
			return jsonedit.Set(text, value, "connectors", id.String(), "env", name)
		}); err != nil {
			return err
		}
	}
	if len(inherit) > 0 && len(own.Inherit) == 0 {
		if err := h.recordSetting(ctx, id, config.name+" inherit", by); err != nil {
			return err
		}
		if err := config.edit(func(text []byte) ([]byte, error) {
			return jsonedit.Set(text, slices.Clone(inherit), "connectors", id.String(), "inherit")
		}); err != nil {
			return err
		}
	}
	if err := config.write(); err != nil {
		return err
	}
	return h.reconfigured(context.WithoutCancel(ctx))
}
