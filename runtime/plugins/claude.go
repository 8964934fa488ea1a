package plugins

import (
	"cmp"
	"fmt"
	"slices"
)

const claudeManifest = ".claude-plugin/plugin.json"

// readClaude reads a plugin of Claude Code: its servers and skills. What else it has
// is for Claude Code alone.
func (b *bundle) readClaude(p *Plugin, data []byte) {
	v, ok := b.vendorManifest(p, claudeManifest, data)
	if !ok {
		return
	}
	others := map[string]string{
		"commands": "commands", "agents": "agents", "hooks": "hooks/hooks.json", "outputStyles": "output-styles",
		"lspServers": ".lsp.json", "monitors": "monitors", "channels": "", "themes": "themes",
	}
	v.fields(append(sortedKeys(others), "mcpServers", "skills", "userConfig", "displayName", "dependencies", "settings", "experimental")...)
	if !v.describe() {
		return
	}
	v.optional("displayName", &p.DisplayName)
	v.notRun(others)
	v.skills()
	v.userConfig()
	v.servers(places{beside: true, fallback: []string{".claude-plugin/.mcp.json", ".claude-plugin/mcp.json", "mcp.json"}})
}

// userConfig reads what the plugin asks its user for.
func (v *vendor) userConfig() {
	n := v.r.doc.root.get("userConfig")
	if n == nil {
		return
	}
	if n.kind != '{' {
		v.ignored(n, "userConfig is "+n.kindName()+", not an object")
		return
	}
	for _, m := range n.members {
		setting, sentence := claudeSetting(v.r.doc, m)
		if sentence != "" {
			v.r.add(m.at, "setting-invalid", fmt.Sprintf("userConfig: the setting %s %s, and is left out", show(m.name), sentence))
			continue
		}
		v.settings = append(v.settings, setting)
	}
	slices.SortFunc(v.settings, func(a, b Setting) int { return cmp.Compare(a.Key, b.Key) })
}

// claudeSetting reads one entry of user_config, which has the same fields in a plugin
// of Claude Code and in an MCP bundle. The sentence says why it cannot be one.
func claudeSetting(doc *document, m member) (Setting, string) {
	s := Setting{Key: m.name}
	n := m.value
	switch {
	case m.name == "":
		return s, "has no name"
	case n.kind != '{':
		return s, "is " + n.kindName() + ", not an object"
	case n.repeatedHere() != nil:
		return s, "has a field twice"
	}
	for name, target := range map[string]*string{"title": &s.Title, "description": &s.Description, "type": &s.Type} {
		if text := n.get(name); text != nil && text.kind == '"' {
			*target = text.text
		}
	}
	for name, target := range map[string]*bool{"required": &s.Required, "sensitive": &s.Sensitive, "multiple": &s.Multiple} {
		flag := n.get(name)
		if flag == nil {
			continue
		}
		if flag.kind != 't' && flag.kind != 'f' {
			// Of a flag that says "sensitive" nothing is guessed.
			return s, "has " + name + " as " + flag.kindName() + ", not true or false"
		}
		*target = flag.kind == 't'
	}
	if value := n.get("default"); value != nil && value.kind != 'n' {
		if s.Default = choiceOf(doc, value); s.Default == nil {
			return s, "has a default that is no text, number, true or false, or a list of those"
		}
	}
	return s, ""
}
