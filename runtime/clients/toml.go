package clients

import (
	"errors"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// parseTOML reads TOML into a tree. The library's decoder says whether it is right as
// a whole; its scanner says where everything stands.
func parseTOML(text string) (*node, error) {
	if at := tooDeep(text); at >= 0 {
		return nil, &syntaxError{placeOf(text, at), "it is nested too deeply"}
	}
	if len(text) > maxTOML || strings.Count(text, "\n") > maxLines {
		return nil, &syntaxError{Place{1, 1}, "it is larger than 1 MiB or 20000 lines, which is more TOML than is read"}
	}
	var whole map[string]any
	if err := toml.Unmarshal([]byte(text), &whole); err != nil {
		at := placeOf(text, 0)
		var decode *toml.DecodeError
		if errors.As(err, &decode) {
			line, column := decode.Position()
			at = Place{line, column}
		}
		return nil, &syntaxError{at, "it is not valid TOML"}
	}
	t := tomlTree{places: newPlaces(text), root: &node{kind: isObject, at: Place{1, 1}, to: len(text)}}
	t.table = t.root
	err := eachExpression(text, t.places, func(e expression) {
		switch e.kind {
		case unstable.Table:
			t.table = t.descend(t.root, e.key, e.from)
		case unstable.ArrayTable:
			t.table = t.element(e.key, e.from)
		case unstable.KeyValue:
			t.put(t.table, e.key, e.value, e.from)
		}
	})
	return t.root, err
}

// expression is a line of a TOML file, or several: a header or a key with its value.
type expression struct {
	kind     unstable.Kind
	key      []string // as written; relative to the last header
	from, to int      // bytes; to is the end of the value, or of the header's last key
	value    *node
}

func eachExpression(text string, at *places, see func(expression)) error {
	raw := []byte(text)
	var p unstable.Parser
	p.Reset(raw)
	for p.NextExpression() {
		node := p.Expression()
		e := expression{kind: node.Kind, from: -1}
		if node.Kind != unstable.Table && node.Kind != unstable.ArrayTable && node.Kind != unstable.KeyValue {
			continue
		}
		keys := node.Key()
		for keys.Next() {
			part := keys.Node()
			if e.from < 0 {
				e.from = int(part.Raw.Offset)
			}
			e.key = append(e.key, string(part.Data))
			e.to = int(part.Raw.Offset + part.Raw.Length)
		}
		if node.Kind == unstable.KeyValue {
			e.value = tomlValue(at, node.Value())
		}
		see(e)
	}
	if err := p.Error(); err != nil {
		return &syntaxError{Place{1, 1}, "it is not valid TOML"}
	}
	return nil
}

func tomlValue(at *places, v *unstable.Node) *node {
	n := &node{from: int(v.Raw.Offset), to: int(v.Raw.Offset + v.Raw.Length), flow: true, text: string(v.Data)}
	n.at = at.of(n.from)
	switch v.Kind {
	case unstable.String:
		n.kind = isText
	case unstable.Bool:
		n.kind = isBool
	case unstable.Integer, unstable.Float:
		n.kind = isNumber
	case unstable.Array:
		n.kind = isList
		for children := v.Children(); children.Next(); {
			n.items = append(n.items, tomlValue(at, children.Node()))
		}
	case unstable.InlineTable:
		n.kind = isObject
		for children := v.Children(); children.Next(); {
			child := children.Node()
			var key []string
			from := 0
			for keys := child.Key(); keys.Next(); {
				if part := keys.Node(); key == nil {
					from = int(part.Raw.Offset)
					key = append(key, string(part.Data))
				} else {
					key = append(key, string(part.Data))
				}
			}
			tomlTree{places: at}.put(n, key, tomlValue(at, child.Value()), from)
		}
	default:
		n.kind = isOther
	}
	return n
}

type tomlTree struct {
	places      *places
	root, table *node
}

// descend makes the tables of a key, and takes those that are there. In an array of
// tables it goes on in the last one.
func (t tomlTree) descend(from *node, key []string, offset int) *node {
	for _, name := range key {
		next := from.get(name)
		if next != nil && next.kind == isList && len(next.items) > 0 {
			next = next.items[len(next.items)-1]
		}
		if next == nil || next.kind != isObject {
			at := t.places.of(offset)
			next = &node{kind: isObject, at: at, from: -1}
			from.members = append(from.members, member{name, at, offset, next})
		}
		from = next
	}
	return from
}

func (t tomlTree) element(key []string, offset int) *node {
	above := t.descend(t.root, key[:len(key)-1], offset)
	last := key[len(key)-1]
	list := above.get(last)
	if list == nil {
		list = &node{kind: isList, at: t.places.of(offset), from: -1}
		above.members = append(above.members, member{last, list.at, offset, list})
	}
	one := &node{kind: isObject, at: t.places.of(offset), from: -1}
	list.items = append(list.items, one)
	return one
}

func (t tomlTree) put(table *node, key []string, value *node, offset int) {
	if len(key) == 0 {
		return
	}
	table = t.descend(table, key[:len(key)-1], offset)
	table.members = append(table.members, member{key[len(key)-1], t.places.of(offset), offset, value})
}
