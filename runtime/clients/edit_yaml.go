package clients

import (
	"regexp"
	"strings"
)

// insertYAML puts an entry first in its block, line by line.
func (e editor) insertYAML(text string, root *node, in insertion) (string, error) {
	if len(e.shape.path) != 1 || root.flow {
		return "", errUnsafe
	}
	key, eol := e.shape.path[0], lineEnd(text)
	if root.count(key) == 0 {
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += eol
		}
		return text + key + ":" + eol + e.writeYAML(in, "  ", eol), nil
	}
	holder := root.get(key)
	if holder == nil || holder.flow && len(holder.members)+len(holder.items) > 0 {
		return "", errUnsafe
	}
	if len(holder.members)+len(holder.items) == 0 {
		return e.fillYAML(text, root, in, eol)
	}
	line, indent, err := blockStart(text, holder)
	if err != nil {
		return "", err
	}
	return spliced(text, splice{line, line, e.writeYAML(in, indent, eol)}), nil
}

// blockStart returns where the line of a block's first entry begins, and its indent.
func blockStart(text string, holder *node) (offset int, indent string, err error) {
	if holder.kind == isList {
		offset = dashLine(text, holder.items[0].at.Line)
	} else {
		offset = lineStart(text, holder.members[0].at.Line)
	}
	if offset < 0 {
		return 0, "", errUnsafe
	}
	indent = leading(text, offset)
	rest := text[offset+len(indent):]
	if strings.Contains(indent, "\t") || (holder.kind == isList) != strings.HasPrefix(rest, "-") {
		return 0, "", errUnsafe
	}
	return offset, indent, nil
}

// dashLine goes up from a line to the one that the dash of its item stands on.
func dashLine(text string, line int) int {
	for ; line > 0; line-- {
		start := lineStart(text, line)
		if start < 0 {
			return -1
		}
		if strings.HasPrefix(strings.TrimLeft(text[start:], " "), "-") {
			return start
		}
	}
	return -1
}

// lineStart returns the offset of a line, or -1.
func lineStart(text string, line int) int {
	offset := 0
	for ; line > 1; line-- {
		next := strings.IndexByte(text[offset:], '\n')
		if next < 0 {
			return -1
		}
		offset += next + 1
	}
	return offset
}

var emptyValue = regexp.MustCompile(`^([^#]*?:)[ \t]*(?:\{[ \t]*\}|\[[ \t]*\]|null|~)?([ \t]*(?:#[^\r\n]*)?)(\r?\n|$)`)

// fillYAML puts an entry below a key that has nothing yet.
func (e editor) fillYAML(text string, root *node, in insertion, eol string) (string, error) {
	for _, m := range root.members {
		if m.name != e.shape.path[0] {
			continue
		}
		start := lineStart(text, m.at.Line)
		if start < 0 {
			return "", errUnsafe
		}
		found := emptyValue.FindStringSubmatch(text[start:])
		if found == nil {
			return "", errUnsafe
		}
		indent := leading(text, start)
		with := found[1] + found[2] + eol + e.writeYAML(in, indent+"  ", eol)
		return spliced(text, splice{start, start + len(found[0]), with}), nil
	}
	return "", errUnsafe
}

func (e editor) writeYAML(in insertion, indent, eol string) string {
	if in.raw != "" {
		return in.raw
	}
	var out strings.Builder
	below := indent + "  "
	if !e.shape.list {
		out.WriteString(indent + word(in.name) + ":" + eol)
	}
	for i, m := range e.shape.dressed(in).value.members {
		lead := below
		if e.shape.list && i == 0 {
			lead = indent + "- "
		}
		if m.value.kind != isList {
			out.WriteString(lead + word(m.name) + ": " + scalar(m.value) + eol)
			continue
		}
		out.WriteString(lead + word(m.name) + ":" + eol)
		for _, item := range m.value.list {
			out.WriteString(below + "  - " + scalar(item) + eol)
		}
	}
	return out.String()
}

var plainWord = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// word is a name or a value that needs no quotes, or with them.
func word(text string) string {
	switch strings.ToLower(text) {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
		return quoted(text)
	}
	if plainWord.MatchString(text) {
		return text
	}
	return quoted(text)
}

func scalar(v value) string {
	if v.kind == isText {
		return word(v.text)
	}
	return v.text
}

// removeYAML takes out the lines of an entry: to the next line that is not deeper.
func (e editor) removeYAML(text string, root *node, name string) (string, string, error) {
	holder := root.path(e.shape.path...)
	if holder == nil || holder.flow || len(e.shape.path) != 1 {
		return "", "", errUnsafe
	}
	start, indent, err := e.entryLine(text, holder, name)
	if err != nil {
		return "", "", err
	}
	end := trimmedLines(text, start, blockEnd(text, start, len(indent)))
	raw := text[start:end]
	if len(holder.members)+len(holder.items) > 1 {
		return spliced(text, splice{from: start, to: end}), raw, nil
	}
	return e.emptied(text, root, start, end, raw)
}

func (e editor) entryLine(text string, holder *node, name string) (int, string, error) {
	start := -1
	if holder.kind == isList {
		for _, item := range holder.items {
			if got, _ := item.textAt("name"); got == name {
				start = dashLine(text, item.at.Line)
			}
		}
	} else {
		for _, m := range holder.members {
			if m.name == name {
				start = lineStart(text, m.at.Line)
			}
		}
	}
	if start < 0 {
		return 0, "", errUnsafe
	}
	return start, leading(text, start), nil
}

// blockEnd returns where the first line behind start begins that is not deeper than
// indent.
func blockEnd(text string, start, indent int) int {
	at := start
	for first := true; at < len(text); first = false {
		line := text[at:]
		if end := strings.IndexByte(line, '\n'); end >= 0 {
			line = line[:end+1]
		}
		trimmed := strings.TrimSpace(line)
		if !first && trimmed != "" && !strings.HasPrefix(trimmed, "#") && len(line)-len(strings.TrimLeft(line, " ")) <= indent {
			return at
		}
		at += len(line)
	}
	return at
}

// emptied leaves {} or [] where the last entry was: a key without a value is another
// thing.
func (e editor) emptied(text string, root *node, start, end int, raw string) (string, string, error) {
	empty := " {}"
	if e.shape.list && root.get(e.shape.path[0]).kind == isList {
		empty = " []"
	}
	for _, m := range root.members {
		if m.name != e.shape.path[0] {
			continue
		}
		line := lineStart(text, m.at.Line)
		found := emptyValue.FindStringSubmatchIndex(text[max(line, 0):])
		if line < 0 || found == nil {
			return "", "", errUnsafe
		}
		at := line + found[3]
		return spliced(text, splice{at, at, empty}, splice{from: start, to: end}), raw, nil
	}
	return "", "", errUnsafe
}
