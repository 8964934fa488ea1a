// Package jsonedit changes single values of a JSON object that a person wrote.
//
// The one idea: everything that is not the value keeps its bytes: comments, trailing
// commas, order, indentation and names that nobody here knows.
//
// It does not say what the file means and writes no file. A name that stands twice on
// the way is refused: nobody knows which of the two is read. It knows no domain words.
// Every package may import it.
package jsonedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// Errors of an edit that is not made.
var (
	// ErrShape: something on the way is no object.
	ErrShape = errors.New("something on the way to the value is no object")
	// ErrTwice: a name on the way stands twice.
	ErrTwice = errors.New("a name on the way to the value stands twice")
	// ErrAbsent: there is nothing to remove.
	ErrAbsent = errors.New("the value is not there")
)

// maxDepth bounds the nesting: the reader recurses.
const maxDepth = 1000

// Set puts value at the path of names, with the objects on the way that are missing.
// An empty text is an empty object.
func Set(text []byte, value any, path ...string) ([]byte, error) {
	raw, err := encode(value)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(path, func(name string) bool { return !utf8.ValidString(name) }) {
		return nil, ErrShape
	}
	return edit(text, func(root *hujson.Value) error { return set(root, raw, path, 1) })
}

// Remove takes the value at the path out, with its name. Objects that it leaves empty
// stay.
func Remove(text []byte, path ...string) ([]byte, error) {
	return edit(text, func(root *hujson.Value) error { return remove(root, path) })
}

func edit(text []byte, change func(*hujson.Value) error) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	if !utf8.Valid(text) {
		return nil, errNoJSON() // two names that differ would read as one
	}
	if deep(text) {
		return nil, ErrShape
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, errNoJSON() // the reader's own words may quote it
	}
	if err := change(&root); err != nil {
		return nil, err
	}
	return root.Pack(), nil
}

func errNoJSON() error { return errors.New("the text is no JSON") }

// encode writes < and & as they are.
func encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("cannot encode the value: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// find returns the member of that name, nil where there is none.
func find(v *hujson.Value, name string) (*hujson.Object, int, error) {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, -1, ErrShape
	}
	at := -1
	for i, m := range object.Members {
		if literal, ok := m.Name.Value.(hujson.Literal); ok && literal.String() == name {
			if at >= 0 {
				return nil, -1, ErrTwice
			}
			at = i
		}
	}
	return object, at, nil
}

func set(v *hujson.Value, raw []byte, path []string, depth int) error {
	object, at, err := find(v, path[0])
	if err != nil {
		return err
	}
	if at < 0 {
		at = add(object, path[0], depth)
		if len(path) > 1 {
			object.Members[at].Value.Value = &hujson.Object{}
		}
	}
	member := &object.Members[at].Value
	if len(path) > 1 {
		return set(member, raw, path[1:], depth+1)
	}
	parsed, err := hujson.Parse(raw)
	if err != nil {
		return fmt.Errorf("cannot use the value: %w", err)
	}
	member.Value = parsed.Value
	return nil
}

// add appends a member and returns its place. What follows the last member, a comment
// on its line, stays with it.
func add(object *hujson.Object, name string, depth int) int {
	quoted, _ := encode(name) // a text always encodes
	indent := "\n" + strings.Repeat("  ", depth)
	behind := object.AfterExtra
	closing := "\n" + strings.Repeat("  ", depth-1)
	if n := len(object.Members); n > 0 {
		before := string(object.Members[n-1].Name.BeforeExtra)
		line := strings.LastIndexByte(before, '\n')
		if line < 0 { // on one line
			indent, closing = " ", string(behind)
		} else {
			indent = before[line:]
			if end := strings.LastIndexByte(string(behind), '\n'); end >= 0 {
				closing = string(behind)[end:]
			}
		}
	}
	before := indent
	if note := strings.TrimRight(string(behind), " \t\r\n"); note != "" {
		before, closing = strings.TrimRight(string(behind), " \t\r\n")+indent, "\n"+strings.TrimLeft(closing, "\n")
	}
	object.Members = append(object.Members, hujson.ObjectMember{
		Name:  hujson.Value{BeforeExtra: hujson.Extra(before), Value: hujson.Literal(quoted)},
		Value: hujson.Value{BeforeExtra: hujson.Extra(" ")},
	})
	object.AfterExtra = hujson.Extra(closing)
	return len(object.Members) - 1
}

func remove(v *hujson.Value, path []string) error {
	object, at, err := find(v, path[0])
	switch {
	case err != nil:
		return err
	case at < 0:
		return ErrAbsent
	case len(path) > 1:
		return remove(&object.Members[at].Value, path[1:])
	}
	last := at == len(object.Members)-1
	object.Members = append(object.Members[:at], object.Members[at+1:]...)
	if last && at > 0 {
		object.Members[at-1].Value.AfterExtra = nil // no comma behind what is the last now
	}
	return nil
}

// deep reports whether brackets outside of texts and comments nest too deeply.
func deep(text []byte) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[': // one in a comment counts: a thousand of those are no configuration
			if depth++; depth > maxDepth {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

// Check says why text cannot be edited at all.
func Check(text []byte) error {
	_, err := edit(text, func(root *hujson.Value) error {
		_, _, err := find(root, "")
		return err
	})
	return err
}

// Text returns the text at the path; ok is false where there is none, or not exactly
// one.
func Text(text []byte, path ...string) (value string, ok bool) {
	if deep(text) || len(path) == 0 {
		return "", false
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return "", false
	}
	v := &root
	for _, name := range path {
		object, at, err := find(v, name)
		if err != nil || at < 0 {
			return "", false
		}
		v = &object.Members[at].Value
	}
	literal, ok := v.Value.(hujson.Literal)
	if !ok || literal.Kind() != '"' {
		return "", false
	}
	return literal.String(), true
}
