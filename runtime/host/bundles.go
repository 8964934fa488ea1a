package host

import (
	"context"
	"errors"
	"fmt"
	"os"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/artifact"
)

// AskUninstall asks whether an installed plugin may be removed, and with purge what
// it has stored as well. A folder that somebody put there by hand is theirs to
// remove.
func (h *Host) AskUninstall(ctx context.Context, plugin string, purge bool, by approvals.By) (approvals.Decision, error) {
	installed, err := h.Installer.Info(plugin)
	if err != nil {
		return approvals.Decision{}, h.notOurs(ctx, plugin, err)
	}
	q := approvals.BundleQuestion{
		Plugin: plugin, Version: installed.Version, Digest: string(installed.Digest), Source: installed.Origin.Text,
		Publisher: installed.Publisher, Purge: purge, Servers: h.serversOf(ctx, plugin),
	}
	return h.Gate.AskBundle(ctx, approvals.ActUninstall, q, by)
}

// AskUndo asks whether the version before may take the place of the one that is
// installed.
func (h *Host) AskUndo(ctx context.Context, plugin string, by approvals.By) (approvals.Decision, error) {
	installed, err := h.Installer.Info(plugin)
	if err != nil {
		return approvals.Decision{}, h.notOurs(ctx, plugin, err)
	}
	if installed.Previous == nil {
		return approvals.Decision{}, &coded.Error{Code: "no-previous", Sentence: "no version before this one is kept", Next: "install the version that you want: sallyport install SOURCE"}
	}
	before, err := h.Installer.PreviousDigest(ctx, plugin)
	if err != nil {
		return approvals.Decision{}, err
	}
	q := approvals.BundleQuestion{
		Plugin: plugin, Version: installed.Previous.Version, Digest: string(before), Source: installed.Previous.Origin.Text,
		Publisher: installed.Previous.Publisher, Replaces: versionOf(installed.Info), Servers: h.serversOf(ctx, plugin),
	}
	return h.Gate.AskBundle(ctx, approvals.ActUndo, q, by)
}

// notOurs says of a plugin that is there, but not by Sallyport's doing, what to do.
func (h *Host) notOurs(ctx context.Context, plugin string, err error) error {
	found, scanErr := h.Listing(ctx)
	if coded.Of(err) != "not-installed" || scanErr != nil {
		return err
	}
	p, ok := found.Plugin(plugin)
	if !ok {
		return &coded.Error{Code: "plugin-unknown", Sentence: "there is no plugin of that name", Next: "see what there is: sallyport plugins list"}
	}
	return &coded.Error{Code: "not-installed", Sentence: fmt.Sprintf("the plugin lies in %s, where Sallyport did not put it", p.Source),
		Next: "change or remove its folder yourself; to end its approvals: sallyport revoke " + plugin}
}

func (h *Host) serversOf(ctx context.Context, plugin string) (servers []string) {
	found, err := h.Listing(ctx)
	if err != nil {
		return nil
	}
	if p, ok := found.Plugin(plugin); ok {
		for _, c := range p.Connectors {
			servers = append(servers, c.ID.Server)
		}
	}
	return servers
}

// apply does what a decision about a bundle allows, and records what came of it.
func (h *Host) apply(allowed approvals.Decision) (approvals.Decision, error) {
	ctx := context.WithoutCancel(h.ctx)
	err := h.act(ctx, allowed)
	done, recordErr := h.Gate.BundleDone(ctx, allowed.ID, err)
	if h.Rescan(ctx) == nil {
		h.recheckRunning(ctx, allowed.Plugin)
	}
	h.Events.add("plugins", allowed.Plugin, "")
	return done, errors.Join(err, recordErr)
}

func (h *Host) act(ctx context.Context, d approvals.Decision) error {
	if err := h.stillReplaces(d); err != nil {
		return err
	}
	switch d.Action {
	case approvals.ActUninstall:
		return h.uninstall(ctx, d)
	case approvals.ActUndo:
		now, err := h.Installer.PreviousDigest(ctx, d.Plugin)
		if err == nil && string(now) != d.Bundle.Digest {
			err = errChangedSinceAsked()
		}
		if err != nil {
			return err
		}
		_, err = h.Installer.Undo(ctx, d.Plugin)
		return err
	}
	staged, err := h.Installer.Staged(ctx, d.Bundle.Staged)
	if err != nil {
		return err
	}
	if string(staged.Digest) != d.Bundle.Digest || staged.Plugin.Name != d.Plugin || staged.Plugin.Version != d.Bundle.Version {
		return errChangedSinceAsked()
	}
	// First, so that a configuration that cannot be edited leaves everything as it was.
	if err := h.carryOver(ctx, d); err != nil {
		return err
	}
	_, err = h.Installer.Activate(ctx, staged)
	return err
}

// stillReplaces refuses where another bundle lies there by now than the question
// spoke of.
func (h *Host) stillReplaces(d approvals.Decision) error {
	installed, err := h.Installer.Info(d.Plugin)
	was := d.Bundle.Replaces
	if d.Action == approvals.ActUninstall {
		was = &approvals.BundleVersion{Digest: d.Bundle.Digest}
	}
	switch {
	case coded.Of(err) == "not-installed" && was == nil:
		return nil
	case err != nil && coded.Of(err) != "not-installed":
		return err
	case err != nil || was == nil || string(installed.Digest) != was.Digest:
		return errChangedSinceAsked()
	}
	return nil
}

func errChangedSinceAsked() error {
	return &coded.Error{Code: artifact.CodeChangedSinceAsked, Sentence: "it is no longer what the question showed", Next: "ask for it again"}
}

// uninstall stops what runs and removes the files. Approvals ended with the allow.
func (h *Host) uninstall(ctx context.Context, d approvals.Decision) error {
	for id := range h.RunningIDs() {
		if id.Plugin != d.Plugin {
			continue
		}
		if err := h.Pool.Stop(ctx, id, coded.New("uninstalled", "the plugin was removed")); err != nil {
			return err
		}
	}
	h.Consoles.StopWhere(ctx, func(g approvals.Grant) bool { return g.ID().Plugin == d.Plugin }, coded.New("uninstalled", "the plugin was removed"))
	if err := h.Installer.Remove(ctx, d.Plugin); err != nil {
		return err
	}
	if !d.Bundle.Purge {
		return nil
	}
	if err := os.RemoveAll(h.Places.PluginData(d.Plugin)); err != nil {
		return &coded.Error{Code: "data-not-removed", Sentence: "the plugin was removed, but not everything that it had stored", Next: "remove its folder in plugin-data yourself", Err: err}
	}
	return nil
}
