// Package permissions holds the words for what a plugin may do.
//
// The one idea: a package requests, the operator approves, and what was
// approved can only be narrower than what was requested (spec/permissions.md).
//
// It does not enforce anything: each seam (dispatch, start, secrets, dial) asks
// it and refuses by itself. Every package under runtime may import it.
package permissions

// Set is the four lists of spec/permissions.md. A nil list and an empty one
// mean the same: nothing of that kind.
type Set struct {
	Tools   []string `json:"tools,omitempty"`
	Net     []string `json:"net,omitempty"`
	Secrets []string `json:"secrets,omitempty"`
	FS      []string `json:"fs,omitempty"`
}

// Class is the risk class of a tool.
type Class string

// The classes of spec/permissions.md, from least to most care.
const (
	Read        Class = "read"
	Write       Class = "write"
	Destructive Class = "destructive"
	Unknown     Class = "unknown"
)
