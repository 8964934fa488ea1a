package approvals

import (
	"slices"
	"strconv"

	"sallyport/internal/jcs"
	"sallyport/runtime/env"
	"sallyport/runtime/permissions"
	"sallyport/runtime/plugins"
)

// NoArtifact stands for the digest of a connector that has no bundle.
const NoArtifact = "none"

// Fields is everything an approval is bound to (spec/approval.md 2.1, 2.1a). The
// JSON names are part of the identity: changing one is a new prefix, never an
// edit. PLUGIN_ROOT and PLUGIN_DATA stand symbolic, secrets as references.
type Fields struct {
	Plugin     string      `json:"plugin"`
	Binding    string      `json:"binding"`
	Source     string      `json:"source"`
	Version    string      `json:"version"`
	Artifact   string      `json:"artifact"` // "a1:…" or NoArtifact
	Transport  string      `json:"transport"`
	Command    Text        `json:"command"`
	Executable *Program    `json:"executable"` // nil for a connector that is dialled
	Inputs     []Input     `json:"inputs"`
	Args       []Text      `json:"args"`
	Cwd        Text        `json:"cwd"`
	Env        []Entry     `json:"env"`     // sorted by name
	Inherit    []string    `json:"inherit"` // names taken from the parent, sorted
	URL        Text        `json:"url"`
	Headers    []Entry     `json:"headers"` // sorted by name
	Permitted  Permissions `json:"permissions"`
	Options    Options     `json:"options"`
	// Publisher is whose signature the installed package carried. It came later
	// than the others and is left out where there is none.
	Publisher string `json:"publisher,omitempty"`
}

// Text is one declared text and what it expands to.
type Text struct {
	Declared string `json:"declared"`
	Expanded string `json:"expanded"`
}

// Entry is a declared environment variable or header. Its value is as declared:
// a reference stays a reference.
type Entry struct {
	Name     string `json:"name"`
	Value    string `json:"value"`
	Operator bool   `json:"operator"` // references are read in it
	// Expanded is the value with its placeholders in place and its references as
	// references, where the format has placeholders other than the two folders of
	// Agent Plugins and the value uses one.
	Expanded string `json:"expanded,omitempty"`
}

// Input is a file that an argument or an environment value names.
type Input struct {
	At     string `json:"at"` // "args[1]", "env.CONFIG"
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// Program is an executable as found. Exactly one of SHA256, InBundle and
// Protected says why its bytes cannot change unnoticed.
type Program struct {
	Found        string    `json:"found"`
	Real         string    `json:"real"`
	SHA256       string    `json:"sha256"`
	InBundle     bool      `json:"inBundle"`
	Protected    bool      `json:"protected"`
	Shim         string    `json:"shim"`
	Interpreters []Program `json:"interpreters"`
}

// Permissions is permissions.Set with every list present and sorted.
type Permissions struct {
	Tools   []string `json:"tools"`
	Net     []string `json:"net"`
	Secrets []string `json:"secrets"`
	FS      []string `json:"fs"`
}

// Options are the options that loosen a default. Numbers are decimal text, since
// a JSON number above 2^53 has more than one reading.
type Options struct {
	MaxFrame    string `json:"maxFrame"`
	StdoutNoise string `json:"stdoutNoise"`
	MemoryBytes string `json:"memoryBytes"`
	CPUSeconds  string `json:"cpuSeconds"`
	OpenFiles   string `json:"openFiles"`
	Processes   string `json:"processes"`
	// NotSecret is sorted, and absent where it is empty.
	NotSecret []string `json:"notSecret,omitempty"`
	// The rest of the budget is absent where nobody asked for it.
	Calls          string `json:"calls,omitempty"`
	ResultBytes    string `json:"resultBytes,omitempty"`
	BudgetRequired bool   `json:"budgetRequired,omitempty"`
}

// Identity returns "i1:" and the hex SHA-256 of the fields' RFC 8785 form
// (spec/approval.md 2.2), or "" when a text is not valid UTF-8: that has no
// identity, and "" equals no approved one.
func (f Fields) Identity() Identity {
	sum, err := jcs.Sum("i1:", f.normal())
	if err != nil {
		return ""
	}
	return Identity(sum)
}

// normal returns f with every list present, so that absent and empty are one.
func (f Fields) normal() Fields {
	f.Inputs = present(f.Inputs)
	f.Args = present(f.Args)
	f.Env = present(f.Env)
	f.Inherit = present(f.Inherit)
	f.Headers = present(f.Headers)
	f.Permitted.Tools = present(f.Permitted.Tools)
	f.Permitted.Net = present(f.Permitted.Net)
	f.Permitted.Secrets = present(f.Permitted.Secrets)
	f.Permitted.FS = present(f.Permitted.FS)
	if f.Executable != nil {
		program := f.Executable.normal()
		f.Executable = &program
	}
	return f
}

func (p Program) normal() Program {
	chain := make([]Program, len(p.Interpreters))
	for i, inner := range p.Interpreters {
		chain[i] = inner.normal()
	}
	p.Interpreters = chain
	return p
}

func present[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// permissionFields returns set as fields: sorted, since order means nothing there.
func permissionFields(set permissions.Set) Permissions {
	return Permissions{
		Tools:   sorted(set.Tools),
		Net:     sorted(set.Net),
		Secrets: sorted(set.Secrets),
		FS:      sorted(set.FS),
	}
}

// Set returns the permissions as the permissions package speaks of them.
func (p Permissions) Set() permissions.Set {
	return permissions.Set{Tools: p.Tools, Net: p.Net, Secrets: p.Secrets, FS: p.FS}
}

func sorted(list []string) []string {
	out := slices.Clone(list)
	slices.Sort(out)
	return present(slices.Compact(out))
}

func optionFields(o plugins.Options) Options {
	decimal := func(n int64) string { return strconv.FormatInt(n, 10) }
	return Options{
		MaxFrame:    decimal(o.MaxFrame),
		StdoutNoise: o.StdoutNoise,
		MemoryBytes: decimal(o.Budget.MemoryBytes),
		CPUSeconds:  decimal(o.Budget.CPUSeconds),
		OpenFiles:   decimal(o.Budget.OpenFiles),
		Processes:   decimal(o.Budget.Processes),
		NotSecret:   o.NotSecret,

		Calls: asked(o.Budget.Calls), ResultBytes: asked(o.Budget.ResultBytes), BudgetRequired: o.Budget.Required,
	}
}

// asked is a number that is no field where nobody asked for it.
func asked(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// programFields returns e as fields, with symbolic put on every path.
func programFields(e env.Executable, symbolic func(string) string) Program {
	p := Program{
		Found:     symbolic(e.Found),
		Real:      symbolic(e.Real),
		SHA256:    e.SHA256,
		InBundle:  e.InBundle,
		Protected: e.Protected,
		Shim:      e.Shim,
	}
	for _, inner := range e.Interpreters {
		p.Interpreters = append(p.Interpreters, programFields(inner, symbolic))
	}
	return p
}
