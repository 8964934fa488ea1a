// Package env builds the exact environment, arguments and working folder that a
// plugin's process starts with, and finds the executable.
//
// The one idea: nothing of the parent's environment reaches a child unless
// spec/child-environment.md lists it or the operator approved it by name.
//
// It starts nothing but the user's login shell, once, to learn PATH (UserPath),
// and it knows no approvals. approvals and process import it.
package env

import (
	"context"
	"strings"

	"sallyport/runtime/plugins"
)

// Parent is the environment of Sallyport's own process, taken once and handed
// in, so that tests inject another one.
type Parent struct {
	System string            // runtime.GOOS of the rules to use
	Vars   map[string]string // names as given
}

// ParentOf reads a Parent from the form that os.Environ gives. The later of two
// equal names wins; Windows' hidden "=C:" entries are dropped.
func ParentOf(system string, environ []string) Parent {
	vars := make(map[string]string, len(environ))
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			vars[name] = value
		}
	}
	return Parent{System: system, Vars: vars}
}

// Lookup returns the variable as the parent's system would find it: without
// case on Windows.
func (p Parent) Lookup(name string) (string, bool) {
	_, value, ok := p.find(name)
	return value, ok
}

// find also returns the name as the parent spells it.
func (p Parent) find(name string) (spelled, value string, ok bool) {
	if value, ok = p.Vars[name]; ok || !p.windows() {
		return name, value, ok
	}
	for other, value := range p.Vars {
		if strings.EqualFold(other, name) {
			return other, value, true
		}
	}
	return "", "", false
}

func (p Parent) windows() bool { return p.System == "windows" }

// Declared is one entry that a connector declares.
type Declared struct {
	Name, Value string
	// References is true where spec/child-environment.md 5 allows them (what the
	// operator wrote); otherwise only what the dialect has expands.
	References bool
}

// Request is everything that a child's environment is made of.
type Request struct {
	Parent Parent
	// Path is the user's own PATH (UserPath), as stored with the approval. Without
	// one it is the parent's, less its empty and relative entries: Build reads no
	// disk, so that world-writable ones are only dropped by UserPath.
	Path     string
	Declared []Declared
	Inherit  []string
	Secrets  []string // names that permissions.secrets lists
	Root     string   // PLUGIN_ROOT; "" without a bundle
	Data     string   // PLUGIN_DATA
	// Dialect says what the texts may hold; the zero value is that of Agent Plugins.
	Dialect  plugins.Dialect
	Settings []plugins.Setting
	Exempt   Exempt // literals that the operator said are no secrets
}

// Plan is a built environment whose references are not resolved yet.
type Plan struct {
	Vars   []Var // sorted by name
	Root   string
	Data   string
	parent Parent
	scope  scope
	exempt Exempt
}

// The sources of a Var.
const (
	FromParent    = "parent"    // spec/child-environment.md 1
	FromPath      = "path"      // the user's own PATH
	FromSallyport = "sallyport" // spec/child-environment.md 2
	FromDeclared  = "declared"  // a literal of the package
	FromOperator  = "operator"  // a literal of the operator's overlay
	FromInherited = "inherited" // approved by name, spec/child-environment.md 4
	FromReference = "reference" // spec/child-environment.md 5
)

// Var is one variable of a Plan.
type Var struct {
	Name string
	// Source says where the value comes from, one of the From constants.
	Source string
	// Reference is what a "reference" refers to ("secret:NAME", "env:NAME"), in
	// order and joined with ", " when there are several.
	Reference string
	// Text is what the connector declared, placeholders and references symbolic;
	// "" for everything that it did not declare.
	Text  string
	value template
}

// Secrets gives the values of secret: references at the moment of start.
type Secrets interface {
	Secret(ctx context.Context, name string) (string, error)
}

// Executable is a command as found.
type Executable struct {
	Command string // as declared
	Found   string // the path that runs
	Real    string // after resolving links
	SHA256  string // of Real, lower-case hex; "" when InBundle or Protected
	// InBundle: the artifact digest already covers it.
	InBundle bool
	// Protected: Sallyport's user can write neither the file nor any folder above.
	Protected bool
	// Interpreters is the #! chain, outermost first.
	Interpreters []Executable
	// Shim names a version manager whose shim this is ("" if none): the code is
	// then not fixed by the approval.
	Shim string
}
