package clients

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/coded"
)

// syntax says what a client replaces in the text of an entry. What it does not
// replace is literal there.
type syntax struct {
	braces   bool // ${NAME} and ${NAME:-default}
	editor   bool // ${env:NAME}, ${input:NAME}, ${userHome}, ${workspaceFolder}, …
	dollar   bool // $NAME and %NAME%
	curly    bool // {env:NAME}
	mustache bool // ${{ secrets.NAME }}
}

// Import is an entry in Sallyport's own words: what the client would have replaced is
// a folder that was filled in, a reference to a variable or to a secret.
type Import struct {
	Name      string
	Transport Transport
	Command   string
	Args      []string
	Cwd       string
	Env       []Pair
	Headers   []Pair
	URL       string
	// Inherit names the variables that it takes from the environment.
	Inherit []string
	// Secrets are names that the client would have asked the person for: they have to
	// be kept first (sallyport secrets set).
	Secrets []string
}

// Convert puts an entry into Sallyport's words, or says by name what has no
// counterpart.
func (one Found) Convert(e Entry) (Import, *coded.Error) {
	if e.Problem != nil {
		return Import{}, e.Problem
	}
	c := converter{found: one, out: Import{Name: e.Name, Transport: e.Transport}}
	c.out.Command = c.home(c.plain("command", e.Command))
	for i, arg := range e.Args {
		c.out.Args = append(c.out.Args, c.home(c.plain(fmt.Sprintf("argument %d", i+1), arg)))
	}
	c.out.Cwd = c.folder(c.home(c.plain("cwd", e.Cwd)))
	c.out.URL = c.plain("the address", e.URL)
	for _, p := range e.Env {
		c.out.Env = append(c.out.Env, Pair{p.Name, c.value(p.Name, p.Value)})
	}
	for _, p := range e.Headers {
		c.out.Headers = append(c.out.Headers, Pair{p.Name, c.value(p.Name, p.Value)})
	}
	for _, name := range e.inherit {
		c.inherit(name)
	}
	for _, name := range e.keys {
		c.out.Env = append(c.out.Env, Pair{name, c.secret(name)})
	}
	if c.problem != "" {
		return Import{}, &coded.Error{Code: "reference-unknown", Sentence: fmt.Sprintf("%s: %s (%s)", show(e.Name), c.problem, e.Place),
			Next: "write the value out in the client's file, or add the connector with sallyport connectors add"}
	}
	return c.out, nil
}

type converter struct {
	found   Found
	out     Import
	problem string
}

func (c *converter) refuse(format string, args ...any) string {
	if c.problem == "" {
		c.problem = fmt.Sprintf(format, args...)
	}
	return ""
}

// placeholder finds everything that some client replaces.
var placeholder = regexp.MustCompile("\x00env:[^\x00]*\x00" + `|\$\{\{[^}]*\}\}|\$\{[^}]*\}?|\{(?:env|file):[^}]*\}|\$[A-Za-z_][A-Za-z0-9_]*|%[A-Za-z_][A-Za-z0-9_]*%`)

// plain converts text in which no reference can stay: the command, an argument, the
// folder, the address.
func (c *converter) plain(field, text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		r := c.read(found)
		if r.kind == refers && (r.name == "HOME" || r.name == "USERPROFILE" && c.found.system.OS == "windows") {
			return c.found.system.Home
		}
		if r.kind == refers || r.kind == asks {
			return c.refuse("%s refers to %s, which is known only when it starts", field, show(found))
		}
		return c.settle(field, r, found)
	})
}

// value converts a variable or a header, in which references stay.
func (c *converter) value(field, text string) string {
	if strings.HasPrefix(text, "secret:") || strings.HasPrefix(text, "env:") {
		return c.refuse("%q is text there and would be a reference here", show(field))
	}
	literal := false
	out := placeholder.ReplaceAllStringFunc(text, func(found string) string {
		r := c.read(found)
		switch r.kind {
		case refers:
			c.inherit(r.name)
			if r.hasDefault {
				return "${" + r.name + ":-" + r.text + "}"
			}
			return "${env:" + r.name + "}"
		case asks:
			c.secret(r.name)
			return "${secret:" + r.name + "}"
		case isLiteral:
			literal = literal || strings.HasPrefix(found, "${")
		}
		return c.settle(field, r, found)
	})
	if literal {
		return c.refuse("%q holds \"${\", which is plain text there and would be a reference here", show(field))
	}
	return out
}

func (c *converter) settle(field string, r reference, found string) string {
	switch r.kind {
	case isLiteral:
		return found
	case fills:
		return r.text
	}
	return c.refuse("%s refers to %s, which has no counterpart here", field, show(found))
}

type referenceKind int

const (
	isLiteral referenceKind = iota
	fills                   // a folder that is known now
	refers                  // a variable
	asks                    // a secret
	unknown
)

type reference struct {
	kind       referenceKind
	name, text string
	hasDefault bool
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func variable(name string) reference {
	if !plainName.MatchString(name) {
		return reference{kind: unknown}
	}
	return reference{kind: refers, name: name}
}

func (c *converter) read(found string) reference {
	s := c.found.syntax
	switch {
	case found[0] == 0:
		return variable(strings.TrimSuffix(strings.TrimPrefix(found, "\x00env:"), "\x00"))
	case strings.HasPrefix(found, "${{"):
		return c.mustache(found)
	case strings.HasPrefix(found, "${"):
		return c.braces(found)
	case found[0] == '{':
		if !s.curly {
			return reference{}
		}
		name, ok := strings.CutPrefix(found, "{env:")
		if !ok {
			return reference{kind: unknown}
		}
		return variable(strings.TrimSuffix(name, "}"))
	case s.dollar:
		return variable(strings.Trim(found, "$%"))
	}
	return reference{}
}

func (c *converter) mustache(found string) reference {
	if !c.found.syntax.mustache {
		return reference{}
	}
	inside := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(found, "${{"), "}}"))
	name, ok := strings.CutPrefix(inside, "secrets.")
	if !ok || !plainName.MatchString(name) {
		return reference{kind: unknown}
	}
	return reference{kind: asks, name: name}
}

func (c *converter) braces(found string) reference {
	s := c.found.syntax
	if !s.braces && !s.editor {
		return reference{}
	}
	inside, closed := strings.CutSuffix(strings.TrimPrefix(found, "${"), "}")
	if !closed {
		return reference{kind: unknown}
	}
	if s.editor {
		if r, ok := c.editor(inside); ok {
			return r
		}
	}
	if !s.braces {
		return reference{kind: unknown}
	}
	name, fallback, hasDefault := strings.Cut(inside, ":-")
	r := variable(name)
	if strings.ContainsAny(fallback, "{}$") {
		return reference{kind: unknown}
	}
	r.text, r.hasDefault = fallback, hasDefault
	return r
}

func (c *converter) editor(inside string) (reference, bool) {
	if name, ok := strings.CutPrefix(inside, "env:"); ok {
		return variable(name), true
	}
	if name, ok := strings.CutPrefix(inside, "input:"); ok {
		return reference{kind: asks, name: secretName(name)}, true
	}
	separator := "/"
	if c.found.system.OS == "windows" {
		separator = `\`
	}
	switch inside {
	case "userHome":
		return reference{kind: fills, text: c.found.system.Home}, true
	case "/", "pathSeparator":
		return reference{kind: fills, text: separator}, true
	case "workspaceFolder", "workspaceFolderBasename":
		if c.found.project == "" {
			return reference{kind: unknown}, true
		}
		if inside == "workspaceFolder" {
			return reference{kind: fills, text: c.found.project}, true
		}
		return reference{kind: fills, text: filepath.Base(c.found.project)}, true
	}
	return reference{}, false
}

// secretName makes a name for the keyring out of one of the client's.
func secretName(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 128 && (r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return r
		}
		return '_'
	}, name)
}

func (c *converter) inherit(name string) {
	if !slices.Contains(c.out.Inherit, name) {
		c.out.Inherit = append(c.out.Inherit, name)
	}
}

func (c *converter) secret(name string) string {
	if !slices.Contains(c.out.Secrets, name) {
		c.out.Secrets = append(c.out.Secrets, name)
	}
	return "secret:" + name
}

// folder is the working folder of a server: of a project's, the project.
func (c *converter) folder(cwd string) string {
	if project := c.found.project; project != "" && !filepath.IsAbs(cwd) && c.out.Transport == Stdio {
		return filepath.Join(project, filepath.FromSlash(cwd))
	}
	return cwd
}

// home fills in a ~ at the beginning: no shell stands between Sallyport and the
// kernel that would.
func (c *converter) home(text string) string {
	if text == "~" {
		return c.found.system.Home
	}
	rest, ok := strings.CutPrefix(text, "~/")
	if !ok && c.found.system.OS == "windows" {
		rest, ok = strings.CutPrefix(text, `~\`)
	}
	if !ok {
		return text
	}
	return filepath.Join(c.found.system.Home, filepath.FromSlash(rest))
}
