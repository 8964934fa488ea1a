package clients

import "strings"

// insertJSON puts a member first in its object: one splice, and no comma of anybody
// else's is touched.
func (e editor) insertJSON(text string, root *node, in insertion) (string, error) {
	holder, rest := root, e.shape.path
	for len(rest) > 0 {
		next := holder.get(rest[0])
		if next == nil && holder.count(rest[0]) > 0 {
			return "", errUnsafe
		}
		if next == nil {
			break
		}
		holder, rest = next, rest[1:]
	}
	if holder.kind == isList && len(rest) == 0 && e.shape.list {
		return e.insertItem(text, root, holder, in)
	}
	if blank(text) {
		at := len(text)
		text, holder = text+"{}"+lineEnd(text), &node{kind: isObject, from: at, to: at + 2}
		root = holder
	}
	if holder.kind == isNull {
		return e.insertJSON(spliced(text, splice{holder.from, holder.to, "{}"}), mustJSON(spliced(text, splice{holder.from, holder.to, "{}"})), in)
	}
	if holder.kind != isObject {
		return "", errUnsafe
	}
	j := jsonStyle{text: text, unit: indentUnit(text, root), eol: lineEnd(text)}
	return spliced(text, j.member(holder, rest, e.shape.dressed(in), e.shape.list)), nil
}

// mustJSON reads what was valid before a null in it became an empty object.
func mustJSON(text string) *node {
	root, err := parseJSON(text)
	if err != nil {
		return &node{}
	}
	return root
}

type jsonStyle struct {
	text, unit, eol string
}

func (j jsonStyle) member(holder *node, above []string, in insertion, list bool) splice {
	indent, inline, at := j.position(holder)
	written := in.raw
	if written == "" || len(above) > 0 {
		written = j.write(above, in, indent, inline, list)
	}
	switch {
	case inline:
		return splice{at, at, written + ", "}
	case len(holder.members) > 0:
		return splice{at, at, j.eol + indent + written + ","}
	case strings.Contains(j.text[holder.from:holder.to], "\n"):
		return splice{at, at, j.eol + indent + written}
	}
	return splice{at, at, j.eol + indent + written + j.eol + strings.TrimSuffix(indent, j.unit)}
}

// write writes "name": value, within objects of the names above it.
func (j jsonStyle) write(above []string, in insertion, indent string, inline, list bool) string {
	if len(above) == 0 {
		return quoted(in.name) + ": " + j.value(in.value, indent, inline)
	}
	deeper, open, closing := indent+j.unit, "{"+j.eol+indent+j.unit, j.eol+indent+"}"
	if inline {
		open, closing = "{", "}"
	}
	if list && len(above) == 1 {
		open, closing = strings.Replace(open, "{", "[", 1), strings.Replace(closing, "}", "]", 1)
		return quoted(above[0]) + ": " + open + j.value(in.value, deeper, inline) + closing
	}
	return quoted(above[0]) + ": " + open + j.write(above[1:], in, deeper, inline, list) + closing
}

// position says where a new first member goes, with which indent, and whether the
// object stands on one line.
func (j jsonStyle) position(holder *node) (indent string, inline bool, at int) {
	at = holder.from + 1
	if len(holder.members) > 0 {
		first := holder.members[0].from
		if !strings.Contains(j.text[holder.from:first], "\n") {
			return "", true, first
		}
		indent = leading(j.text, first)
	} else {
		indent = leading(j.text, holder.from) + j.unit
	}
	return indent, false, j.afterComment(at)
}

// afterComment goes on behind a comment on the line of the opening bracket: it
// belongs to the bracket.
func (j jsonStyle) afterComment(at int) int {
	i := at
	for i < len(j.text) {
		switch {
		case j.text[i] == '\n':
			return i
		case j.text[i] == '\r' && strings.HasPrefix(j.text[i:], "\r\n"):
			return i
		case j.text[i] == ' ' || j.text[i] == '\t':
			i++
		case strings.HasPrefix(j.text[i:], "//"):
			end := strings.IndexByte(j.text[i:], '\n')
			if end < 0 {
				return at
			}
			i += end
			if j.text[i-1] == '\r' {
				i--
			}
			return i
		case strings.HasPrefix(j.text[i:], "/*"):
			end := strings.Index(j.text[i+2:], "*/")
			if end < 0 || strings.Contains(j.text[i:i+2+end], "\n") {
				return at
			}
			i += end + 4
		default:
			return at
		}
	}
	return at
}

func (j jsonStyle) value(v value, indent string, inline bool) string {
	switch v.kind {
	case isText:
		return quoted(v.text)
	case isList:
		items := make([]string, len(v.list))
		for i, item := range v.list {
			items[i] = j.value(item, indent, true)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case isObject:
		members := make([]string, len(v.members))
		for i, m := range v.members {
			members[i] = quoted(m.name) + ": " + j.value(m.value, indent+j.unit, inline)
		}
		if inline {
			return "{" + strings.Join(members, ", ") + "}"
		}
		between := j.eol + indent + j.unit
		return "{" + between + strings.Join(members, ","+between) + j.eol + indent + "}"
	}
	return v.text
}

// insertItem puts an entry first in a list of entries.
func (e editor) insertItem(text string, root, holder *node, in insertion) (string, error) {
	j := jsonStyle{text: text, unit: indentUnit(text, root), eol: lineEnd(text)}
	in = e.shape.dressed(in)
	if len(holder.items) == 0 {
		indent := leading(text, holder.from) + j.unit
		return spliced(text, splice{holder.from + 1, holder.from + 1, j.eol + indent + j.value(in.value, indent, false) + j.eol + leading(text, holder.from)}), nil
	}
	first := holder.items[0].from
	if !strings.Contains(text[holder.from:first], "\n") {
		return spliced(text, splice{first, first, j.value(in.value, "", true) + ", "}), nil
	}
	indent, at := leading(text, first), j.afterComment(holder.from+1)
	written := in.raw
	if written == "" {
		written = j.value(in.value, indent, false)
	}
	return spliced(text, splice{at, at, j.eol + indent + written + ","}), nil
}

// leading is the white space in front of the line that an offset is on.
func leading(text string, offset int) string {
	start := strings.LastIndexByte(text[:offset], '\n') + 1
	end := start
	for end < len(text) && (text[end] == ' ' || text[end] == '\t') {
		end++
	}
	return text[start:end]
}

// indentUnit is what one step of indentation is, by the first member that stands on
// a line of its own.
func indentUnit(text string, root *node) string {
	if root != nil && len(root.members) > 0 {
		first := root.members[0].from
		if strings.Contains(text[:first], "\n") {
			if unit := leading(text, first); unit != "" && strings.TrimSpace(text[:first]) != "" {
				return unit
			}
		}
	}
	return "  "
}

// removeJSON takes a member out with the comma that is its own: the one behind it,
// or, where it was the last, the one before it. Comments stay.
func (e editor) removeJSON(text string, root *node, name string) (string, string, error) {
	holder := root.path(e.shape.path...)
	if holder != nil && holder.kind == isList {
		for i, item := range holder.items {
			if got, _ := item.textAt("name"); got == name {
				return spliced(text, cutElement(text, item.from, item.to, previousEnd(holder, i))...), text[item.from:item.to], nil
			}
		}
		return "", "", errUnsafe
	}
	if holder == nil || holder.kind != isObject || holder.count(name) != 1 {
		return "", "", errUnsafe
	}
	for i, m := range holder.members {
		if m.name == name {
			return spliced(text, cutElement(text, m.from, m.value.to, previousEnd(holder, i))...), text[m.from:m.value.to], nil
		}
	}
	return "", "", errUnsafe
}

// previousEnd is where the element before number i ends, or -1.
func previousEnd(holder *node, i int) int {
	switch {
	case i == 0:
		return -1
	case holder.kind == isList:
		return holder.items[i-1].to
	}
	return holder.members[i-1].value.to
}

func cutElement(text string, from, to, previous int) []splice {
	end := skipExtra(text, to)
	var cuts []splice
	if end < len(text) && text[end] == ',' {
		if strings.TrimSpace(text[to:end]) == "" {
			to = end + 1
		} else {
			cuts = append(cuts, splice{from: end, to: end + 1})
		}
	} else if previous >= 0 {
		comma := skipExtra(text, previous)
		if strings.TrimSpace(text[comma+1:from]) == "" && !strings.Contains(text[comma+1:from], "\n") {
			return []splice{{from: comma, to: to}} // on one line with what is before it
		}
		cuts = append(cuts, splice{from: comma, to: comma + 1})
	}
	from, to = wholeLines(text, from, to)
	return append(cuts, splice{from: from, to: to})
}

// wholeLines widens a cut to whole lines where nothing else is on them, and takes
// the space behind it otherwise.
func wholeLines(text string, from, to int) (int, int) {
	start := strings.LastIndexByte(text[:from], '\n') + 1
	line := strings.IndexByte(text[to:], '\n')
	if strings.TrimSpace(text[start:from]) == "" && line >= 0 && strings.TrimSpace(text[to:to+line]) == "" && start > 0 {
		return start, to + line + 1
	}
	for to < len(text) && text[to] == ' ' {
		to++
	}
	return from, to
}

// skipExtra returns the offset of the next byte that is neither white space nor in a
// comment.
func skipExtra(text string, i int) int {
	for i < len(text) {
		switch {
		case strings.HasPrefix(text[i:], "//"):
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				return len(text)
			}
			i += end + 1
		case strings.HasPrefix(text[i:], "/*"):
			end := strings.Index(text[i+2:], "*/")
			if end < 0 {
				return len(text)
			}
			i += end + 4
		case strings.IndexByte(" \t\r\n", text[i]) >= 0:
			i++
		default:
			return i
		}
	}
	return i
}
