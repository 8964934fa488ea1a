package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"sallyport/runtime/plugins"
)

// Problem is a tool or prompt that an agent does not get to see, and why.
type Problem struct {
	Client    string
	Connector plugins.ID
	Name      string // the server's own
	Code      string // "name-clash" or "bad-definition"
	Sentence  string
}

// view is a catalog made ready for one client: sorted, named and searchable.
// It does not change once it is made.
type view struct {
	revision   uint64
	connectors map[plugins.ID]*Exposed
	order      []*Exposed // by id
	tools      []listed   // by exposed name
	prompts    []listed
	templates  []listed
	toolBy     map[string]*listed
	promptBy   map[string]*listed
	clashes    map[string]string // exposed name → the sentence about it
	problems   []Problem
	originals  bool
	text       string // instructions
}

// listed is one definition as the client sees it.
type listed struct {
	exposed    string
	original   string
	connector  *Exposed
	definition json.RawMessage // with the exposed name in it
	headers    []headerBinding // x-mcp-header parameters of a tool
}

// newView names everything in a catalog.
func newView(client string, c Catalog) *view {
	v := &view{
		revision:   c.Revision,
		connectors: make(map[plugins.ID]*Exposed, len(c.Connectors)),
		clashes:    map[string]string{},
		originals:  c.OriginalNames && len(c.Connectors) == 1,
	}
	for i := range c.Connectors {
		connector := &c.Connectors[i]
		v.connectors[connector.ID] = connector
		v.order = append(v.order, connector)
	}
	slices.SortFunc(v.order, func(a, b *Exposed) int {
		return cmp.Or(cmp.Compare(a.ID.Plugin, b.ID.Plugin), cmp.Compare(a.ID.Server, b.ID.Server))
	})
	var tools, prompts []listed
	for _, connector := range v.order {
		for _, tool := range connector.Tools {
			tools = v.add(tools, connector, tool.Name, tool.Definition)
		}
		for _, prompt := range connector.Prompts {
			prompts = v.add(prompts, connector, text(prompt, "name"), prompt)
		}
		for _, template := range connector.Templates {
			v.templates = append(v.templates, listed{
				original: text(template, "uriTemplate"), connector: connector, definition: template,
			})
		}
	}
	v.tools, v.toolBy = v.settle(tools, "tool")
	v.prompts, v.promptBy = v.settle(prompts, "prompt")
	for i := range v.tools {
		v.tools[i].headers = headerBindings(v.tools[i].definition)
	}
	v.text = instructions(v.order, v.originals)
	for i := range v.problems {
		v.problems[i].Client = client
	}
	return v
}

// add renames one definition, or reports why it cannot be shown.
func (v *view) add(to []listed, connector *Exposed, original string, definition json.RawMessage) []listed {
	exposed := original
	if !v.originals {
		exposed = ExposedName(connector.ID, original)
	}
	shown, ok := rename(definition, exposed)
	if !ok || original == "" {
		v.problems = append(v.problems, Problem{
			Connector: connector.ID, Name: original, Code: "bad-definition",
			Sentence: fmt.Sprintf("the definition of %q of %s is not an object with one name", original, connector.ID),
		})
		return to
	}
	return append(to, listed{exposed: exposed, original: original, connector: connector, definition: shown})
}

// settle sorts by exposed name and takes out every name that is there twice:
// which of the two an agent means cannot be known.
func (v *view) settle(all []listed, noun string) ([]listed, map[string]*listed) {
	slices.SortStableFunc(all, func(a, b listed) int { return strings.Compare(a.exposed, b.exposed) })
	kept := make([]listed, 0, len(all))
	for i := 0; i < len(all); {
		j := i + 1
		for j < len(all) && all[j].exposed == all[i].exposed {
			j++
		}
		if j == i+1 {
			kept = append(kept, all[i])
		} else {
			v.clash(all[i:j], noun)
		}
		i = j
	}
	by := make(map[string]*listed, len(kept))
	for i := range kept {
		by[kept[i].exposed] = &kept[i]
	}
	return kept, by
}

func (v *view) clash(same []listed, noun string) {
	owners := make([]string, len(same))
	for i, one := range same {
		owners[i] = fmt.Sprintf("%q of %s", one.original, one.connector.ID)
	}
	sentence := fmt.Sprintf("the %s name %q stands for more than one %s: %s", noun, same[0].exposed, noun, strings.Join(owners, " and "))
	v.clashes[noun+" "+same[0].exposed] = sentence
	for _, one := range same {
		v.problems = append(v.problems, Problem{
			Connector: one.connector.ID, Name: one.original, Code: "name-clash", Sentence: sentence,
		})
	}
}

// rename returns the definition with its name replaced. It is not ok unless there
// is exactly one name and that is a string.
func rename(definition []byte, name string) (json.RawMessage, bool) {
	var at field
	found := 0
	for walk := members(definition); ; {
		f, ok := walk.next()
		if !ok {
			break
		}
		if f.named("name") {
			at = f
			found++
		}
	}
	if found != 1 || definition[at.start] != '"' {
		return nil, false
	}
	if unquote(definition[at.start:at.end]) == name {
		return definition, true
	}
	return splice(definition, at.start, at.end, quote(name)), true
}

// instructions joins what the servers say about themselves. Each text is headed by
// its connector, which is also how its tools are named, and every line of it is
// quoted: no text can look like the heading of another one. Where there is only one
// connector under its own names, its text is passed as it is.
func instructions(order []*Exposed, originals bool) string {
	var parts []string
	for _, connector := range order {
		if connector.Instructions == "" {
			continue
		}
		if originals {
			return connector.Instructions
		}
		parts = append(parts, connector.ID.String()+" says:\n"+quoted(connector.Instructions))
	}
	return strings.Join(parts, "\n\n")
}

// quoted puts a mark in front of every line, whatever its reader takes for the end
// of one.
func quoted(text string) string {
	const mark = "> "
	var out strings.Builder
	out.WriteString(mark)
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		out.WriteString(text[i : i+size])
		if endsLine(r) && !(r == '\r' && strings.HasPrefix(text[i+1:], "\n")) {
			out.WriteString(mark)
		}
	}
	return out.String()
}

func endsLine(r rune) bool {
	return '\n' <= r && r <= '\r' || '\x1c' <= r && r <= '\x1e' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

// has reports whether the connector's capabilities name what; unknown
// capabilities are not held against it.
func (e *Exposed) has(what string) bool {
	if len(bytes.TrimSpace(e.Capabilities)) == 0 {
		return true
	}
	_, ok := lookup(e.Capabilities, what)
	return ok
}
