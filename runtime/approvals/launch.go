package approvals

import (
	"context"
	"path/filepath"
	"strings"

	"sallyport/internal/coded"
	"sallyport/runtime/artifact"
	"sallyport/runtime/env"
	"sallyport/runtime/plugins"
)

// launch turns what was resolved, and found equal to what was approved, into what
// is started: with the verified snapshot in place of the source folder
// (spec/approval.md 5.2).
func (g *Gate) launch(ctx context.Context, r Resolved) (Launch, error) {
	dir := ""
	if digest := r.Digest(); digest != "" {
		snapshot, err := g.snapshot(ctx, r.Connector.Root, digest)
		if err != nil {
			return Launch{}, err
		}
		dir = snapshot.Dir
	}
	return g.launchFrom(r, dir)
}

// snapshot returns the approved copy, digested in full right now. One that is gone
// or damaged is rebuilt from a source that gives the approved digest.
func (g *Gate) snapshot(ctx context.Context, source string, digest artifact.Digest) (artifact.Snapshot, error) {
	snapshot, err := g.cfg.Snapshots.Verify(ctx, digest)
	switch coded.Of(err) {
	case artifact.CodeSnapshotDamaged, artifact.CodeSnapshotMissing:
		g.log.Warn("the approved copy is rebuilt", "digest", digest.Short(), "reason", coded.Of(err))
		snapshot, err = g.stage(ctx, source, digest)
	}
	if err != nil {
		return artifact.Snapshot{}, err
	}
	return snapshot, nil
}

func (g *Gate) stage(ctx context.Context, source string, digest artifact.Digest) (artifact.Snapshot, error) {
	g.collecting.RLock()
	defer g.collecting.RUnlock()
	return g.cfg.Snapshots.Stage(ctx, source, digest)
}

// launchFrom builds a launch that speaks of root wherever the connector speaks of
// its folder.
func (g *Gate) launchFrom(r Resolved, root string) (Launch, error) {
	c, data := r.Connector, g.resolver.data(r.Connector)
	plan, err := g.resolver.plan(c, root, r.Path)
	if err != nil {
		return Launch{}, err
	}
	l := Launch{
		ID: c.ID, Version: c.Version, Transport: c.Transport, Env: plan, Data: data,
		Options: c.Options, Digest: r.Digest(), Root: root,
		Permissions: r.Fields.Permitted.Set(),
	}
	words := g.resolver.words(c, root, data)
	if l.Headers, err = sent(words, c.Launch.Headers); err != nil {
		return Launch{}, err
	}
	if l.URL, err = words.One("address", c.Launch.URL); err != nil {
		return Launch{}, err
	}
	if c.Transport != plugins.Stdio {
		return l, nil
	}
	if l.Args, err = g.resolver.arguments(c, root); err != nil {
		return Launch{}, err
	}
	if l.Dir, err = dirOf(c, root, data, words); err != nil {
		return Launch{}, err
	}
	l.Executable = moved(r.Executable, c.Root, root)
	l.Path = l.Executable.Found
	if _, inside := below(c.Root, r.Executable.Found); l.Executable.InBundle && !inside {
		// A link from elsewhere into the source folder would run the bytes there.
		l.Path = l.Executable.Real
	}
	return l, nil
}

// sent leaves out the headers whose optional setting has no value.
func sent(words env.Words, headers []plugins.Value) ([]plugins.Value, error) {
	var kept []plugins.Value
	for _, h := range headers {
		_, ok, err := words.Value(declaredOf(h))
		if err != nil {
			return nil, err
		}
		if ok {
			kept = append(kept, h)
		}
	}
	return kept, nil
}

// dirOf is the working directory: relative to the bundle, by default its root; and
// the private data folder for a connector without a bundle.
func dirOf(c plugins.Connector, root, data string, words env.Words) (string, error) {
	dir, err := words.One("working directory", c.Launch.Cwd)
	base := root
	if base == "" {
		base = data
	}
	switch {
	case err != nil:
		return "", err
	case dir == "":
		return base, nil
	case filepath.IsAbs(dir):
		if leaves(root, dir) || leaves(data, dir) {
			return "", errCwdOutside()
		}
		return dir, nil
	case c.Root != "" && !filepath.IsLocal(filepath.FromSlash(dir)):
		return "", errCwdOutside()
	}
	return filepath.Join(base, filepath.FromSlash(dir)), nil
}

// leaves reports whether path begins in folder by its words and ends outside.
func leaves(folder, path string) bool {
	if folder == "" || !strings.HasPrefix(path, folder) || filepath.Clean(path) == filepath.Clean(folder) {
		return false
	}
	_, inside := below(folder, path)
	return !inside
}

func errCwdOutside() error {
	return &coded.Error{Code: "cwd-outside", Sentence: "the working directory leads out of the plugin's folder",
		Next: "correct the plugin's files, or remove the plugin"}
}

// moved returns x with every path in the bundle's source folder replaced by the
// same path in the snapshot.
func moved(x env.Executable, from, to string) env.Executable {
	move := func(path string) string {
		if rel, inside := below(from, path); inside && to != "" {
			return filepath.Join(to, filepath.FromSlash(rel))
		}
		return path
	}
	x.Found, x.Real = move(x.Found), move(x.Real)
	if x.Interpreters != nil {
		chain := make([]env.Executable, len(x.Interpreters))
		for i, inner := range x.Interpreters {
			chain[i] = moved(inner, from, to)
		}
		x.Interpreters = chain
	}
	return x
}
