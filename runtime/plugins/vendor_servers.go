package plugins

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// places is where an application looks for a plugin's servers.
type places struct {
	// beside is read although the manifest names servers itself.
	beside bool
	// fallback are files that people put them in and the application does not read.
	fallback []string
}

// dotFile is where both applications look.
const dotFile = ".mcp.json"

// servers collects the plugin's servers from the manifest and from files, in that
// order; of two with one name the first is used, and the other is said (C31, C35).
func (v *vendor) servers(where places) {
	field := v.r.doc.root.get("mcpServers")
	var all []server
	add := func(from string, more []server) {
		for _, s := range more {
			at := slices.IndexFunc(all, func(have server) bool { return have.name == s.name })
			if at < 0 {
				s.from = from
				all = append(all, s)
				continue
			}
			v.p.Problems = append(v.p.Problems, Problem{Code: "server-second", Path: from,
				Sentence: fmt.Sprintf("the server %s stands here too; the one in %s is used", show(s.name), all[at].from)})
		}
	}
	v.declared(field, add)
	switch {
	case field == nil || where.beside:
		v.file(dotFile, nil, add)
	default:
		v.unread(dotFile)
	}
	for _, file := range where.fallback {
		if len(all) > 0 {
			v.unread(file)
			continue
		}
		v.file(file, func() {
			v.p.Problems = append(v.p.Problems, Problem{Code: "servers-elsewhere", Path: file,
				Sentence: fmt.Sprintf("the servers are read from %s, where %s itself does not look", file, titleOf(v.p.Format))})
		}, add)
	}
	if len(all) == 0 && len(v.read) == 0 && len(v.p.Skills) == 0 && field == nil {
		v.p.Problems = append(v.p.Problems, Problem{Code: "no-servers", Path: v.r.path,
			Sentence: "no server is declared here, and there is no " + dotFile})
	}
	v.connect(all)
}

// declared reads the manifest's own mcpServers: servers, a path, or a list of both.
func (v *vendor) declared(field *node, add func(string, []server)) {
	if field == nil {
		return
	}
	items := []*node{field}
	if field.kind == '[' {
		items = field.items
	}
	for _, item := range items {
		switch item.kind {
		case '{':
			add(v.r.path, v.r.entries(item, v.open()))
			if len(item.members) == 0 {
				v.r.add(item.from, "no-servers", "mcpServers is empty: no server is declared in "+v.r.path)
			}
		case '"':
			v.named(item, add)
		default:
			v.r.add(item.from, "mcp-invalid", "mcpServers holds "+item.kindName()+", neither servers nor the path of a file")
		}
	}
}

// named reads a file that the manifest names. One that is not there is named.
func (v *vendor) named(item *node, add func(string, []server)) {
	target, sentence := v.inside(item.text)
	if sentence != "" {
		v.r.add(item.from, "path-outside", fmt.Sprintf("mcpServers: %s %s", show(item.text), sentence))
		return
	}
	v.p.named = append(v.p.named, target)
	if !v.file(target, nil, add) {
		v.r.add(item.from, "servers-missing", fmt.Sprintf("mcpServers names %s, which is missing", show(item.text)))
	}
}

// file reads the servers of one file; false if it is not there. A file is read once,
// by whatever paths it is named.
func (v *vendor) file(name string, used func(), add func(string, []server)) bool {
	resolved, _, err := v.b.resolve(name)
	if isMissing(err) {
		return false
	}
	if v.read[resolved] {
		return true
	}
	v.read[resolved] = true
	var data []byte
	if err == nil {
		data, err = v.b.read(name, maxServersFile)
	}
	if err != nil {
		code := "mcp-invalid"
		if errors.Is(err, errOutside) {
			code = "path-outside"
		}
		v.p.Problems = append(v.p.Problems, Problem{Code: code, Path: name, Sentence: "the MCP configuration " + reason(err)})
		return true
	}
	r := &report{path: name}
	if !r.parse(data, "mcp-syntax") {
		v.p.Problems = append(v.p.Problems, r.problems...)
		return true
	}
	servers := r.shaped(v.open())
	v.p.Problems = append(v.p.Problems, sortedProblems(r.problems)...)
	if len(servers) > 0 && used != nil {
		used()
	}
	add(name, servers)
	return true
}

// unread mentions a file that looks like servers and is not read.
func (v *vendor) unread(name string) {
	resolved, _, err := v.b.resolve(name)
	if err != nil || v.read[resolved] {
		return
	}
	data, err := v.b.read(name, maxServersFile)
	if err != nil {
		return
	}
	doc, err := parseDocument(data)
	if err != nil {
		return
	}
	if shape := shapeOf(doc.root); shape.entries != nil && len(shape.entries.members) > 0 {
		names := make([]string, 0, len(shape.entries.members))
		for _, m := range shape.entries.members[:min(8, len(shape.entries.members))] {
			names = append(names, show(m.name))
		}
		v.p.Problems = append(v.p.Problems, Problem{Code: "servers-not-read", Path: name,
			Sentence: fmt.Sprintf("the servers in %s (%s) are not used: others are declared where %s looks first",
				name, strings.Join(names, ", "), titleOf(v.p.Format))})
	}
}

func (v *vendor) open() openEntry {
	return openEntry{format: v.p.Format, contained: v.b.contains}
}

// connect makes connectors of the servers, with what the manifest says under our own
// namespace.
func (v *vendor) connect(servers []server) {
	wishes, wishesFault := readWishes(&v.m)
	var extension *Problem
	if wishesFault != nil {
		problem := v.r.add(wishesFault.at, wishesFault.code, wishesFault.sentence)
		extension = &problem
	}
	slices.SortFunc(servers, func(a, b server) int { return cmp.Compare(a.name, b.name) })
	for _, s := range servers {
		c := v.p.connector(s, wishes, extension, v.r)
		c.Settings = v.settings
		v.p.Connectors = append(v.p.Connectors, c)
		delete(wishes.servers, s.name)
	}
	for _, name := range sortedKeys(wishes.servers) {
		v.r.add(v.m.ours[0].from, "unknown-server", fmt.Sprintf("extensions names a server %s that the plugin does not have", show(name)))
	}
	v.p.Problems = append(sortedProblems(v.r.problems), v.p.Problems...)
}
