package host

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/plugins"
)

// Named reads PLUGIN/SERVER or PLUGIN/SERVER:TOOL as an operator types it, a plugin's name
// alone where it has one server, and refuses what does not exist: a rule or a scope about a
// name with a wrong letter would say nothing, and look as if it did. Tools are known of a
// connector that is approved.
func (h *Host) Named(ctx context.Context, text string) (string, error) {
	name, tool, hasTool := strings.Cut(text, ":")
	id, err := h.Find(ctx, name)
	if err == nil {
		found, scanErr := h.Listing(ctx)
		if scanErr != nil {
			return "", scanErr
		}
		if _, ok := found.Connector(id); !ok {
			err = &coded.Error{Code: "plugin-unknown", Sentence: fmt.Sprintf("there is no connector %q", approvals.Visible(name)), Next: "see what there is: sallyport plugins list"}
		}
	}
	if coded.Of(err) == "plugin-unknown" {
		if near := nearest(name, h.connectorNames(ctx)); near != "" {
			return "", &coded.Error{Code: "plugin-unknown", Sentence: fmt.Sprintf("there is no connector %q", approvals.Visible(name)), Next: "did you mean " + approvals.Visible(near) + "? otherwise: sallyport plugins list"}
		}
	}
	switch {
	case coded.Of(err) == "id-invalid":
		return text, nil // no name at all: whoever takes it says what it should be
	case err != nil:
		return "", err
	case !hasTool:
		return id.String(), nil
	}
	approved, ok := h.Gate.Approved(id)
	if !ok {
		return id.String() + ":" + tool, nil
	}
	var tools []string
	for _, one := range approved.Tools {
		tools = append(tools, one.Name)
	}
	if !slices.Contains(tools, tool) {
		refusal := &coded.Error{Code: "tool-unknown", Sentence: fmt.Sprintf("%s has no tool %q that is allowed", id, approvals.Visible(tool)), Next: "see which there are: sallyport tools list"}
		if near := nearest(tool, tools); near != "" {
			refusal.Next = "did you mean " + approvals.Visible(near) + "? otherwise: sallyport tools list"
		}
		return "", refusal
	}
	return id.String() + ":" + tool, nil
}

func (h *Host) connectorNames(ctx context.Context) (names []string) {
	found, err := h.Listing(ctx)
	if err != nil {
		return nil
	}
	for _, c := range found.Connectors() {
		names = append(names, c.ID.String())
		if c.ID.Plugin != plugins.ByHand {
			names = append(names, c.ID.Plugin)
		}
	}
	return names
}

// nearest is the name that a mistyped one was most likely meant to be, or "": at most two
// signs differ, and not most of the name.
func nearest(typed string, names []string) (near string) {
	best := min(2, len(typed)/3) + 1
	for _, name := range names {
		if n := apart(typed, name, best); n < best {
			best, near = n, name
		}
	}
	return near
}

// apart is how many signs have to be added, taken away or changed, two neighbours that
// changed places counting as one; it is limit where they are as many or more.
func apart(a, b string, limit int) int {
	x, y := []rune(a), []rune(b)
	if len(x) > 200 || len(y) > 200 || max(len(x)-len(y), len(y)-len(x)) >= limit {
		return limit
	}
	before, row := make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(x); i++ {
		earlier := before
		before, row = row, make([]int, len(y)+1)
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(before[j]+1, row[j-1]+1, before[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], earlier[j-2]+1)
			}
		}
	}
	return min(row[len(y)], limit)
}
