package plugins

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// format is one way in which a plugin says what it is: a row of the table below, and
// one file that reads it.
type format struct {
	name     string // a Format
	title    string // in sentences
	manifest string // its path in the plugin
	// claims says whether a JSON text in that place is a manifest of this format at
	// all; nil: whatever lies there is. A file that cannot be read, or is no JSON, is
	// claimed too: what it would have said is not guessed.
	claims func(root *node) bool
	// read fills the plugin from the manifest's bytes, or rejects it.
	read func(b *bundle, p *Plugin, data []byte)
}

// formats are all that are read. Of two manifests in one folder the earlier row wins
// (docs/formats.md).
func formats() []format {
	return []format{
		{AgentPlugins, "Agent Plugins", manifestFile, hasSchema, (*bundle).readAgentPlugin},
		{ClaudeCode, "Claude Code", claudeManifest, nil, (*bundle).readClaude},
		{Codex, "Codex", codexManifest, nil, (*bundle).readCodex},
		{MCPB, "MCP bundle", mcpbFile, isMCPB, (*bundle).readMCPB},
	}
}

func titleOf(name string) string {
	for _, f := range formats() {
		if f.name == name {
			return f.title
		}
	}
	return name
}

func hasSchema(root *node) bool { return root.kind == '{' && root.get("$schema") != nil }

// foundManifest is a manifest that is there.
type foundManifest struct {
	format
	data []byte
	err  error
}

// manifests returns those that are there and claimed, in the order of the table. A
// plugin.json that is alone is taken for one whatever it says: it is better rejected by
// name than not seen.
func (b *bundle) manifests(table []format) (list []foundManifest) {
	for _, f := range table {
		data, err := b.read(f.manifest, maxManifest)
		if err == nil && !b.hasExactly(path.Dir(f.manifest), path.Base(f.manifest)) {
			err = errKind
		}
		if !isMissing(err) {
			list = append(list, foundManifest{f, data, err})
		}
	}
	if len(list) == 1 && list[0].name == AgentPlugins {
		return list
	}
	mine := slices.DeleteFunc(slices.Clone(list), func(m foundManifest) bool {
		return m.err == nil && m.claims != nil && !claimed(m.format, m.data)
	})
	if len(mine) == 0 && len(list) > 0 && list[0].name == AgentPlugins {
		return list[:1]
	}
	return mine
}

func claimed(f format, data []byte) bool {
	doc, err := parseDocument(data)
	if err != nil {
		// manifest.json is the name of many things: no JSON is one of ours if it says so.
		return f.name == AgentPlugins || bytes.Contains(data, []byte(`"manifest_version"`)) || bytes.Contains(data, []byte(`"dxt_version"`))
	}
	return f.claims(doc.root)
}

// isPlugin reports whether a directory holds a manifest of any format.
func isPlugin(dir string) bool {
	b, err := openBundle(dir)
	if err != nil {
		return false
	}
	defer b.close()
	return len(b.manifests(formats())) > 0
}

// Other is a manifest of another format that lies beside the one that is used.
type Other struct {
	Format, Path  string
	Name, Version string
	Servers       []string
	Invalid       bool
}

// readOthers says of every further manifest what it declares, so that nobody takes
// what is shown for what another application would run.
func (b *bundle) readOthers(p *Plugin, others []foundManifest) {
	for _, found := range others {
		q := &Plugin{Name: p.Name, Format: found.name, Root: p.Root, Source: p.Source}
		if found.err != nil {
			q.reject(manifestProblem(found.manifest, found.err))
		} else {
			found.read(b, q, found.data)
		}
		other := Other{Format: found.name, Path: found.manifest, Name: q.Name, Version: q.Version, Invalid: q.Invalid != nil}
		for _, c := range q.Connectors {
			other.Servers = append(other.Servers, c.ID.Server)
		}
		p.Others = append(p.Others, other)
		p.named = append(p.named, q.named...)
		p.Problems = append(p.Problems, Problem{Code: "manifest-second", Path: found.manifest, Sentence: other.sentence(found.title, p)})
	}
}

func (o Other) sentence(title string, p *Plugin) string {
	what := fmt.Sprintf("the folder also has a manifest for %s, ", title)
	switch {
	case o.Invalid:
		what += "which cannot be used"
	case len(o.Servers) == 0:
		what += "which declares no server"
	default:
		const most = 8
		names := make([]string, 0, most)
		for _, name := range o.Servers[:min(most, len(o.Servers))] {
			names = append(names, show(name))
		}
		if len(o.Servers) > most {
			names = append(names, fmt.Sprintf("%d more", len(o.Servers)-most))
		}
		what += "which declares " + strings.Join(names, ", ")
	}
	return what + "; the one that is used is " + cmp.Or(p.Manifest, "another")
}
