package plugins

import (
	"cmp"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"
)

const (
	serversFile    = "mcp.json"
	maxServersFile = 1 << 20 // bytes
	maxServers     = 256     // entries
	// maxServerName is in bytes; the name is shown and kept as it is written.
	maxServerName = 256
)

// server is one entry of mcp.json. An entry with a problem is kept, so that it
// is listed, and is never started.
type server struct {
	name      string
	transport Transport
	launch    Launch
	problem   *Problem
	at        int64
	from      string   // the file, where there may be several
	inherit   []string // names that the entry itself takes from the parent
	secrets   []string // variables that the entry's headers are made of
}

// parseServers validates an mcp.json. Without ok MCP is disabled for the plugin
// and its other components stay (Agent Plugins 1.0.0 §7.2.2). contained answers
// for the paths of an entry.
func parseServers(data []byte, contained containment) (servers []server, problems []Problem, ok bool) {
	r := &report{path: serversFile}
	if !r.parse(data, "mcp-syntax") || !r.serversTop() {
		return nil, r.problems, false
	}
	entries := r.doc.root.get("mcpServers")
	seen := map[string]int{}
	for _, m := range entries.members {
		if i, twice := seen[m.name]; twice {
			// Which of the two is meant cannot be told: neither runs.
			p := r.add(m.at, "server-duplicate", fmt.Sprintf("the server %s stands twice", show(m.name)))
			servers[i].problem = &p
			continue
		}
		seen[m.name] = len(servers)
		servers = append(servers, r.server(m, contained))
	}
	slices.SortFunc(servers, func(a, b server) int { return cmp.Compare(a.name, b.name) })
	return servers, r.problems, true
}

// serversTop checks the file but for its entries (§7.2.1).
func (r *report) serversTop() bool {
	root := r.doc.root
	if root.kind != '{' {
		r.add(root.from, "mcp-invalid", "the MCP configuration is "+root.kindName()+", not an object")
		return false
	}
	if twice := root.repeatedHere(); twice != nil {
		r.add(twice.at, "mcp-invalid", fmt.Sprintf("the field %s stands twice", show(twice.name)))
		return false
	}
	schema := root.get("$schema")
	switch {
	case schema == nil:
		r.add(root.from, "mcp-schema-unsupported", "the required field $schema is missing")
		return false
	case schema.kind != '"':
		r.add(schema.from, "mcp-schema-unsupported", "$schema is "+schema.kindName()+", not a string")
		return false
	case schema.text != mcpSchema && schemaVersion(schema.text, "mcp") != "":
		r.add(schema.from, "mcp-version-mismatch", "plugin.json is for version 1.0.0 of Agent Plugins and mcp.json for version "+
			show(schemaVersion(schema.text, "mcp")))
		return false
	case schema.text != mcpSchema:
		r.add(schema.from, "mcp-schema-unsupported", unsupported(schema.text, "mcp"))
		return false
	}
	for _, m := range root.members {
		if m.name != "$schema" && m.name != "mcpServers" {
			r.add(m.at, "mcp-invalid", fmt.Sprintf("the field %s is unknown", show(m.name)))
			return false
		}
	}
	entries := root.get("mcpServers")
	if entries == nil || entries.kind != '{' {
		at, sentence := root.from, "the required field mcpServers is missing"
		if entries != nil {
			at, sentence = entries.from, "mcpServers is "+entries.kindName()+", not an object"
		}
		r.add(at, "mcp-invalid", sentence)
		return false
	}
	if len(entries.members) > maxServers {
		r.add(entries.from, "mcp-invalid", fmt.Sprintf("mcpServers has more than %d entries", maxServers))
		return false
	}
	return true
}

// server validates one entry; the first thing wrong with it is its problem.
func (r *report) server(m member, contained containment) server {
	s := server{name: m.name, at: m.at}
	if f := s.fill(m.value, contained); f != nil {
		at := m.at
		if f.at > 0 {
			at = f.at
		}
		p := r.add(at, f.code, fmt.Sprintf("the server %s: %s", show(m.name), f.sentence))
		s.problem = &p
	}
	return s
}

// fault is why an entry is invalid. A zero at is the place of the entry.
type fault struct {
	at             int64
	code, sentence string
}

func (s *server) fill(entry *node, contained containment) *fault {
	if f := serverName(s.name); f != nil {
		return f
	}
	if entry.kind != '{' {
		return &fault{entry.from, "server-invalid", "the entry is " + entry.kindName() + ", not an object"}
	}
	if twice := entry.repeated(); twice != nil {
		return &fault{twice.at, "duplicate-key", fmt.Sprintf("the field %s stands twice", show(twice.name))}
	}
	kind := entry.get("type")
	if kind == nil {
		return &fault{entry.from, "server-type-unknown", "the required field type is missing"}
	}
	if kind.kind != '"' {
		return &fault{kind.from, "server-type-unknown", "type is " + kind.kindName() + ", not a string"}
	}
	switch s.transport = Transport(kind.text); s.transport {
	case Stdio:
		return s.fillStdio(entry, contained)
	case StreamableHTTP, SSE:
		return s.fillRemote(entry)
	}
	s.transport = ""
	return &fault{kind.from, "server-type-unknown", fmt.Sprintf("the type %s is unknown", show(kind.text))}
}

// serverName refuses what cannot be shown or addressed. Everything else is a
// name as it is: spaces, slashes, any script.
func serverName(name string) *fault {
	switch {
	case name == "":
		return &fault{0, "server-name-invalid", "the name is empty"}
	case len(name) > maxServerName:
		return &fault{0, "server-name-invalid", fmt.Sprintf("the name is longer than %d bytes", maxServerName)}
	}
	for _, r := range name {
		if r == utf8.RuneError || r != ' ' && !unicode.IsGraphic(r) {
			return &fault{0, "server-name-invalid", "the name holds control or invisible characters"}
		}
	}
	return nil
}

// onlyFields refuses a field that the variant does not have.
func onlyFields(entry *node, variant string, names ...string) *fault {
	for _, m := range entry.members {
		if !slices.Contains(names, m.name) {
			return &fault{m.at, "server-invalid", fmt.Sprintf("a server of type %s has no field %s", variant, show(m.name))}
		}
	}
	return nil
}

// requiredText reads a string that must be there and not be empty.
func requiredText(entry *node, name, code string) (string, *node, *fault) {
	n := entry.get(name)
	switch {
	case n == nil:
		return "", nil, &fault{entry.from, code, "the required field " + name + " is missing"}
	case n.kind != '"':
		return "", n, &fault{n.from, code, name + " is " + n.kindName() + ", not a string"}
	case n.text == "":
		return "", n, &fault{n.from, code, name + " is empty"}
	}
	return n.text, n, nil
}

// textValues reads an optional object of strings. check may refuse an entry.
func textValues(entry *node, name, code string, check func(name, value string) string) ([]Value, *fault) {
	n := entry.get(name)
	if n == nil {
		return nil, nil
	}
	if n.kind != '{' {
		return nil, &fault{n.from, code, name + " is " + n.kindName() + ", not an object"}
	}
	values := make([]Value, 0, len(n.members))
	for _, m := range n.members {
		if m.value.kind != '"' {
			return nil, &fault{m.value.from, code, fmt.Sprintf("%s: %s is %s, not a string", name, show(m.name), m.value.kindName())}
		}
		if sentence := check(m.name, m.value.text); sentence != "" {
			return nil, &fault{m.at, code, fmt.Sprintf("%s: %s %s", name, show(m.name), sentence)}
		}
		values = append(values, Value{Name: m.name, Value: m.value.text})
	}
	return values, nil
}
