package plugins

import "fmt"

// Budget limits what one connector may use (spec/child-environment.md 8). A field
// that is zero was not asked for: Effective says what holds then. The defaults are no
// part of the identity, since nobody asked for them.
type Budget struct {
	// MemoryBytes is the memory of the whole tree that it shares with nobody.
	MemoryBytes int64 `json:"memoryBytes,omitempty"`
	// CPUSeconds are of the whole tree, within any hour: a server that runs for a year
	// is not to meet a limit for having lived long.
	CPUSeconds int64 `json:"cpuSeconds,omitempty"`
	// OpenFiles are those of each process.
	OpenFiles int64 `json:"openFiles,omitempty"`
	// Processes are those of the whole tree.
	Processes int64 `json:"processes,omitempty"`
	// Calls are requests that wait for the server's answer.
	Calls int64 `json:"calls,omitempty"`
	// ResultBytes is the size of one answer.
	ResultBytes int64 `json:"resultBytes,omitempty"`
	// Required refuses the start where this system cannot enforce what is asked for.
	// Only the operator can say it.
	Required bool `json:"required,omitempty"`
}

// limit is one number of a budget: its name, where it stands, what holds where nobody
// asked, and the most that a package may ask for.
type limit struct {
	name         string
	at           *int64
	usual, asked int64
}

// limits are the numbers of b. The defaults are far above what was measured
// (docs/decisions/0021-budgets-that-nobody-meets.md).
func (b *Budget) limits() []limit {
	return []limit{
		{"memoryBytes", &b.MemoryBytes, 4 << 30, 64 << 30},
		{"cpuSeconds", &b.CPUSeconds, 4 * 3600, 64 * 3600},
		{"openFiles", &b.OpenFiles, 8192, 1 << 20},
		{"processes", &b.Processes, 256, 4096},
		{"calls", &b.Calls, 256, 1024},
		{"resultBytes", &b.ResultBytes, MaxFrameLimit, MaxFrameLimit},
	}
}

// Effective returns what holds: b with the defaults in the place of what nobody asked
// for.
func (b Budget) Effective() Budget {
	for _, l := range b.limits() {
		if *l.at == 0 {
			*l.at = l.usual
		}
	}
	return b
}

// Valid reports whether no number is below zero.
func (b Budget) Valid() bool {
	for _, l := range b.limits() {
		if *l.at < 0 {
			return false
		}
	}
	return true
}

// overlay puts the operator's numbers in the place of the package's. They have no
// upper end: whoever owns the machine may give it away.
func (b *Budget) overlay(o Budget) string {
	if !o.Valid() {
		return "a budget is negative"
	}
	own := o.limits()
	for i, l := range b.limits() {
		if *own[i].at > 0 {
			*l.at = *own[i].at
		}
	}
	b.Required = o.Required
	return ""
}

// readBudget reads what a package asks for.
func readBudget(n *node) (Budget, string) {
	var b Budget
	if n.kind != '{' {
		return b, "budget is " + n.kindName() + ", not an object"
	}
	limits := map[string]limit{}
	for _, l := range b.limits() {
		limits[l.name] = l
	}
	for _, m := range n.members {
		l, known := limits[m.name]
		if !known {
			return Budget{}, fmt.Sprintf("budget has an unknown field %s", show(m.name))
		}
		var sentence string
		if *l.at, sentence = amount(m.value, "budget."+m.name, l.asked); sentence != "" {
			return Budget{}, sentence
		}
	}
	return b, ""
}
