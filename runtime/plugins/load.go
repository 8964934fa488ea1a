package plugins

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"sallyport/internal/coded"
	"sallyport/internal/filestamp"
	"sallyport/runtime/permissions"
)

// load reads the bundle in dir. It always returns a plugin: one that cannot be
// used has Invalid set, no connectors and no skills. touched says which entries
// the answer depends on.
func load(dir, source string) (p *Plugin, touched map[string]filestamp.Stamp) {
	p = &Plugin{Name: filepath.Base(dir), Source: source}
	b, err := openBundle(dir)
	if err != nil {
		p.reject(Problem{Code: "plugin-unreadable", Sentence: "the plugin's folder " + reason(err)})
		return p, nil
	}
	defer b.close()
	p.Root = b.dir
	b.load(p, formats())
	return p, b.touched
}

// load reads the first manifest of the table of formats, and says what others lie
// beside it.
func (b *bundle) load(p *Plugin, table []format) {
	found := b.manifests(table)
	if len(found) == 0 {
		p.Format = AgentPlugins
		p.reject(manifestProblem(manifestFile, fs.ErrNotExist))
		return
	}
	first := found[0]
	p.Format, p.Manifest = first.name, first.manifest
	if first.err != nil {
		p.reject(manifestProblem(first.manifest, first.err))
	} else {
		first.read(b, p, first.data)
	}
	p.offerSkills()
	b.readOthers(p, found[1:])
}

// offerSkills gives each connector the plugin's skills; a plugin that has nothing
// else gets a connector for them, so that they can be approved.
func (p *Plugin) offerSkills() {
	if p.Invalid != nil || len(p.Skills) == 0 {
		return
	}
	if len(p.Connectors) == 0 {
		p.Connectors = []Connector{{
			ID: ID{Plugin: p.Name, Server: SkillsServer}, Title: p.Description, Version: p.Version, Format: p.Format,
			Source: p.Source, Root: p.Root, Transport: Skills, Requested: permissions.Undeclared(),
		}}
	}
	for i := range p.Connectors {
		p.Connectors[i].Skills = p.Skills
	}
}

// readAgentPlugin reads a plugin of Agent Plugins 1.0.0.
func (b *bundle) readAgentPlugin(p *Plugin, data []byte) {
	m, problems, ok := parseManifest(data)
	p.Problems = problems
	if !ok {
		p.reject()
		return
	}
	p.describe(&m)

	skills, problems := b.readSkills(skillsDir)
	p.Skills = skills
	p.Problems = append(p.Problems, problems...)
	b.loadServers(p, &m)
}

// describe takes over what a manifest says about the plugin itself.
func (p *Plugin) describe(m *manifest) {
	p.Name, p.Version, p.Description, p.Author = m.name, m.version, m.description, m.author
	p.Homepage, p.Repository, p.License, p.Keywords = m.homepage, m.repository, m.license, m.keywords
}

func manifestProblem(path string, err error) Problem {
	p := Problem{Code: "manifest-unreadable", Path: path, Sentence: "the manifest " + reason(err)}
	switch {
	case isMissing(err):
		p.Code = "manifest-missing"
	case errors.Is(err, errOutside):
		p.Code = "path-outside"
	}
	return p
}

// reject marks the plugin as unusable for the first of these problems, or of those
// that it has, that is fatal. Nothing else of it is looked at (Agent Plugins 1.0.0
// §5.2).
func (p *Plugin) reject(problems ...Problem) {
	p.Problems = append(p.Problems, problems...)
	p.Connectors, p.Skills = nil, nil
	for _, problem := range append(slices.Clone(problems), p.Problems...) {
		if problem.isFatal() {
			p.Invalid = problem.refusal()
			p.Invalid.Next = "correct the plugin's files, or remove the plugin"
			return
		}
	}
}

func (b *bundle) loadServers(p *Plugin, m *manifest) {
	w, wishesFault := readWishes(m)
	r := &report{path: manifestFile, doc: m.doc}
	var extension *Problem
	if wishesFault != nil {
		problem := r.add(wishesFault.at, wishesFault.code, wishesFault.sentence)
		extension = &problem
	}
	data, err := b.read(serversFile, maxServersFile)
	if err == nil && !b.hasExactly(".", serversFile) {
		return
	}
	if err != nil {
		p.Problems = append(p.Problems, r.problems...)
		if !isMissing(err) {
			code := "mcp-invalid"
			if errors.Is(err, errOutside) {
				code = "path-outside"
			}
			p.Problems = append(p.Problems, Problem{Code: code, Path: serversFile, Sentence: "the MCP configuration " + reason(err)})
		}
		return
	}
	servers, problems, ok := parseServers(data, b.contains)
	p.Problems = append(p.Problems, problems...)
	if ok {
		for _, s := range servers {
			p.Connectors = append(p.Connectors, p.connector(s, w, extension, r))
			delete(w.servers, s.name)
		}
		for name := range w.servers {
			r.add(m.ours[0].from, "unknown-server", fmt.Sprintf("extensions names a server %s that mcp.json does not have", show(name)))
		}
	}
	p.Problems = append(p.Problems, sortedProblems(r.problems)...)
}

// connector puts an entry and what the package says about it together. A
// problem of the entry comes first, then one of the whole extension.
func (p *Plugin) connector(s server, w wishes, extension *Problem, r *report) Connector {
	c := Connector{
		ID: ID{Plugin: p.Name, Server: s.name}, Title: p.Description, Version: p.Version, Format: p.Format,
		Source: p.Source, Root: p.Root, Transport: s.transport, Launch: s.launch,
		Requested: w.permissions,
	}
	own := w.servers[s.name]
	c.Launch.Inherit, c.Options = own.inherit, own.options
	if len(s.inherit) > 0 {
		// Both lists were checked when they were read.
		c.Launch.Inherit, _ = inheritNames(append(slices.Clone(s.inherit), own.inherit...))
	}
	if len(s.secrets) > 0 {
		c.Requested.Secrets = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(s.secrets), c.Requested.Secrets...))))
	}
	if own.fault != nil {
		problem := r.add(own.fault.at, own.fault.code, fmt.Sprintf("the server %s: %s", show(s.name), own.fault.sentence))
		c.Invalid = problem.refusal()
	}
	switch {
	case s.problem != nil:
		c.Invalid = s.problem.refusal()
	case extension != nil:
		c.Invalid = extension.refusal()
	}
	if c.Invalid != nil {
		c.Invalid.Next = "correct the plugin's files, or remove the plugin"
	}
	return c
}

// Load reads the one plugin in dir, without a catalog, for tests and for what a copy of a
// bundle says itself. The error is for a dir
// that is no directory; everything wrong with the plugin is in the plugin.
func Load(ctx context.Context, dir string) (*Plugin, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p, _ := load(dir, filepath.Base(dir))
	if p.Root == "" {
		return nil, coded.New("plugin-unreadable", "the plugin's folder cannot be opened")
	}
	return p, nil
}
