package plugins

import (
	"os"
	"path/filepath"
	"testing"
)

// A plugin that has nothing but skills has one connector, so that it can be approved;
// beside servers its skills are no connector of their own.
func TestSkillsAloneAreAConnector(t *testing.T) {
	for name, c := range map[string]struct {
		mcp, broken string
		want        []string
	}{
		"skills alone":      {"", "", []string{"skills skills"}},
		"beside a server":   {`{"$schema":"https://agent-plugins.org/schemas/1.0.0/mcp.schema.json","mcpServers":{"main":{"type":"stdio","command":"node"}}}`, "", []string{"main stdio"}},
		"a rejected plugin": {"", `,"author":7`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(path, text string) {
				path = filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("plugin.json", `{"$schema":"https://agent-plugins.org/schemas/1.0.0/plugin.schema.json","name":"tips","version":"1.0.0"`+c.broken+`}`)
			write("skills/commit/SKILL.md", "---\nname: commit\ndescription: how to commit\n---\nCommit small.\n")
			if c.mcp != "" {
				write("mcp.json", c.mcp)
			}
			p, err := Load(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, connector := range p.Connectors {
				got = append(got, connector.ID.Server+" "+string(connector.Transport))
				if len(connector.Skills) != 1 || connector.Skills[0].Name != "commit" {
					t.Errorf("%s has the skills %v", connector.ID, connector.Skills)
				}
			}
			compare(t, "connectors", got, c.want)
		})
	}
}
