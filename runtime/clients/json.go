package clients

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// parseJSON reads JSON with comments and trailing commas.
func parseJSON(text string) (*node, error) {
	if at := tooDeep(text); at >= 0 {
		return nil, &syntaxError{placeOf(text, at), "it is nested too deeply"}
	}
	// The reader wants a line end behind a comment; that one more changes no place.
	parsed, err := hujson.Parse([]byte(text + "\n"))
	if err != nil {
		return nil, &syntaxError{jsonPlace(text, err), "it is not valid JSON, with or without comments"}
	}
	return (&jsonTree{places: newPlaces(text)}).node(parsed), nil
}

var hujsonPlace = regexp.MustCompile(`line (\d+), column (\d+)`)

// jsonPlace takes the place out of the reader's error: it has no field for it, and
// the rest of its text may quote the file.
func jsonPlace(text string, err error) Place {
	found := hujsonPlace.FindStringSubmatch(err.Error())
	if found == nil {
		return placeOf(text, len(text))
	}
	line, _ := strconv.Atoi(found[1])
	column, _ := strconv.Atoi(found[2])
	return Place{line, column}
}

// tooDeep returns where brackets outside of text and comments are nested more than
// maxDepth deep, or -1. The reader recurses, and Go ends a program whose stack is
// full.
func tooDeep(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case c == '/' && i+1 < len(text) && text[i+1] == '/':
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case c == '/' && i+1 < len(text) && text[i+1] == '*':
			for i += 2; i+1 < len(text) && (text[i] != '*' || text[i+1] != '/'); i++ {
			}
			i++
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return i
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return -1
}

type jsonTree struct{ places *places }

func (t *jsonTree) node(v hujson.Value) *node {
	n := &node{from: v.StartOffset, to: v.EndOffset, at: t.places.of(v.StartOffset)}
	switch inner := v.Value.(type) {
	case *hujson.Object:
		n.kind = isObject
		for _, m := range inner.Members {
			name := m.Name.Value.(hujson.Literal).String()
			n.members = append(n.members, member{name, t.places.of(m.Name.StartOffset), m.Name.StartOffset, t.node(m.Value)})
		}
	case *hujson.Array:
		n.kind = isList
		for _, item := range inner.Elements {
			n.items = append(n.items, t.node(item))
		}
	case hujson.Literal:
		n.text = inner.String()
		switch inner.Kind() {
		case '"':
			n.kind = isText
		case '0':
			n.kind = isNumber
		case 'n':
			n.kind = isNull
		default:
			n.kind = isBool
		}
	}
	return n
}

// places turns byte offsets that only grow into lines and columns.
type places struct {
	text   string
	offset int
	at     Place
}

func newPlaces(text string) *places { return &places{text: text, at: Place{1, 1}} }

func (p *places) of(offset int) Place {
	if offset < p.offset {
		return p.back(offset)
	}
	for p.offset < offset && p.offset < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.text[p.offset:])
		if r == '\n' {
			p.at = Place{p.at.Line + 1, 1}
		} else {
			p.at.Column++
		}
		p.offset += size
	}
	return p.at
}

// back goes back within the line, or counts anew.
func (p *places) back(offset int) Place {
	start := strings.LastIndexByte(p.text[:p.offset], '\n') + 1
	if offset < start {
		return placeOf(p.text, offset)
	}
	return Place{p.at.Line, utf8.RuneCountInString(p.text[start:offset]) + 1}
}
