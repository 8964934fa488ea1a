package approvals

import (
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/coded"
	"sallyport/runtime/plugins"
)

// Scope says which connectors and tools a client sees (spec/permissions.md). The
// zero Scope sees none.
type Scope struct {
	All bool `json:"all"`
	// Only lists "PLUGIN/SERVER" or "PLUGIN/SERVER:TOOL".
	Only []string `json:"only"`
	// OriginalNames shows tools under the server's own names: only where the scope
	// is exactly one connector, so that no two can clash.
	OriginalNames bool `json:"originalNames"`
}

// entry takes a line of Only apart. The first colon ends the connector, so that a
// line has one reading: a server whose name holds a colon can be seen by a scope of
// everything only, and never by one that was meant for a tool.
func entry(line string) (id, tool string, whole bool) {
	id, tool, found := strings.Cut(line, ":")
	return id, tool, !found
}

func (s Scope) covers(id, tool string) bool {
	return slices.ContainsFunc(s.Only, func(line string) bool {
		of, name, whole := entry(line)
		return of == id && (whole || name == tool)
	})
}

func (s Scope) whole(id string) bool {
	return slices.ContainsFunc(s.Only, func(line string) bool {
		of, _, whole := entry(line)
		return of == id && whole
	})
}

func (s Scope) sees(id string) bool {
	return s.All || slices.ContainsFunc(s.Only, func(line string) bool {
		of, _, _ := entry(line)
		return of == id
	})
}

func (s Scope) check() error {
	connectors := map[string]bool{}
	for _, line := range s.Only {
		id, _, _ := entry(line)
		if _, err := plugins.ParseID(id); err != nil || Visible(line) != line {
			return &coded.Error{Code: "scope-invalid", Sentence: fmt.Sprintf("the scope entry %q is not PLUGIN/SERVER or PLUGIN/SERVER:TOOL", Visible(line)),
				Next: "see the whole names: sallyport tools"}
		}
		connectors[id] = true
	}
	if s.All && len(s.Only) > 0 {
		return coded.New("scope-invalid", "a scope is everything or a list, not both")
	}
	if s.OriginalNames && (s.All || len(connectors) != 1) {
		return coded.New("scope-invalid", "a client sees original names only where its scope is exactly one connector")
	}
	return nil
}

// with returns s and what the lines name. A connector as a whole takes the place of
// its tools.
func (s Scope) with(lines []string) (Scope, error) {
	if s.All {
		return s, &coded.Error{Code: "scope-all", Sentence: "the client sees everything that is enabled already",
			Next: "to let it see less: sallyport clients revoke NAME ID"}
	}
	next := s
	next.Only = slices.Clone(s.Only)
	for _, line := range lines {
		id, tool, whole := entry(line)
		switch {
		case whole:
			next.Only = append(next.drop(id), line)
		case !next.covers(id, tool):
			next.Only = append(next.Only, line)
		}
	}
	slices.Sort(next.Only)
	return next, next.check()
}

// without returns s less what the lines name. What was granted in one word is spelled
// out first, by what there is now, so that what is enabled or listed later is not seen
// until it is granted: a scope that was narrowed stays narrow.
func (s Scope) without(lines []string, enabled []string, tools func(id string) []string) (Scope, error) {
	next := s
	next.Only = slices.Clone(s.Only)
	if s.All {
		next.All, next.Only = false, slices.Clone(enabled)
	}
	for _, line := range lines {
		id, tool, whole := entry(line)
		if !s.All && (whole && !next.sees(id) || !whole && !next.covers(id, tool)) {
			return s, &coded.Error{Code: "scope-absent", Sentence: fmt.Sprintf("the client does not see %q", Visible(line)),
				Next: "see what it sees: sallyport clients show NAME"}
		}
		if !whole && next.whole(id) {
			next.Only = next.drop(id)
			for _, one := range tools(id) {
				next.Only = append(next.Only, id+":"+one)
			}
		}
		if whole {
			next.Only = next.drop(id)
		} else {
			next.Only = slices.DeleteFunc(next.Only, func(l string) bool { return l == line })
		}
	}
	if len(next.Only) == 0 {
		next.OriginalNames = false // it is for exactly one connector
	}
	slices.Sort(next.Only)
	return next, next.check()
}

// drop returns Only without a connector.
func (s Scope) drop(id string) []string {
	return slices.DeleteFunc(slices.Clone(s.Only), func(line string) bool {
		of, _, _ := entry(line)
		return of == id
	})
}
