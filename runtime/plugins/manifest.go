package plugins

import (
	"fmt"
	"strings"
)

const (
	manifestFile = "plugin.json"
	maxManifest  = 1 << 20
	// pluginSchema is the one version of the manifest that is understood. It is
	// compared, never fetched (Agent Plugins 1.0.0 §5.2).
	pluginSchema = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
	mcpSchema    = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json"
	// namespace is ours under extensions (§8).
	namespace = "app.sallyport"
)

// manifest is a valid plugin.json.
type manifest struct {
	name, version, description    string
	homepage, repository, license string
	author                        Author
	keywords                      []string
	doc                           *document
	// ours are the values under extensions["app.sallyport"]: none, one, or more
	// when the name is repeated.
	ours []*node
}

// maxProblems is how many problems of one file are listed. Finding the place of
// one takes a walk over the file, and nobody reads more.
const maxProblems = 500

// report collects the problems of one file.
type report struct {
	path     string
	doc      *document
	problems []Problem
	fatal    bool // a problem that isFatal is among them
}

// add lists a problem. Past the limit it lists only the first fatal one, so that
// a rejected plugin always says why.
func (r *report) add(at int64, code, sentence string) Problem {
	p := Problem{Code: code, Path: r.path, Sentence: sentence}
	first := p.isFatal() && !r.fatal
	r.fatal = r.fatal || first
	if len(r.problems) == maxProblems && !first {
		r.problems = append(r.problems, Problem{Code: "more-problems", Path: r.path, Sentence: "the file has more problems than are listed"})
	}
	if len(r.problems) > maxProblems && !first {
		return p
	}
	if r.doc != nil {
		where := r.doc.place(at)
		p.Line, p.Column = where.line, where.column
	}
	r.problems = append(r.problems, p)
	return p
}

// parse reads the file's JSON; a text that is none is a problem with that code.
func (r *report) parse(data []byte, code string) bool {
	doc, err := parseDocument(data)
	if err != nil {
		p := Problem{Code: code, Path: r.path, Sentence: "this is not valid JSON"}
		if syntax, ok := err.(*syntaxError); ok {
			p.Line, p.Column, p.Sentence = syntax.place.line, syntax.place.column, syntax.sentence
		}
		r.problems = append(r.problems, p)
		return false
	}
	r.doc = doc
	return true
}

// parseManifest validates a plugin.json. Without ok the plugin is rejected, and
// the last problems say why (§5.2: an unknown top-level field and a non-object
// extensions are the only violations that are not fatal).
func parseManifest(data []byte) (m manifest, problems []Problem, ok bool) {
	r := &report{path: manifestFile}
	if !r.parse(data, "manifest-syntax") {
		return m, r.problems, false
	}
	root := r.doc.root
	if root.kind != '{' {
		r.add(root.from, "manifest-invalid", "the manifest is "+root.kindName()+", not an object")
		return m, r.problems, false
	}
	m.doc = r.doc
	if !r.requiredSchema(root) {
		return m, r.problems, false
	}
	ok = true
	seen := map[string]bool{}
	for _, field := range root.members {
		read, known := manifestField(field.name)
		switch {
		case !known:
			r.add(field.at, "unknown-field", fmt.Sprintf("the field %s is unknown and ignored", show(field.name)))
		case seen[field.name]:
			r.add(field.at, "duplicate-key", fmt.Sprintf("the field %s stands twice", show(field.name)))
			ok = false
		case !read(r, &m, field.value):
			ok = false
		}
		seen[field.name] = true
	}
	if !seen["name"] {
		r.add(root.from, "name-invalid", "the required field name is missing")
		ok = false
	}
	return m, r.problems, ok
}

func (r *report) requiredSchema(root *node) bool {
	schema := root.get("$schema")
	switch {
	case schema == nil:
		r.add(root.from, "schema-unsupported", "the required field $schema is missing")
	case schema.kind != '"':
		r.add(schema.from, "schema-unsupported", "$schema is "+schema.kindName()+", not a string")
	case schema.text != pluginSchema:
		r.add(schema.from, "schema-unsupported", unsupported(schema.text, "plugin"))
	default:
		return true
	}
	return false
}

// unsupported names the version that a $schema asks for, when it names one.
func unsupported(schema, kind string) string {
	if version := schemaVersion(schema, kind); version != "" {
		return "version " + show(version) + " of Agent Plugins is not supported, only 1.0.0 is"
	}
	return "$schema names no version of Agent Plugins that is supported, only 1.0.0 is"
}

func schemaVersion(schema, kind string) string {
	version, found := strings.CutPrefix(schema, "https://agent-plugins.org/schemas/")
	version, ending := strings.CutSuffix(version, "/"+kind+".schema.json")
	if !found || !ending || strings.Contains(version, "/") {
		return ""
	}
	return version
}

// manifestField returns the reader of a field of the closed list of §5.2. A
// reader reports false when the value makes the manifest invalid.
func manifestField(name string) (read func(*report, *manifest, *node) bool, known bool) {
	switch name {
	case "$schema":
		return func(*report, *manifest, *node) bool { return true }, true
	case "name":
		return readName, true
	case "version":
		return text(name, func(m *manifest) *string { return &m.version }), true
	case "description":
		return text(name, func(m *manifest) *string { return &m.description }), true
	case "homepage":
		return text(name, func(m *manifest) *string { return &m.homepage }), true
	case "repository":
		return text(name, func(m *manifest) *string { return &m.repository }), true
	case "license":
		return text(name, func(m *manifest) *string { return &m.license }), true
	case "author":
		return readAuthor, true
	case "keywords":
		return readKeywords, true
	case "extensions":
		return readExtensions, true
	}
	return nil, false
}

func text(name string, target func(*manifest) *string) func(*report, *manifest, *node) bool {
	return func(r *report, m *manifest, n *node) bool {
		return r.text(name, n, target(m))
	}
}

func (r *report) text(name string, n *node, target *string) bool {
	if n.kind != '"' {
		r.add(n.from, "field-invalid", name+" is "+n.kindName()+", not a string")
		return false
	}
	*target = n.text
	return true
}

func readName(r *report, m *manifest, n *node) bool {
	if n.kind != '"' {
		r.add(n.from, "name-invalid", "name is "+n.kindName()+", not a string")
		return false
	}
	if !isPluginName(n.text) {
		r.add(n.from, "name-invalid", "name is not 1 to 64 lower-case letters, digits, '-' and '.', "+
			"with a letter or digit at both ends and no '--' or '..'")
		return false
	}
	m.name = n.text
	return true
}

// isPluginName follows §5.5.
func isPluginName(name string) bool {
	if name == "" || len(name) > 64 || strings.Contains(name, "--") || strings.Contains(name, "..") {
		return false
	}
	for i, c := range []byte(name) {
		alphanumeric := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !alphanumeric && (c != '-' && c != '.' || i == 0 || i == len(name)-1) {
			return false
		}
	}
	return true
}

func readAuthor(r *report, m *manifest, n *node) bool {
	if n.kind != '{' {
		r.add(n.from, "field-invalid", "author is "+n.kindName()+", not an object")
		return false
	}
	if twice := n.repeatedHere(); twice != nil {
		r.add(twice.at, "duplicate-key", fmt.Sprintf("the field %s of author stands twice", show(twice.name)))
		return false
	}
	ok := true
	targets := map[string]*string{"name": &m.author.Name, "email": &m.author.Email, "url": &m.author.URL}
	for _, field := range n.members {
		target, known := targets[field.name]
		if !known {
			r.add(field.at, "field-invalid", fmt.Sprintf("author has an unknown field %s", show(field.name)))
			ok = false
			continue
		}
		ok = r.text("author."+field.name, field.value, target) && ok
	}
	return ok
}

func readKeywords(r *report, m *manifest, n *node) bool {
	list, ok := n.strings()
	if !ok {
		r.add(n.from, "field-invalid", "keywords is not a list of strings")
		return false
	}
	m.keywords = list
	return true
}

// readExtensions keeps our own namespace for extension.go. Of the others it
// looks at the kind only (§5.2), never inside (§8.1).
func readExtensions(r *report, m *manifest, n *node) bool {
	if n.kind != '{' {
		r.add(n.from, "extensions-not-object", "extensions is "+n.kindName()+", not an object, and ignored")
		return true
	}
	ok := true
	for _, entry := range n.members {
		if entry.value.kind != '{' {
			r.add(entry.value.from, "field-invalid",
				fmt.Sprintf("extensions: %s is %s, not an object", show(entry.name), entry.value.kindName()))
			ok = false
			continue
		}
		if entry.name == namespace {
			m.ours = append(m.ours, entry.value)
		}
	}
	return ok
}
