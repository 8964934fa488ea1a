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
		setting, sentence := readSetting(m)
		if sentence != "" {
			v.r.add(m.at, "setting-invalid", fmt.Sprintf("userConfig: the setting %s %s, and is left out", show(m.name), sentence))
			continue
		}
		v.settings = append(v.settings, setting)
	}
	slices.SortFunc(v.settings, func(a, b Setting) int { return cmp.Compare(a.Key, b.Key) })
}
