package plugins

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// document is a JSON text with the place of every value in it. Names are
// compared exactly, in their own case, and a name that stands twice is kept
// twice, so that whoever owns the object can refuse it at the narrowest
// boundary.
type document struct {
	data []byte
	root *node
}

// node is one JSON value.
type node struct {
	kind     jsontext.Kind // one of n t f " 0 { [
	from, to int64         // byte offsets in the document
	text     string        // of a string, or a number as written
	members  []member      // of an object, in document order
	items    []*node       // of an array
}

// member is one name and value of an object.
type member struct {
	name  string
	at    int64
	value *node
}

// place is a position in a file, both counted from 1, the column in characters.
type place struct{ line, column int }

// syntaxError says where and why a text is no JSON, without quoting it.
type syntaxError struct {
	sentence string
	place    place
}

func (e *syntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.place.line, e.place.column, e.sentence)
}

// parseDocument reads one JSON value and nothing after it. A UTF-8 byte order
// mark is skipped; comments and trailing commas are refused with their place.
func parseDocument(data []byte) (*document, error) {
	if bytes.HasPrefix(data, []byte("\xfe\xff")) || bytes.HasPrefix(data, []byte("\xff\xfe")) {
		return nil, &syntaxError{"the file is UTF-16, JSON files are UTF-8", place{1, 1}}
	}
	doc := &document{data: bytes.TrimPrefix(data, []byte("\ufeff"))}
	dec := jsontext.NewDecoder(bytes.NewReader(doc.data), jsontext.AllowDuplicateNames(true))
	root, err := doc.value(dec)
	if err == nil {
		doc.root = root
		if _, err = dec.ReadToken(); errors.Is(err, io.EOF) {
			return doc, nil
		} else if err == nil {
			return nil, doc.syntax(doc.skipSpace(root.to), "something follows after the end of the JSON value")
		}
	}
	return nil, doc.explain(err)
}

func (d *document) value(dec *jsontext.Decoder) (*node, error) {
	from := d.skipSpace(dec.InputOffset())
	token, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	n := &node{kind: token.Kind(), from: from}
	switch n.kind {
	case '"', '0':
		n.text = token.String()
	case '{':
		for dec.PeekKind() != '}' {
			at := d.skipSpace(dec.InputOffset())
			name, err := dec.ReadToken()
			if err != nil {
				return nil, err
			}
			m := member{name: name.String(), at: at}
			if m.value, err = d.value(dec); err != nil {
				return nil, err
			}
			n.members = append(n.members, m)
		}
		_, err = dec.ReadToken()
	case '[':
		for dec.PeekKind() != ']' {
			item, err := d.value(dec)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
		_, err = dec.ReadToken()
	}
	n.to = dec.InputOffset()
	return n, err
}

// skipSpace returns the offset of the next byte that is part of a value.
func (d *document) skipSpace(offset int64) int64 {
	for offset < int64(len(d.data)) && bytes.IndexByte([]byte(" \t\r\n,:"), d.data[offset]) >= 0 {
		offset++
	}
	return offset
}

// explain turns the decoder's error into a sentence of ours: the decoder's own
// may quote the file.
func (d *document) explain(err error) error {
	var syntactic *jsontext.SyntacticError
	if !errors.As(err, &syntactic) {
		return d.syntax(int64(len(d.data)), "the JSON ends too early")
	}
	at := min(max(syntactic.ByteOffset, 0), int64(len(d.data)))
	for at < int64(len(d.data)) && bytes.IndexByte([]byte(" \t\r\n"), d.data[at]) >= 0 {
		at++
	}
	before := bytes.TrimRight(d.data[:at], " \t\r\n")
	rest := d.data[at:]
	switch {
	case len(rest) == 0:
		return d.syntax(at, "the JSON ends too early")
	case rest[0] == '/' || rest[0] == '#':
		return d.syntax(at, "comments are not allowed in JSON")
	case rest[0] == ',' && len(bytes.TrimLeft(rest[1:], " \t\r\n")) > 0 && isClosing(bytes.TrimLeft(rest[1:], " \t\r\n")[0]),
		isClosing(rest[0]) && bytes.HasSuffix(before, []byte(",")):
		return d.syntax(at, "a comma stands before a closing bracket")
	case !utf8.Valid(rest[:min(len(rest), utf8.UTFMax)]) && !utf8.FullRune(rest) || !validStart(rest):
		return d.syntax(at, "the file is not valid UTF-8")
	}
	return d.syntax(at, "this is not valid JSON")
}

func isClosing(c byte) bool { return c == '}' || c == ']' }

func validStart(rest []byte) bool {
	r, size := utf8.DecodeRune(rest)
	return r != utf8.RuneError || size > 1
}

func (d *document) syntax(at int64, sentence string) error {
	return &syntaxError{sentence: sentence, place: d.place(at)}
}

// place returns the line and column of a byte offset.
func (d *document) place(offset int64) place {
	before := d.data[:min(max(offset, 0), int64(len(d.data)))]
	lineStart := bytes.LastIndexByte(before, '\n') + 1
	return place{
		line:   bytes.Count(before, []byte("\n")) + 1,
		column: utf8.RuneCount(before[lineStart:]) + 1,
	}
}

// raw returns the JSON text of a value.
func (d *document) raw(n *node) []byte { return d.data[n.from:n.to] }

// get returns the value of the first member with exactly this name, or nil.
func (n *node) get(name string) *node {
	for _, m := range n.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// repeated returns the second member of the first name that stands twice in
// this object or any below it, or nil.
func (n *node) repeated() *member {
	if m := n.repeatedHere(); m != nil {
		return m
	}
	for _, m := range n.members {
		if found := m.value.repeated(); found != nil {
			return found
		}
	}
	for _, item := range n.items {
		if found := item.repeated(); found != nil {
			return found
		}
	}
	return nil
}

func (n *node) repeatedHere() *member {
	seen := make(map[string]bool, len(n.members))
	for i, m := range n.members {
		if seen[m.name] {
			return &n.members[i]
		}
		seen[m.name] = true
	}
	return nil
}

// strings returns the items of an array of strings.
func (n *node) strings() ([]string, bool) {
	if n.kind != '[' {
		return nil, false
	}
	list := make([]string, len(n.items))
	for i, item := range n.items {
		if item.kind != '"' {
			return nil, false
		}
		list[i] = item.text
	}
	return list, true
}

// kindName is the word for a value's kind in a sentence.
func (n *node) kindName() string {
	switch n.kind {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	}
	return "true or false"
}
