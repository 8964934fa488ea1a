package plugins

import (
	"sallyport/internal/coded"
	"sallyport/runtime/permissions"
)

// ID names one connector: PLUGIN/SERVER.
type ID struct{ Plugin, Server string }

// String returns PLUGIN/SERVER, and the name alone where a whole plugin is meant.
func (id ID) String() string {
	if id.Server == "" {
		return id.Plugin
	}
	return id.Plugin + "/" + id.Server
}

// Transport is how a connector is reached.
type Transport string

// The transports of Agent Plugins 1.0.0 §7.2.1.
const (
	Stdio          Transport = "stdio"
	StreamableHTTP Transport = "streamable-http"
	SSE            Transport = "sse"
)

// Skills is how the skills of a plugin without servers are reached: nothing runs and
// nothing is dialled, their files are handed out. Their connector has the server name
// SkillsServer.
const (
	Skills       Transport = "skills"
	SkillsServer string    = "skills"
)

// Connector is one MCP server that Sallyport could start or dial, as declared:
// nothing is expanded, looked up or resolved yet.
type Connector struct {
	ID      ID
	Title   string // plugin description, for people
	Version string
	Format  string // one of the formats; DialectOf says what its texts may hold
	// Source is which folder the plugin came from, with the user's home written
	// as ~ ("~/.agents/plugins/demo", "bundled/demo"). It is part of the identity.
	Source string
	// Root is the absolute, resolved plugin root; "" for a connector without a bundle.
	Root      string
	Transport Transport
	Launch    Launch
	// Requested is what the package asks for (extensions["app.sallyport"]), narrowed
	// and added to by the operator's configuration.
	Requested permissions.Set
	// AskedNet are the entries of Requested.Net that the operator's configuration asks
	// for in addition; for showing who asked, since all of Requested is approved.
	AskedNet []string
	Options  Options
	// Publisher is who signed the package that was installed, as
	// signature.Publisher writes it; "" where it was not signed. It is part of the
	// identity.
	Publisher string
	// SignedTree is the digest of the tree that Publisher stands for; another tree in its
	// place is nobody's.
	SignedTree string
	// Settings are what the plugin asks its user for, sorted by key.
	Settings []Setting
	// Skills are those of its plugin, which are approved with it.
	Skills []Skill
	// Invalid says why this connector can never be approved as it is; nil otherwise.
	Invalid *coded.Error
}

// Words says what the connector may do, once approved, and which hosts the operator
// asked for.
func (c Connector) Words() []string {
	words := c.Requested.Words()
	if asked := permissions.AskedWords(c.AskedNet); asked != "" {
		words = append(words, asked)
	}
	return words
}

// Launch is exactly what would run or be dialled, as declared.
type Launch struct {
	Command string   // stdio: a bare name or ./path
	Args    []string // in order
	Cwd     string   // as declared; "" is the plugin root
	Env     []Value  // sorted by name
	Inherit []string // names or the group "network" (spec/child-environment.md 4)
	URL     string   // streamable-http, sse
	Headers []Value  // sorted by lower-case name
	// Replaced are the package's own values that the operator's took the place of. No
	// child gets them; they still lie in the package.
	Replaced []Value
}

// Value is a declared environment entry or header.
type Value struct {
	Name, Value string
	// FromOperator is true for what the operator wrote, where references
	// (spec/child-environment.md 5) are allowed; in a package's text only what its
	// format defines expands (DialectOf).
	FromOperator bool
}

// Options loosen a default for one connector and are part of the identity.
type Options struct {
	MaxFrame    int64  // bytes; 0 is the default of spec/stdio-framing.md 2
	StdoutNoise string // "" or "skip" (spec/stdio-framing.md 8)
	Budget      Budget
	// NotSecret names what looks like a credential and is none, as the operator says:
	// variables, headers, "args[2]", "url" (spec/child-environment.md 5). Sorted.
	NotSecret []string
}
