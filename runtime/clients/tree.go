package clients

import (
	"fmt"
	"strings"
)

// Place is where something stands in a file: line and column from 1, in characters.
type Place struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

func (p Place) String() string { return fmt.Sprintf("line %d, column %d", p.Line, p.Column) }

type kind byte

const (
	isNull   kind = '0'
	isText   kind = 's'
	isNumber kind = 'n'
	isBool   kind = 'b'
	isList   kind = 'a'
	isObject kind = 'o'
	isOther  kind = '?' // a date, an alias: what no entry may hold
)

func (k kind) words() string {
	switch k {
	case isNull:
		return "null"
	case isText:
		return "text"
	case isNumber:
		return "a number"
	case isBool:
		return "true or false"
	case isList:
		return "a list"
	case isObject:
		return "an object"
	}
	return "something else"
}

// node is one value of a file.
type node struct {
	kind    kind
	text    string // of text, numbers and booleans
	members []member
	items   []*node
	at      Place
	// from and to are the value's bytes; only where a format's reader knows them.
	from, to int
	flow     bool // YAML and TOML: written on one line, in brackets
}

type member struct {
	name  string
	at    Place
	from  int // of the name's first byte
	value *node
}

// get returns the only member of a name; nil for none, and for several.
func (n *node) get(name string) *node {
	var found *node
	if n == nil || n.kind != isObject {
		return nil
	}
	for _, m := range n.members {
		if m.name == name {
			if found != nil {
				return nil
			}
			found = m.value
		}
	}
	return found
}

// path follows names down.
func (n *node) path(names ...string) *node {
	for _, name := range names {
		n = n.get(name)
	}
	return n
}

// count says how often a name stands in an object.
func (n *node) count(name string) (times int) {
	for _, m := range n.members {
		if m.name == name {
			times++
		}
	}
	return times
}

// syntaxError is about a whole file.
type syntaxError struct {
	at  Place
	why string // no text of the file
}

func (e *syntaxError) Error() string { return fmt.Sprintf("%s (%s)", e.why, e.at) }

// Limits on what is read: a client's file is small, and readers that recurse are
// given no more depth than a person could mean.
const (
	maxFile  = 16 << 20
	maxYAML  = 256 << 10 // its reader takes time in the square of it
	maxDepth = 200
	maxTOML  = 1 << 20
	maxLines = 20_000 // headers and keys of a TOML file
	// maxEntries bounds the servers of one file.
	maxEntries = 1000
)

// blank reports whether a text holds nothing, in all three formats.
func blank(text string) bool { return strings.Trim(text, " \t\r\n") == "" }

func parse(f format, text string) (*node, error) {
	if blank(text) {
		return &node{kind: isObject, to: len(text), at: Place{1, 1}}, nil
	}
	if strings.ContainsRune(text, 0) {
		return nil, &syntaxError{placeOf(text, strings.IndexByte(text, 0)), "it holds a NUL character"}
	}
	switch f {
	case isTOML:
		return parseTOML(text)
	case isYAML:
		return parseYAML(text)
	}
	return parseJSON(text)
}
