package plugins

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"sallyport/internal/coded"
	"sallyport/runtime/permissions"
)

// mcpbFile is the manifest of an MCP bundle.
const mcpbFile = "manifest.json"

// mcpbServerName is the name of the one server that a bundle has.
const mcpbServerName = "main"

// isMCPB tells an MCP bundle from the many other files of that name.
func isMCPB(root *node) bool { return mcpbVersion(root) != nil }

// mcpbVersion is the field that says which version the manifest follows. Manifests
// from when the format was called DXT have it under another name.
func mcpbVersion(root *node) *node {
	for _, name := range []string{"manifest_version", "dxt_version"} {
		if version := root.get(name); version != nil && version.kind == '"' {
			return version
		}
	}
	return nil
}

// mcpbVersions are those that are understood; they differ in what is optional.
func mcpbVersions() []string { return []string{"0.1", "0.2", "0.3", "0.4"} }

// platformOf is the word of MCP bundles for an operating system.
func platformOf(system string) string {
	if system == "windows" {
		return "win32"
	}
	return system
}

// Declared is what a manifest says about its servers' tools and prompts. Nobody has
// asked the server: what it really offers is told by trying it.
type Declared struct {
	Tools, Prompts []DeclaredItem
	// MoreTools and MorePrompts: the server makes further ones while it runs.
	MoreTools, MorePrompts bool
	// Runtimes are what it needs on the computer: "node >=16".
	Runtimes []string
}

// DeclaredItem is one tool or prompt.
type DeclaredItem struct{ Name, Description string }

// mcpb is a manifest.json that can be used on one platform.
type mcpb struct {
	manifest
	displayName string
	format      string
	launch      Launch
	settings    []Setting
	declared    Declared
	wishes      wishes
	// unwished is why what the package says about itself (_meta) ends its server.
	unwished *Problem
	// platforms are those that it is for; none: all.
	platforms []string
}

// readMCPB reads an MCP bundle that was unpacked.
func (b *bundle) readMCPB(p *Plugin, data []byte) {
	platform := platformOf(runtime.GOOS)
	m, problems, wrong := parseMCPB(data, platform, b.contains)
	p.Problems = problems
	if m.format != "" {
		p.Format = m.format
	}
	if wrong != nil {
		p.reject(*wrong)
		return
	}
	p.describe(&m.manifest)
	p.DisplayName, p.Declared = m.displayName, m.declared
	c := Connector{
		ID: ID{Plugin: p.Name, Server: mcpbServerName}, Title: p.Description, Version: p.Version, Format: p.Format,
		Source: p.Source, Root: p.Root, Transport: Stdio, Launch: m.launch, Requested: m.wishes.permissions, Settings: m.settings,
	}
	own := m.wishes.servers[mcpbServerName]
	c.Launch.Inherit, c.Options = own.inherit, own.options
	if m.unwished != nil {
		c.Invalid = m.unwished.refusal()
		c.Invalid.Next = "correct the plugin's files, or remove the plugin"
	} else if len(m.platforms) > 0 && !slices.Contains(m.platforms, platform) {
		c.Invalid = &coded.Error{Code: "platform-unsupported", Path: mcpbFile,
			Sentence: fmt.Sprintf("it is made for %s, and this computer is %s", strings.Join(m.platforms, ", "), platform),
			Next:     "look for a bundle that is made for this system"}
	}
	p.Connectors = []Connector{c}
}

// parseMCPB reads a manifest as it is on a platform: what that overrides is already
// in place, so that what is shown, digested and approved is what runs. A bundle has
// one server, so whatever is wrong with that is wrong with the plugin.
//
// Fields that nobody knows are listed and ignored, as are those for display that are
// not of their kind.
func parseMCPB(data []byte, platform string, contained containment) (m mcpb, problems []Problem, wrong *Problem) {
	r := &report{path: mcpbFile}
	if !r.parse(data, "manifest-syntax") {
		return m, nil, &r.problems[0]
	}
	root := r.doc.root
	reject := func(f *fault) (mcpb, []Problem, *Problem) {
		where := r.doc.place(f.at)
		return m, r.problems, &Problem{Code: f.code, Path: mcpbFile, Line: where.line, Column: where.column, Sentence: f.sentence}
	}
	if root.kind != '{' {
		return reject(&fault{root.from, "manifest-invalid", "the manifest is " + root.kindName() + ", not an object"})
	}
	if f := m.readVersion(root); f != nil {
		return reject(f)
	}
	if f := mcpbRepeated(root); f != nil {
		return reject(f)
	}
	m.doc = r.doc
	if f := m.describe(r, root); f != nil {
		return reject(f)
	}
	for _, section := range []func(*report, *node) *fault{
		m.readSettings, m.readCompatibility, m.readDeclared, m.readWishes,
		func(r *report, root *node) *fault { return m.readServer(r, root, platform, contained) },
	} {
		if f := section(r, root); f != nil {
			return reject(f)
		}
	}
	return m, sortedProblems(r.problems), nil
}

func (m *mcpb) readVersion(root *node) *fault {
	version := mcpbVersion(root)
	if version == nil {
		return &fault{root.from, "manifest-version-unsupported", "the required field manifest_version is missing"}
	}
	if !slices.Contains(mcpbVersions(), version.text) {
		return &fault{version.from, "manifest-version-unsupported", fmt.Sprintf("version %s of MCP bundles is not supported, only %s",
			show(version.text), strings.Join(mcpbVersions(), ", "))}
	}
	m.format = MCPB + "-" + version.text
	return nil
}

// mcpbRepeated refuses a name that stands twice where it could mean another launch.
func mcpbRepeated(root *node) *fault {
	twice := root.repeatedHere()
	for _, name := range []string{"server", "user_config", "compatibility"} {
		if part := root.get(name); part != nil && twice == nil {
			twice = part.repeated()
		}
	}
	if twice == nil {
		return nil
	}
	return &fault{twice.at, "duplicate-key", fmt.Sprintf("the field %s stands twice", show(twice.name))}
}

// mcpbFields are those of all versions. true: read here or by a section.
func mcpbFields() map[string]bool {
	fields := map[string]bool{}
	for _, name := range []string{
		"$schema", "manifest_version", "dxt_version", "name", "display_name", "version", "description", "long_description", "author",
		"repository", "homepage", "documentation", "support", "icon", "icons", "screenshots", "localization", "server", "tools",
		"tools_generated", "prompts", "prompts_generated", "keywords", "license", "privacy_policies", "compatibility", "user_config", "_meta",
	} {
		fields[name] = true
	}
	return fields
}

// describe reads what a person sees. Only the name and the version count for more.
func (m *mcpb) describe(r *report, root *node) *fault {
	known := mcpbFields()
	for _, field := range root.members {
		if !known[field.name] {
			r.add(field.at, "unknown-field", fmt.Sprintf("the field %s is unknown and ignored", show(field.name)))
		}
	}
	name := root.get("name")
	if name == nil || name.kind != '"' || strings.TrimSpace(name.text) == "" {
		return &fault{root.from, "name-invalid", "the required field name is missing, empty or no string"}
	}
	if m.name = mcpbName(name.text); m.name != name.text {
		r.add(name.from, "name-adapted", fmt.Sprintf("the name %s is written %s here", show(name.text), m.name))
	}
	if version := root.get("version"); version != nil && version.kind != '"' {
		return &fault{version.from, "field-invalid", "version is " + version.kindName() + ", not a string"}
	}
	for _, field := range []struct {
		name string
		to   *string
	}{
		{"version", &m.version}, {"description", &m.description}, {"display_name", &m.displayName},
		{"homepage", &m.homepage}, {"license", &m.license},
	} {
		*field.to = r.lenient(root, field.name)
	}
	if m.displayName == "" && name.text != m.name {
		m.displayName = name.text
	}
	// The format says that the author is an object; and the repository too, but many
	// write what package.json allows.
	if author := root.get("author"); author != nil && author.kind == '{' {
		m.author = Author{Name: r.lenient(author, "name"), Email: r.lenient(author, "email"), URL: r.lenient(author, "url")}
	} else {
		m.author.Name = r.lenient(root, "author")
	}
	if repository := root.get("repository"); repository != nil && repository.kind == '{' {
		m.repository = r.lenient(repository, "url")
	} else {
		m.repository = r.lenient(root, "repository")
	}
	if list := root.get("keywords"); list != nil {
		var ok bool
		if m.keywords, ok = list.strings(); !ok {
			r.add(list.from, "field-ignored", "keywords is not a list of strings, and is ignored")
		}
	}
	return nil
}

// lenient reads a text that is only for display: one of another kind is ignored.
func (r *report) lenient(object *node, name string) string {
	n := object.get(name)
	if n == nil {
		return ""
	}
	if n.kind != '"' {
		r.add(n.from, "field-ignored", name+" is "+n.kindName()+", and is ignored")
		return ""
	}
	return n.text
}

// mcpbName makes an id of a name, which in this format may be any text. Capitals,
// spaces and the like are a matter of writing; where more than that is lost, a part
// of a hash keeps two names apart.
func mcpbName(text string) string {
	name := idName(text)
	lost := strings.ContainsFunc(strings.ToLower(strings.TrimSpace(text)), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune(" -_./@", r)
	})
	const most, ofHash = 64, 8
	if !lost && name != "" && len(text) <= most {
		return name
	}
	sum := sha256.Sum256([]byte(text))
	name = strings.TrimRight(name[:min(len(name), most-ofHash-1)], "-.")
	return strings.TrimPrefix(name+"-"+hex.EncodeToString(sum[:])[:ofHash], "-")
}

// readWishes reads what a package says to Sallyport: the same as under extensions in
// Agent Plugins (spec/agent-plugins.md 12), which this format has _meta for.
func (m *mcpb) readWishes(r *report, root *node) *fault {
	m.wishes = wishes{permissions: permissions.Undeclared()}
	meta := root.get("_meta")
	if meta == nil || meta.kind != '{' {
		return nil
	}
	for _, entry := range meta.members {
		if entry.name == namespace {
			m.ours = append(m.ours, entry.value)
		}
	}
	var f *fault
	if len(m.ours) > 0 && m.ours[0].kind != '{' {
		f = extensionFault(m.ours[0].from, "it is "+m.ours[0].kindName()+", not an object")
	} else {
		m.wishes, f = readWishes(&m.manifest)
	}
	if f == nil {
		f = m.wishes.servers[mcpbServerName].fault
	}
	for name := range m.wishes.servers {
		if name != mcpbServerName {
			r.add(m.ours[0].from, "unknown-server", fmt.Sprintf("_meta names a server %s; the server of an MCP bundle is %s", show(name), mcpbServerName))
		}
	}
	if f != nil {
		problem := r.add(f.at, f.code, strings.Replace(f.sentence, "extensions[", "_meta[", 1))
		m.unwished = &problem
	}
	return nil
}

// maxDeclared is how many tools or prompts are kept.
const maxDeclared = 1000

func (m *mcpb) readDeclared(r *report, root *node) *fault {
	m.declared.Tools, m.declared.MoreTools = r.declaredItems(root, "tools"), r.declaredMore(root, "tools_generated")
	m.declared.Prompts, m.declared.MorePrompts = r.declaredItems(root, "prompts"), r.declaredMore(root, "prompts_generated")
	return nil
}

func (r *report) declaredItems(root *node, name string) []DeclaredItem {
	list := root.get(name)
	if list == nil {
		return nil
	}
	var items []DeclaredItem
	for i, item := range list.items {
		if i == maxDeclared {
			r.add(item.from, "field-ignored", fmt.Sprintf("%s has more than %d entries, and the others are ignored", name, maxDeclared))
			break
		}
		if text := item.get("name"); text != nil && text.kind == '"' {
			one := DeclaredItem{Name: text.text}
			if d := item.get("description"); d != nil && d.kind == '"' {
				one.Description = d.text
			}
			items = append(items, one)
			continue
		}
		r.add(item.from, "field-ignored", "an entry of "+name+" has no name, and is ignored")
	}
	if list.kind != '[' {
		r.add(list.from, "field-ignored", name+" is "+list.kindName()+", and is ignored")
	}
	return items
}

func (r *report) declaredMore(root *node, name string) bool {
	n := root.get(name)
	return n != nil && n.kind == 't'
}

// readCompatibility reads the platforms, which decide, and the runtimes, which are
// shown: which version a program has is told by running it. What it says of other
// clients is not for us.
func (m *mcpb) readCompatibility(r *report, root *node) *fault {
	n := root.get("compatibility")
	if n == nil {
		return nil
	}
	if n.kind != '{' {
		return &fault{n.from, "compatibility-invalid", "compatibility is " + n.kindName() + ", not an object"}
	}
	if platforms := n.get("platforms"); platforms != nil {
		list, ok := platforms.strings()
		if !ok {
			return &fault{platforms.from, "compatibility-invalid", "compatibility.platforms is not a list of strings"}
		}
		for _, platform := range list {
			m.platforms = append(m.platforms, strings.Trim(show(platform), `"`))
		}
	}
	if runtimes := n.get("runtimes"); runtimes != nil {
		for _, field := range runtimes.members {
			m.declared.Runtimes = append(m.declared.Runtimes, field.name+" "+r.lenient(runtimes, field.name))
		}
	}
	return nil
}
