package plugins

import "fmt"

const codexManifest = ".codex-plugin/plugin.json"

// readCodex reads a plugin of Codex: its servers and skills.
func (b *bundle) readCodex(p *Plugin, data []byte) {
	v, ok := b.vendorManifest(p, codexManifest, data)
	if !ok {
		return
	}
	others := map[string]string{"hooks": "hooks/hooks.json", "apps": ".app.json", "commands": "commands", "agents": "agents"}
	v.fields(append(sortedKeys(others), "mcpServers", "skills", "interface")...)
	if !v.describe() {
		return
	}
	v.face()
	v.notRun(others)
	v.skills()
	v.servers(places{fallback: []string{".codex-plugin/.mcp.json", ".codex-plugin/mcp.json", "mcp.json"}})
}

// face reads what Codex shows of the plugin.
func (v *vendor) face() {
	n := v.r.doc.root.get("interface")
	if n == nil {
		return
	}
	if n.kind != '{' {
		v.ignored(n, "interface is "+n.kindName()+", not an object")
		return
	}
	text := func(name string, target *string) {
		if value := n.get(name); value != nil && value.kind == '"' && value.text != "" {
			*target = value.text
		}
	}
	text("displayName", &v.p.DisplayName)
	if v.p.Description == "" {
		text("shortDescription", &v.p.Description)
	}
	if v.p.Homepage == "" {
		text("websiteURL", &v.p.Homepage)
	}
	if v.p.Author.Name == "" {
		text("developerName", &v.p.Author.Name)
	}
}

// fillCodexHeaders reads the headers whose values are variables of the parent. The
// names are asked for like any secret's.
func (s *server) fillCodexHeaders(entry *node) *fault {
	more, f := textValues(entry, "http_headers", "headers-invalid", headerField)
	if f != nil {
		return f
	}
	s.launch.Headers = append(s.launch.Headers, more...)
	named, f := textValues(entry, "env_http_headers", "headers-invalid", func(name, value string) string {
		if !isVariable(value) {
			return "names " + show(value) + ", which is no variable"
		}
		return headerField(name, value)
	})
	if f != nil {
		return f
	}
	for _, v := range named {
		s.secrets = append(s.secrets, v.Value)
		s.launch.Headers = append(s.launch.Headers, Value{Name: v.Name, Value: "${" + v.Value + "}"})
	}
	token := entry.get("bearer_token_env_var")
	if token == nil {
		return nil
	}
	if token.kind != '"' || !isVariable(token.text) {
		return &fault{token.from, "headers-invalid", fmt.Sprintf("bearer_token_env_var names %s, which is no variable", show(token.text))}
	}
	s.secrets = append(s.secrets, token.text)
	s.launch.Headers = append(s.launch.Headers, Value{Name: "Authorization", Value: "Bearer ${" + token.text + "}"})
	return nil
}

func isVariable(name string) bool {
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
