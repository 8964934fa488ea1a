// Package env builds the exact environment, arguments and working folder that a
// plugin's process starts with.
//
// The one idea: nothing of the parent's environment reaches a child unless
// spec/child-environment.md lists it or the operator approved it by name.
//
// It starts nothing and knows no approvals. approvals and process import it.
package env

import "context"

// Parent is the environment of Sallyport's own process, taken once and handed
// in, so that tests inject another one.
type Parent struct {
	System string            // runtime.GOOS of the rules to use
	Vars   map[string]string // names as given
}

// Declared is one entry that a connector declares.
type Declared struct {
	Name, Value string
	// References is true where spec/child-environment.md 5 allows them (the
	// operator's overlay); otherwise only ${PLUGIN_ROOT} and ${PLUGIN_DATA} expand.
	References bool
}

// Request is everything that a child's environment is made of.
type Request struct {
	Parent   Parent
	Path     string // the user's own PATH (UserPath), as stored with the approval
	Declared []Declared
	Inherit  []string
	Secrets  []string // names that permissions.secrets lists
	Root     string   // PLUGIN_ROOT
	Data     string   // PLUGIN_DATA
	Claude   bool     // also CLAUDE_PLUGIN_ROOT and CLAUDE_PLUGIN_DATA
}

// Plan is a built environment whose references are not resolved yet.
type Plan struct {
	Vars   []Var // sorted by name
	Root   string
	Data   string
	parent Parent
}

// Var is one variable of a Plan.
type Var struct {
	Name string
	// Source says where the value comes from: "parent", "path", "sallyport",
	// "declared", "operator", "inherited", "reference".
	Source string
	// Reference is what a "reference" refers to ("secret:NAME", "env:NAME").
	Reference string
	value     string
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
	SHA256  string // of Real; "" when InBundle or Protected
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
