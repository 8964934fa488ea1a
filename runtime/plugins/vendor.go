package plugins

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// vendor reads a plugin in the format of another application. Those formats are
// open: what Sallyport does not know is left alone and mentioned, never refused; what
// it does know and cannot read ends as little as possible.
type vendor struct {
	b        *bundle
	p        *Plugin
	r        *report // of the manifest
	m        manifest
	settings []Setting
	// read are the files that servers came from, by their resolved paths.
	read map[string]bool
}

// vendorManifest parses a manifest; without ok the plugin is rejected.
func (b *bundle) vendorManifest(p *Plugin, file string, data []byte) (v *vendor, ok bool) {
	v = &vendor{b: b, p: p, r: &report{path: file}, read: map[string]bool{}}
	if !v.r.parse(data, "manifest-syntax") {
		p.reject(v.r.problems...)
		return v, false
	}
	root := v.r.doc.root
	if root.kind != '{' {
		p.reject(v.r.add(root.from, "manifest-invalid", "the manifest is "+root.kindName()+", not an object"))
		return v, false
	}
	if twice := root.repeatedHere(); twice != nil {
		p.reject(v.r.add(twice.at, "duplicate-key", fmt.Sprintf("the field %s stands twice", show(twice.name))))
		return v, false
	}
	v.m.doc = v.r.doc
	return v, true
}

// fields mentions what of the manifest is not read: names that are not known, and
// names that are only almost known (C35).
func (v *vendor) fields(known ...string) {
	known = append(known, "$schema", "name", "version", "description", "author", "homepage", "repository", "license", "keywords", "extensions")
	v.r.unknownFields(v.r.doc.root, "", known)
}

// unknownFields mentions the members of an object that nobody reads.
func (r *report) unknownFields(object *node, where string, known []string) {
	for _, m := range object.members {
		if slices.Contains(known, m.name) {
			continue
		}
		almost := slices.IndexFunc(known, func(name string) bool { return strings.EqualFold(name, m.name) })
		if almost >= 0 {
			r.add(m.at, "field-case", fmt.Sprintf("%sthe field %s is not %s, since case counts, and is ignored", where, show(m.name), known[almost]))
		} else {
			r.add(m.at, "unknown-field", fmt.Sprintf("%sthe field %s is unknown and ignored", where, show(m.name)))
		}
	}
}

// describe reads what the manifest says about the plugin itself. Without ok the
// plugin is rejected: it has no name that an id can be made of.
func (v *vendor) describe() bool {
	root := v.r.doc.root
	name := root.get("name")
	switch {
	case name == nil:
		return v.refuse(v.r.add(root.from, "name-invalid", "the required field name is missing"))
	case name.kind != '"':
		return v.refuse(v.r.add(name.from, "name-invalid", "name is "+name.kindName()+", not a string"))
	}
	if strings.TrimSpace(name.text) == "" {
		return v.refuse(v.r.add(name.from, "name-invalid", "name is empty"))
	}
	// A name in which there is nothing to make an id of gets a part of its hash.
	v.m.name = cmp.Or(idName(name.text), mcpbName(name.text))
	if v.m.name != name.text {
		v.p.DisplayName = name.text
		v.r.add(name.from, "name-adapted", fmt.Sprintf("the name %s is written %s here", show(name.text), v.m.name))
	}
	v.optional("version", &v.m.version)
	v.optional("description", &v.m.description)
	v.optional("homepage", &v.m.homepage)
	v.optional("license", &v.m.license)
	v.author()
	v.repository()
	if n := root.get("keywords"); n != nil {
		if list, ok := n.strings(); ok {
			v.m.keywords = list
		} else {
			v.ignored(n, "keywords is not a list of strings")
		}
	}
	v.extensions()
	v.p.describe(&v.m)
	return true
}

// refuse rejects the plugin for a problem that is in the report already.
func (v *vendor) refuse(problem Problem) bool {
	v.p.Problems = append(v.p.Problems, v.r.problems...)
	v.p.reject()
	v.p.Invalid = problem.refusal()
	v.p.Invalid.Next = "correct the plugin's files, or remove the plugin"
	return false
}

// idName makes a plugin's name of what another format allows as one; "" if nothing
// is left. Two plugins whose names become one are told apart like any two of one
// name: the first has it (C36).
func idName(raw string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(raw) {
		plain := r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
		last := byte('-')
		if b.Len() > 0 {
			last = b.String()[b.Len()-1]
		}
		separated := last == '-' || last == '.'
		switch {
		case plain:
			b.WriteRune(r)
		case separated:
		case r == '.':
			b.WriteByte('.')
		default:
			b.WriteByte('-')
		}
	}
	name := b.String()
	return strings.Trim(name[:min(len(name), 64)], "-.")
}

func (v *vendor) ignored(n *node, sentence string) {
	v.r.add(n.from, "field-ignored", sentence+", and is ignored")
}

// optional reads a text that may be absent; anything else is mentioned.
func (v *vendor) optional(name string, target *string) {
	n := v.r.doc.root.get(name)
	switch {
	case n == nil:
	case n.kind != '"':
		v.ignored(n, name+" is "+n.kindName()+", not a string")
	default:
		*target = n.text
	}
}

func (v *vendor) author() {
	n := v.r.doc.root.get("author")
	switch {
	case n == nil:
	case n.kind == '"':
		v.m.author.Name = n.text
	case n.kind == '{':
		for field, target := range map[string]*string{"name": &v.m.author.Name, "email": &v.m.author.Email, "url": &v.m.author.URL} {
			if text := n.get(field); text != nil && text.kind == '"' {
				*target = text.text
			}
		}
	default:
		v.ignored(n, "author is "+n.kindName()+", neither a string nor an object")
	}
}

// repository is a text, or npm's object with a url (C37).
func (v *vendor) repository() {
	n := v.r.doc.root.get("repository")
	if n == nil {
		return
	}
	if n.kind == '{' {
		n = cmp.Or(n.get("url"), n)
	}
	if n.kind != '"' {
		v.ignored(n, "repository is neither a string nor an object with a url")
		return
	}
	v.m.repository = n.text
}

// extensions keeps our own namespace: permissions stand in the same place in every
// format.
func (v *vendor) extensions() {
	n := v.r.doc.root.get("extensions")
	if n == nil {
		return
	}
	if n.kind != '{' {
		v.r.add(n.from, "extensions-not-object", "extensions is "+n.kindName()+", not an object, and ignored")
		return
	}
	for _, entry := range n.members {
		if entry.name == namespace {
			v.m.ours = append(v.m.ours, entry.value)
		}
	}
}

// notRun mentions components of a plugin that Sallyport has no use for: fields of
// the manifest, and the folders or files where the application looks by itself.
func (v *vendor) notRun(components map[string]string) {
	for _, field := range sortedKeys(components) {
		place := components[field]
		if n := v.r.doc.root.get(field); n != nil {
			v.r.add(n.from, "not-run", fmt.Sprintf("the plugin's %s are not run by Sallyport", field))
			continue
		}
		if _, _, err := v.b.resolve(place); place != "" && err == nil {
			v.p.Problems = append(v.p.Problems, Problem{Code: "not-run", Path: place,
				Sentence: fmt.Sprintf("the plugin's %s are not run by Sallyport", field)})
		}
	}
}

// skills reads the skills in skills/ and in the folders that the manifest names.
func (v *vendor) skills() {
	folders := []string{skillsDir}
	if n := v.r.doc.root.get("skills"); n != nil {
		for _, target := range v.paths(n, "skills") {
			if target = strings.TrimSuffix(target, "/"); !slices.Contains(folders, target) {
				folders = append(folders, target)
				v.p.named = append(v.p.named, target)
			}
		}
	}
	seen := map[string]bool{}
	for _, folder := range folders {
		skills, problems := v.b.readSkills(folder)
		v.p.Problems = append(v.p.Problems, problems...)
		for _, skill := range skills {
			if seen[skill.Name] {
				v.p.Problems = append(v.p.Problems, Problem{Code: "skill-invalid", Path: skill.Path,
					Sentence: "another skill of this plugin has the name " + skill.Name})
				continue
			}
			seen[skill.Name] = true
			v.p.Skills = append(v.p.Skills, skill)
		}
	}
	slices.SortFunc(v.p.Skills, func(a, b Skill) int { return cmp.Compare(a.Name, b.Name) })
}

// paths reads one path or a list of paths in the plugin. One that leads out of it is
// a problem and left out.
func (v *vendor) paths(n *node, field string) (paths []string) {
	items := []*node{n}
	if n.kind == '[' {
		items = n.items
	}
	for _, item := range items {
		if item.kind != '"' {
			v.ignored(item, field+" holds "+item.kindName()+", not a path")
			continue
		}
		target, sentence := v.inside(item.text)
		if sentence != "" {
			v.r.add(item.from, "path-outside", fmt.Sprintf("%s: %s %s", field, show(item.text), sentence))
			continue
		}
		paths = append(paths, target)
	}
	return paths
}

// inside cleans a path of the manifest; the sentence says why it cannot be used.
func (v *vendor) inside(text string) (target, sentence string) {
	text = strings.ReplaceAll(text, `\`, "/")
	for word, place := range DialectOf(v.p.Format).Places {
		if rest, ok := strings.CutPrefix(text, "${"+word+"}/"); ok && place == PlaceRoot {
			text = rest
		}
	}
	if strings.HasPrefix(text, "/") || len(text) > 1 && text[1] == ':' || strings.ContainsRune(text, 0) || climbs(text) {
		return "", "leads out of the plugin folder"
	}
	target = path.Clean(text)
	if target == "." {
		return "", "names no file in the plugin"
	}
	return target, ""
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
