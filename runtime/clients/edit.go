package clients

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"sallyport/internal/coded"
)

// splice replaces the bytes from..to of a text.
type splice struct {
	from, to int
	with     string
}

// spliced applies splices that do not overlap.
func spliced(text string, all ...splice) string {
	slices.SortFunc(all, func(a, b splice) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	var out strings.Builder
	at := 0
	for _, s := range all {
		out.WriteString(text[at:s.from])
		out.WriteString(s.with)
		at = s.to
	}
	out.WriteString(text[at:])
	return out.String()
}

// errUnsafe means that an edit cannot be made without touching what is not ours.
var errUnsafe = errors.New("cannot be edited without touching more than the entry")

// editor puts entries into one holder of servers and takes them out, by splices.
type editor struct {
	format format
	shape  shape
}

// insertion is an entry to be put in: a value to be written, or text as it stood.
type insertion struct {
	name  string
	value value
	raw   string // as remove gave it; "" writes the value
}

// insert puts an entry in.
func (e editor) insert(text string, in insertion) (string, error) {
	root, err := parse(e.format, text)
	if err != nil {
		return "", err
	}
	if root.kind != isObject || e.hasOddLines(text) {
		return "", errUnsafe
	}
	switch e.format {
	case isTOML:
		return e.insertTOML(text, root, in)
	case isYAML:
		return e.insertYAML(text, root, in)
	}
	return e.insertJSON(text, root, in)
}

// remove takes an entry out and returns it as it stood.
func (e editor) remove(text, name string) (rest, raw string, err error) {
	root, err := parse(e.format, text)
	if err != nil {
		return "", "", err
	}
	if e.hasOddLines(text) {
		return "", "", errUnsafe
	}
	switch e.format {
	case isTOML:
		return e.removeTOML(text, name)
	case isYAML:
		return e.removeYAML(text, root, name)
	}
	return e.removeJSON(text, root, name)
}

// hasOddLines reports whether a lone carriage return ends a line somewhere: the readers
// of formats that go by lines do not agree where such lines are.
func (e editor) hasOddLines(text string) bool {
	byLines := e.format == isTOML || e.format == isYAML
	return byLines && strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\r")
}

// edited is text with own put in (or in the place of one of that name) and others
// taken out. What comes out is read again: everything else must be as it was.
func (e editor) edited(text string, own *insertion, without ...string) (string, map[string]string, error) {
	before, err := parse(e.format, text)
	if err != nil {
		return "", nil, err
	}
	removed := map[string]string{}
	now, put := text, own != nil
	if own != nil {
		if there := e.find(before, own.name); there != nil && own.raw == "" && sameNode(there, nodeOf(e.shape.dressed(*own).value)) {
			put = false // it is as it should be, wherever it stands
		} else if there != nil {
			without = append([]string{own.name}, without...)
		}
	}
	for _, name := range without {
		var raw string
		if now, raw, err = e.remove(now, name); err != nil {
			return "", nil, err
		}
		removed[name] = raw
	}
	if put {
		if now, err = e.insert(now, *own); err != nil {
			return "", nil, err
		}
	}
	after, err := parse(e.format, now)
	if err != nil || !e.onlyDiffers(before, after, own, without) {
		return "", nil, errUnsafe
	}
	return now, removed, nil
}

// find returns the value of an entry.
func (e editor) find(root *node, name string) *node {
	holder := root.path(e.shape.path...)
	if holder != nil && holder.kind == isList {
		for _, item := range holder.items {
			if got, _ := item.textAt("name"); got == name {
				return item
			}
		}
		return nil
	}
	return holder.get(name)
}

// onlyDiffers compares two trees but for the entries that were meant to change, and
// own with what was meant to be there.
func (e editor) onlyDiffers(before, after *node, own *insertion, without []string) bool {
	for _, name := range without {
		if (own == nil || name != own.name) && e.find(after, name) != nil {
			return false
		}
	}
	if own != nil {
		now := e.find(after, own.name)
		if now == nil || own.raw == "" && !sameNode(now, nodeOf(e.shape.dressed(*own).value)) {
			return false
		}
		without = append(slices.Clone(without), own.name)
	}
	return sameNode(stripped(before, e.shape.path, without), stripped(after, e.shape.path, without))
}

// stripped copies a tree without some entries of the holder, and without holders
// that are empty then.
func stripped(n *node, path, without []string) *node {
	out := *n
	if len(path) == 0 {
		out.members = slices.DeleteFunc(slices.Clone(n.members), func(m member) bool { return slices.Contains(without, m.name) })
		out.items = slices.DeleteFunc(slices.Clone(n.items), func(item *node) bool {
			name, _ := item.textAt("name")
			return slices.Contains(without, name)
		})
		return &out
	}
	out.members = nil
	for _, m := range n.members {
		if m.name == path[0] {
			m.value = stripped(m.value, path[1:], without)
			if len(m.value.members)+len(m.value.items) == 0 && m.value.kind != isText {
				continue
			}
		}
		out.members = append(out.members, m)
	}
	return &out
}

// sameNode compares values; the order of an object's names is no part of it.
func sameNode(a, b *node) bool {
	if a.kind != b.kind || a.text != b.text || len(a.members) != len(b.members) || len(a.items) != len(b.items) {
		return false
	}
	for i := range a.items {
		if !sameNode(a.items[i], b.items[i]) {
			return false
		}
	}
	left, right := sortedMembers(a), sortedMembers(b)
	for i := range left {
		if left[i].name != right[i].name || !sameNode(left[i].value, right[i].value) {
			return false
		}
	}
	return true
}

func sortedMembers(n *node) []member {
	return slices.SortedStableFunc(slices.Values(n.members), func(a, b member) int { return cmp.Compare(a.name, b.name) })
}

func nodeOf(v value) *node {
	n := &node{kind: v.kind, text: v.text}
	for _, item := range v.list {
		n.items = append(n.items, nodeOf(item))
	}
	for _, m := range v.members {
		n.members = append(n.members, member{name: m.name, value: nodeOf(m.value)})
	}
	return n
}

// canonical is a value as one text, so that two can be compared by a hash.
func canonical(n *node) string {
	var out strings.Builder
	out.WriteByte(byte(n.kind))
	text, _ := json.Marshal(n.text) // text always encodes
	out.Write(text)
	for _, item := range n.items {
		out.WriteString(canonical(item) + ",")
	}
	for _, m := range sortedMembers(n) {
		name, _ := json.Marshal(m.name)
		out.Write(name)
		out.WriteString(":" + canonical(m.value) + ",")
	}
	return out.String()
}

// dressed adds the name to an entry that stands in a list.
func (s shape) dressed(in insertion) insertion {
	if s.list && in.raw == "" {
		in.value.members = append([]pair{{"name", textOf(in.name)}}, in.value.members...)
	}
	return in
}

// quoted is text as JSON, TOML and YAML all take it.
func quoted(text string) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string always encodes
	return strings.ReplaceAll(strings.TrimSuffix(out.String(), "\n"), "\x7f", `\u007f`)
}

// refusal is what people see of an edit that is not made: with what to paste.
func (e editor) refusal(err error, snippet string) *coded.Error {
	why := "the file cannot be edited without touching more than the entry"
	var syntax *syntaxError
	if errors.As(err, &syntax) {
		why = "the file cannot be understood: " + syntax.Error()
	}
	return &coded.Error{Code: "client-file-unsafe", Sentence: why, Err: err, Next: "put it in by hand: " + snippet}
}
