package plugins

import (
	"fmt"
	"strings"

	"sallyport/internal/coded"
)

// Plugin is one bundle as it lies on disk.
type Plugin struct {
	// Name is the manifest's name; for a rejected plugin the folder's name, which
	// may be anything and is for display only.
	Name        string
	Version     string
	Description string
	Author      Author
	Homepage    string
	Repository  string
	License     string
	Keywords    []string
	Format      string
	// DisplayName is the name as its author writes it, where that is another.
	DisplayName string
	// Manifest is the path of the manifest that was read, relative to the root.
	Manifest string
	// Others are manifests of further formats that lie beside it and are not used.
	Others []Other
	// Declared is what the manifest says that the servers have.
	Declared Declared
	// Source is the folder the plugin came from, with ~ for the user's home.
	Source string
	// Folder is the label of the folder that holds it, "" for Load.
	Folder string
	// Root is the absolute, resolved plugin root.
	Root string
	// Invalid says why nothing of the plugin can be used; nil otherwise. A plugin
	// that only shares its name with an earlier one has the code "name-taken".
	Invalid    *coded.Error
	Problems   []Problem
	Connectors []Connector // sorted by server name; empty for a rejected plugin
	Skills     []Skill     // sorted by name

	// named are the files and folders that the manifest names beyond the usual places.
	named []string
}

// Author is the manifest's author object.
type Author struct{ Name, Email, URL string }

// Skill is one Agent Skill.
type Skill struct {
	Name, Description string
	Path              string // of SKILL.md, relative to the root
}

// Problem is something that a plugin does wrong. Problems that end a plugin or a
// connector also stand in its Invalid.
type Problem struct {
	Code     string
	Path     string // relative to the plugin root, or a folder's label
	Line     int    // from 1; 0 when the problem has no place
	Column   int    // in characters, from 1
	Sentence string // without a full stop, without file contents
}

// String is the problem on one line, place first.
func (p Problem) String() string {
	where := p.Path
	if p.Line > 0 {
		where = fmt.Sprintf("%s:%d:%d", p.Path, p.Line, p.Column)
	}
	return strings.TrimPrefix(where+": ", ": ") + p.Sentence + " [" + p.Code + "]"
}

// isFatal reports whether the problem, in a manifest, rejects the plugin
// (Agent Plugins 1.0.0 §5.2 has the two exceptions).
func (p Problem) isFatal() bool {
	return p.Code != "unknown-field" && p.Code != "extensions-not-object" && p.Code != "more-problems"
}

// refusal is the problem as an error.
func (p Problem) refusal() *coded.Error {
	e := coded.New(p.Code, p.Sentence)
	e.Path = p.Path
	if p.Line > 0 {
		e.Path = fmt.Sprintf("%s:%d:%d", p.Path, p.Line, p.Column)
	}
	return e
}

// Connector returns the plugin's connector with that id.
func (p *Plugin) Connector(id ID) (Connector, bool) {
	for _, c := range p.Connectors {
		if c.ID == id {
			return c, true
		}
	}
	return Connector{}, false
}

// WithoutServers returns why a plugin has no server, with the plugin's place before each
// path: a plugin of which nothing is listed must not pass for one that works (cases.md
// C30). One that has other things, and nothing wrong, has nothing to say.
func (p *Plugin) WithoutServers() (why []Problem) {
	if len(p.Connectors) > 0 {
		return nil
	}
	for _, problem := range p.Problems {
		switch problem.Code {
		case "unknown-field", "field-case", "field-ignored", "name-adapted", "not-run", "skill-invalid", "extensions-not-object":
			continue
		}
		problem.Path = strings.TrimSuffix(p.Source+"/"+problem.Path, "/")
		why = append(why, problem)
	}
	return why
}

// ParseID reads PLUGIN/SERVER. A plugin's name has no slash, a server's may.
func ParseID(text string) (ID, error) {
	plugin, server, found := strings.Cut(text, "/")
	if !found || server == "" || !isPluginName(plugin) {
		return ID{}, coded.New("id-invalid", fmt.Sprintf("%q is not PLUGIN/SERVER", text))
	}
	return ID{Plugin: plugin, Server: server}, nil
}
