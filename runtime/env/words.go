package env

import (
	"fmt"
	"strings"

	"sallyport/internal/coded"
)

// Words expands what a connector declares outside of its environment and headers:
// command, arguments, working directory, address. One pass.
//
// Whether the folders in the request are real or symbols is the caller's choice:
// an identity has symbols, a start has the folders of the snapshot.
type Words struct {
	scope  scope
	parent Parent
	exempt Exempt
}

// Word is one argument as declared and as expanded.
type Word struct{ Declared, Expanded string }

// WordsOf returns the words of the connector that the request is for. It uses all of
// the request but Path and Declared.
func WordsOf(r Request) Words { return Words{newScope(r), r.Parent, r.Exempt} }

// One expands a text that is one text. field says which, in words. A text that uses
// an optional setting without a value is "".
//
// Errors are *coded.Error and name the field and the placeholder: reference-invalid,
// reference-not-allowed, placeholder-unknown, setting-missing, env-unset,
// secret-in-args, literal-secret.
func (w Words) One(field, text string) (string, error) {
	t, err := w.parse(field, text)
	if err != nil || t.has(isBlank) {
		return "", err
	}
	if t.has(isMany) {
		return "", several(field, t)
	}
	return w.join(field, t)
}

// Arguments expands arguments: one whose optional setting has no value is left out,
// and one that is nothing but a setting with several values becomes several.
func (w Words) Arguments(args []string) ([]Word, error) {
	words := make([]Word, 0, len(args))
	for i, arg := range args {
		field := fmt.Sprintf("argument %d", i+1)
		t, err := w.parse(field, arg)
		if err != nil {
			return nil, err
		}
		expanded := []template{t}
		switch many := t.onlyMany(); {
		case t.has(isBlank):
			continue
		case many != nil:
			expanded = many
		case t.has(isMany):
			return nil, several(field, t)
		}
		for _, t := range expanded {
			text, err := w.join(field, t)
			if err != nil {
				return nil, err
			}
			words = append(words, Word{arg, text})
		}
	}
	return words, nil
}

// Value returns an environment or header value with its folders in place and its
// references as references; ok is false for one that is left out.
func (w Words) Value(d Declared) (text string, ok bool, err error) {
	t, err := w.scope.parse(d)
	if err != nil || t.has(isBlank) {
		return "", false, err
	}
	if t.has(isMany) {
		return "", false, several(d.Name, t)
	}
	return t.symbolic(), true, nil
}

// parse refuses what may not stand on a command line: whatever is there can be read
// by every program on the computer.
func (w Words) parse(field, text string) (template, error) {
	t, err := w.scope.parse(Declared{Name: field, Value: text})
	if err != nil {
		return nil, err
	}
	if name := w.secretIn(t); name != "" {
		return nil, secretInArgs(field)
	}
	return t, nil
}

func (w Words) secretIn(t template) string {
	for _, p := range t {
		switch {
		case p.kind == isSecret, p.kind == isEnv && !w.scope.inherit[w.scope.key(p.name)]:
			return p.name
		case p.kind == isMany:
			for _, inner := range p.many {
				if name := w.secretIn(inner); name != "" {
					return name
				}
			}
		}
	}
	return ""
}

// join puts the pieces together, with the parent's variables as they are now.
func (w Words) join(field string, t template) (string, error) {
	var b strings.Builder
	for _, p := range t {
		text := p.text
		if p.kind == isEnv {
			var err error
			if text, err = w.parent.value(field, p); err != nil {
				return "", err
			}
			if f := findShape(text); f.credential() {
				return "", secretInArgs(field)
			}
		}
		b.WriteString(text)
	}
	if strings.ContainsRune(b.String(), 0) {
		return "", coded.New("argument-nul", fmt.Sprintf("the %s holds a NUL character", field))
	}
	return b.String(), nil
}

// onlyMany returns the values where t is a setting with several and nothing else.
func (t template) onlyMany() []template {
	var many []template
	for _, p := range t {
		switch {
		case p.kind == isText && p.text == "":
		case p.kind == isMany && many == nil:
			many = p.many
		default:
			return nil
		}
	}
	return many
}

func several(field string, t template) error {
	name := ""
	for _, p := range t {
		if p.kind == isMany {
			name = p.name
		}
	}
	return coded.New("setting-several", fmt.Sprintf("%q uses the setting %q in the midst of a text, and it has several values", field, name))
}
