package plugins

import (
	"fmt"
	"slices"
)

// shape is what a configuration looks like: the applications wrap one and the same
// list of servers in different ways (cases.md C30).
type shape struct {
	// name is whose shape it is, "" for none that is known.
	name    string
	wrapper string
	entries *node // nil: not read
}

// shapeOf recognises a configuration by its shape and never by its name.
func shapeOf(root *node) shape {
	if root.kind != '{' {
		return shape{}
	}
	for _, wrapper := range []struct{ key, name string }{
		{"mcpServers", "mcpServers"}, {"mcp_servers", "Codex's mcp_servers"}, {"servers", "VS Code's mcp.json"},
	} {
		if n := root.get(wrapper.key); n != nil && (n.kind == '{' || wrapper.key == "mcpServers") {
			return shape{wrapper.name, wrapper.key, n}
		}
	}
	if mcp := root.get("mcp"); mcp != nil && mcp.kind == '{' {
		if n := mcp.get("servers"); n != nil && n.kind == '{' {
			return shape{"VS Code's settings", "mcp", n}
		}
		if slices.ContainsFunc(mcp.members, func(m member) bool { return isEntry(m.value) }) {
			return shape{"OpenCode's settings", "mcp", nil}
		}
	}
	if n := root.get("context_servers"); n != nil {
		return shape{"Zed's settings", "context_servers", nil}
	}
	if slices.ContainsFunc(root.members, func(m member) bool { return isEntry(m.value) }) {
		return shape{"servers without a wrapper", "", root}
	}
	return shape{}
}

// isEntry reports whether a value looks like a server.
func isEntry(n *node) bool {
	return n.kind == '{' && slices.ContainsFunc(n.members, func(m member) bool {
		return slices.Contains([]string{"command", "url", "serverUrl", "httpUrl", "transport"}, m.name)
	})
}

// shaped reads the servers of a file, whatever of the known shapes it has, and says
// which one when it is not the usual one.
func (r *report) shaped(open openEntry) []server {
	root := r.doc.root
	found := shapeOf(root)
	switch {
	case found.name == "":
		r.add(root.from, "mcp-shape", fmt.Sprintf("this is not an MCP configuration, so there are no servers in %s", r.path))
		if root.kind == '{' {
			r.unknownFields(root, "", []string{"mcpServers"})
		}
		return nil
	case found.entries == nil:
		r.add(root.from, "mcp-shape", fmt.Sprintf("this is recognised as %s, which a plugin cannot have, so there are no servers in %s", found.name, r.path))
		return nil
	case found.entries.kind != '{':
		r.add(found.entries.from, "mcp-invalid", "mcpServers is "+found.entries.kindName()+", not an object")
		return nil
	}
	if twice := root.repeatedHere(); twice != nil && found.wrapper != "" {
		r.add(twice.at, "duplicate-key", fmt.Sprintf("the field %s stands twice, so no server of the file is used", show(twice.name)))
		return nil
	}
	if found.wrapper != "" && found.wrapper != "mcpServers" {
		r.add(found.entries.from, "mcp-shape-other", "this is recognised as "+found.name+" and read as such")
	}
	if found.wrapper != "" {
		r.unknownFields(root, "", []string{"mcpServers", found.wrapper, "$schema", "inputs"})
	}
	if len(found.entries.members) == 0 {
		r.add(found.entries.from, "no-servers", fmt.Sprintf("%s is empty: there are no servers in %s", found.wrapper, r.path))
	}
	return r.entries(found.entries, open)
}

// entries reads every entry of an object of servers. A bad one is kept with its
// problem and hides no other (C29); a name that stands twice ends both (C35).
func (r *report) entries(object *node, open openEntry) (servers []server) {
	if len(object.members) > maxServers {
		r.add(object.from, "mcp-invalid", fmt.Sprintf("there are more than %d servers", maxServers))
		return nil
	}
	seen := map[string]int{}
	for _, m := range object.members {
		if m.name == "$schema" && m.value.kind == '"' {
			continue
		}
		if i, twice := seen[m.name]; twice {
			p := r.add(m.at, "server-duplicate", fmt.Sprintf("the server %s stands twice", show(m.name)))
			servers[i].problem = &p
			continue
		}
		seen[m.name] = len(servers)
		servers = append(servers, r.openServer(m, open))
	}
	return servers
}
