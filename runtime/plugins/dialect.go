package plugins

import (
	"maps"
	"strings"
)

// The Formats of connectors and plugins.
const (
	// AgentPlugins is a plugin that follows Agent Plugins 1.0.0.
	AgentPlugins = "agent-plugins-1.0.0"
	// ClaudeCode is a plugin with .claude-plugin/plugin.json.
	ClaudeCode = "claude-code"
	// Codex is a plugin with .codex-plugin/plugin.json.
	Codex = "codex"
	// MCPB, "-" and its version is an MCP bundle, unpacked: manifest.json.
	MCPB = "mcpb"
	// ByHand is an entry of connectors.json, without a bundle.
	ByHand = "connectors"
)

// Place is what a placeholder of a format stands for. env gives it a value.
type Place string

// The places.
const (
	PlaceRoot      Place = "root" // the snapshot
	PlaceData      Place = "data" // the plugin's own writable folder
	PlaceHome      Place = "home"
	PlaceDesktop   Place = "desktop"
	PlaceDocuments Place = "documents"
	PlaceDownloads Place = "downloads"
	PlaceSeparator Place = "separator" // "/", or "\" on Windows
)

// Dialect is what the texts of one connector may hold besides themselves, as data:
// plugins says what its format defines, env expands that and nothing else
// (spec/child-environment.md 5).
type Dialect struct {
	// Places are the words between ${ and } that stand for a place.
	Places map[string]Place
	// Settings begins the words that stand for a Setting: "user_config.".
	Settings string
	// Variables: ${NAME} and ${NAME:-default} are the parent's variables.
	Variables bool
	// References: secret:NAME, env:NAME, ${secret:NAME}, ${env:NAME}.
	References bool
	// Tilde: a text that begins with ~/ begins with the home folder.
	Tilde bool
	// Strict: a ${…} that is none of the above is refused. Otherwise it stays.
	Strict bool
	// Sets are further variables of the child's environment that Sallyport sets.
	Sets map[string]Place
}

// DialectOf returns what a format defines. Of one that is not known it is the most
// literal.
func DialectOf(format string) Dialect {
	// "mcpb-0.3": the versions of the format have the same words.
	family, _, _ := strings.Cut(format, "-0.")
	switch family {
	case ClaudeCode:
		return Dialect{Places: claudePlaces(), Settings: "user_config.", Variables: true, Strict: true, Sets: claudeSets()}
	case Codex:
		// Plugins are written for both applications: Codex takes Claude's names too. The
		// variables are those that fields of its own name (env_vars, bearer_token_env_var).
		return Dialect{Places: both(agentPlaces(), claudeSets()), Variables: true, Strict: true, Sets: claudeSets()}
	case MCPB:
		return Dialect{Places: bundlePlaces(), Settings: "user_config.", Strict: true}
	case ByHand:
		return Dialect{Places: map[string]Place{"PLUGIN_DATA": PlaceData, "HOME": PlaceHome},
			Variables: true, References: true, Tilde: true, Strict: true}
	}
	return Dialect{Places: agentPlaces()}
}

// ForOperator is the dialect of what the operator adds to a connector: everything
// that the format has, and references.
func (d Dialect) ForOperator() Dialect {
	d.Places = both(agentPlaces(), d.Places)
	d.Variables, d.References, d.Strict = true, true, true
	return d
}

// agentPlaces are the two placeholders of Agent Plugins 1.0.0 §9.2.
func agentPlaces() map[string]Place {
	return map[string]Place{"PLUGIN_ROOT": PlaceRoot, "PLUGIN_DATA": PlaceData}
}

func claudeSets() map[string]Place {
	return map[string]Place{"CLAUDE_PLUGIN_ROOT": PlaceRoot, "CLAUDE_PLUGIN_DATA": PlaceData}
}

// claudePlaces are Claude Code's own two and the home folder, which every child is
// given anyway.
func claudePlaces() map[string]Place {
	return both(claudeSets(), map[string]Place{"HOME": PlaceHome})
}

func bundlePlaces() map[string]Place {
	return map[string]Place{
		"__dirname": PlaceRoot, "HOME": PlaceHome, "DESKTOP": PlaceDesktop, "DOCUMENTS": PlaceDocuments,
		"DOWNLOADS": PlaceDownloads, "pathSeparator": PlaceSeparator, "/": PlaceSeparator,
		// Not the format's own: a bundle has no other place that it may write to.
		"PLUGIN_DATA": PlaceData,
	}
}

func both(a, b map[string]Place) map[string]Place {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// Setting is one value that a plugin asks its user for (user_config), and what the
// operator gave (Overlay.UserConfig).
type Setting struct {
	Key, Title, Description string
	Type                    string // "string", "number", "boolean", "directory", "file"
	Required, Sensitive     bool
	Multiple                bool
	Min, Max                string // of a number, as written; "": no bound
	// Default holds the author's texts, in which the places of the format expand.
	Default []string
	// Value is the operator's, never expanded: nil is the default. A value that is
	// secret:NAME stands for what the keyring holds.
	Value []string
}
