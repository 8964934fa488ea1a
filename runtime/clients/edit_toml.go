package clients

import (
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// insertTOML puts a table at the end, which touches nothing that is there.
func (e editor) insertTOML(text string, root *node, in insertion) (string, error) {
	for n, rest := root, e.shape.path; len(rest) > 0; rest = rest[1:] {
		if n = n.get(rest[0]); n == nil {
			break
		}
		if n.flow || n.kind != isObject {
			return "", errUnsafe // an inline table is closed
		}
	}
	eol := lineEnd(text)
	written := in.raw
	if written == "" {
		lines := []string{"[" + strings.Join(append(slices.Clone(e.shape.path), in.name), ".") + "]"}
		for _, m := range in.value.members {
			lines = append(lines, m.name+" = "+jsonStyle{}.value(m.value, "", true))
		}
		written = strings.Join(lines, eol) + eol
	}
	switch {
	case text == "" || strings.HasSuffix(text, "\n\n") || strings.HasSuffix(text, "\r\n\r\n"):
	case strings.HasSuffix(text, "\n"):
		text += eol
	default:
		text += eol + eol
	}
	return text + written, nil
}

// removeTOML takes out every line that belongs to an entry, wherever it stands:
// headers of it and below it, and dotted keys.
func (e editor) removeTOML(text, name string) (string, string, error) {
	var all []expression
	if err := eachExpression(text, newPlaces(text), func(x expression) { all = append(all, x) }); err != nil {
		return "", "", err
	}
	path := append(slices.Clone(e.shape.path), name)
	var header []string
	var cuts []splice
	var raw strings.Builder
	for i, x := range all {
		full := x.key
		if x.kind == unstable.KeyValue {
			full = append(slices.Clone(header), x.key...)
		} else {
			header = x.key
		}
		if len(full) < len(path) || !slices.Equal(full[:len(path)], path) {
			continue
		}
		from, to := expressionLines(text, all, i)
		if x.kind != unstable.KeyValue {
			from = withoutBlanksBefore(text, from)
		}
		cuts = append(cuts, splice{from: from, to: to})
		if x.kind == unstable.KeyValue && len(header) < len(path) {
			raw.Reset() // a dotted key or a line of an inline table: no table of its own
			raw.WriteString("\x00")
		}
		raw.WriteString(strings.TrimLeft(text[from:to], "\r\n"))
	}
	if len(cuts) == 0 {
		return "", "", errUnsafe
	}
	kept := raw.String()
	if strings.ContainsRune(kept, 0) {
		kept = "" // put back by value
	}
	return spliced(text, cuts...), kept, nil
}

// expressionLines are the whole lines of an expression: to the next one, without
// blank lines and comments before that.
func expressionLines(text string, all []expression, i int) (from, to int) {
	from = strings.LastIndexByte(text[:all[i].from], '\n') + 1
	to = len(text)
	if i+1 < len(all) {
		to = strings.LastIndexByte(text[:all[i+1].from], '\n') + 1
	}
	return from, trimmedLines(text, from, to)
}

// trimmedLines moves an end back over blank lines and comments, which belong to what
// comes after.
func trimmedLines(text string, from, to int) int {
	for to > from {
		start := strings.LastIndexByte(strings.TrimSuffix(text[:to], "\n"), '\n') + 1
		line := strings.TrimSpace(text[start:to])
		if start <= from || line != "" && !strings.HasPrefix(line, "#") {
			return to
		}
		to = start
	}
	return to
}

func withoutBlanksBefore(text string, from int) int {
	for from > 0 {
		start := strings.LastIndexByte(text[:from-1], '\n') + 1
		if strings.TrimSpace(text[start:from]) != "" {
			return from
		}
		from = start
	}
	return from
}
