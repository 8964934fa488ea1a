package env

import (
	"fmt"
	"strings"

	"sallyport/internal/coded"
)

// template is a value cut into pieces once. Because pieces are never cut again,
// what a reference resolves to is never rescanned (spec/child-environment.md 5).
type template []piece

type piece struct {
	text     string // the literal, or the default of an env reference
	kind     kind
	name     string     // of the variable, secret or setting
	fallback bool       // text is a default
	folder   bool       // text is a place of the connector's or the user's
	many     []template // of a setting with several values
}

type kind int

const (
	isText kind = iota
	isEnv
	isSecret
	// isBlank is an optional setting without a value: the text that holds it is
	// left out.
	isBlank
	// isMany is a setting with several values, which can be a whole argument only.
	isMany
)

func literal(text string) template { return template{{text: text}} }

// literal returns the text of t without its references.
func (t template) literal() string {
	var b strings.Builder
	for _, p := range t {
		if p.kind == isText {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// symbolic returns the text of t with its references as references.
func (t template) symbolic() string {
	var b strings.Builder
	for _, p := range t {
		switch p.kind {
		case isText:
			b.WriteString(p.text)
		case isEnv:
			b.WriteString("${env:" + p.name)
			if p.fallback {
				b.WriteString(":-" + p.text)
			}
			b.WriteString("}")
		case isSecret:
			b.WriteString("${secret:" + p.name + "}")
		}
	}
	return b.String()
}

// references names what t refers to, joined with ", ".
func (t template) references() string {
	var names []string
	for _, p := range t {
		switch p.kind {
		case isEnv:
			names = append(names, "env:"+p.name)
		case isSecret:
			names = append(names, "secret:"+p.name)
		}
	}
	return strings.Join(names, ", ")
}

// empty reports whether t is no text at all.
func (t template) empty() bool {
	for _, p := range t {
		if p.kind != isText || p.text != "" {
			return false
		}
	}
	return true
}

func (t template) has(k kind) bool {
	for _, p := range t {
		if p.kind == k {
			return true
		}
	}
	return false
}

// parse cuts a declared value. What the dialect does not know stays as it is, or is
// refused where the dialect is strict.
func (s scope) parse(d Declared) (template, error) {
	if d.References {
		s.dialect = s.dialect.ForOperator()
	}
	rest := d.Value
	if s.dialect.References {
		if t, whole, err := s.whole(d); whole || err != nil {
			return t, err
		}
	}
	var t template
	if s.dialect.Tilde && (rest == "~" || strings.HasPrefix(rest, "~/")) {
		home, err := s.place(d, "~", placeHome)
		if err != nil {
			return nil, err
		}
		t, rest = append(t, piece{text: home, folder: true}), rest[1:]
	}
	for {
		before, after, found := strings.Cut(rest, "${")
		if !found {
			return append(t, piece{text: rest}), nil
		}
		t = append(t, piece{text: before})
		inside, tail, closed := strings.Cut(after, "}")
		if !closed && s.dialect.Strict {
			return nil, invalidReference(d.Name, "has '${' without '}'")
		}
		if !closed {
			return append(t, piece{text: "${" + after}), nil
		}
		stands, err := s.placeholder(d, inside)
		if err != nil {
			return nil, err
		}
		if stands != nil {
			t, rest = append(t, stands...), tail
		} else {
			t, rest = append(t, piece{text: "${"}), after
		}
	}
}

// whole reads a value that is nothing but secret:NAME or env:NAME.
func (s scope) whole(d Declared) (template, bool, error) {
	scheme, name, _ := strings.Cut(d.Value, ":")
	if scheme != "secret" && scheme != "env" || !strings.Contains(d.Value, ":") {
		return nil, false, nil
	}
	p, err := s.reference(d, scheme, name)
	return template{p}, true, err
}

// placeholder reads what stands between ${ and }; nil is for a text that is to stay
// as it is.
func (s scope) placeholder(d Declared, inside string) (template, error) {
	if place, ok := s.dialect.Places[inside]; ok {
		text, err := s.place(d, "${"+inside+"}", place)
		return template{{text: text, folder: true}}, err
	}
	if key, ok := strings.CutPrefix(inside, s.dialect.Settings); ok && s.dialect.Settings != "" {
		return s.setting(d, key)
	}
	name, fallback, hasDefault := strings.Cut(inside, ":-")
	scheme, bare := "env", true
	if before, after, ok := strings.Cut(name, ":"); ok {
		scheme, name, bare = before, after, false
	}
	switch {
	case bare && s.dialect.Variables, !bare && s.dialect.References:
	case s.dialect.Strict:
		return nil, unknownPlaceholder(d.Name, inside)
	default:
		return nil, nil
	}
	p, err := s.reference(d, scheme, name)
	if err == nil && hasDefault && scheme == "secret" {
		err = invalidReference(d.Name, "gives a secret a default")
	}
	p.text, p.fallback = fallback, hasDefault
	return template{p}, err
}

// reference checks one reference against what the operator approved.
func (s scope) reference(d Declared, scheme, name string) (piece, error) {
	if scheme != "secret" && scheme != "env" {
		return piece{}, invalidReference(d.Name, fmt.Sprintf("refers to %q, which is not a kind of reference", scheme))
	}
	if name == "" || strings.ContainsAny(name, "=\x00 \t\r\n") || scheme == "env" && !plainName(name) {
		return piece{}, invalidReference(d.Name, fmt.Sprintf("refers to %q, which is not a name", name))
	}
	if scheme == "secret" {
		if !s.secrets[name] {
			return piece{}, s.notAllowed(d.Name, name, "permissions.secrets does not list", fmt.Sprintf(`"env": {%q: %q}`, d.Name, "secret:"+name))
		}
		return piece{kind: isSecret, name: name}, nil
	}
	if !s.env[s.key(name)] {
		return piece{}, s.notAllowed(d.Name, name, "neither permissions.secrets nor inherit lists", fmt.Sprintf(`"inherit": [%q]`, name))
	}
	return piece{kind: isEnv, name: name}, nil
}

func invalidReference(variable, problem string) error {
	return coded.New("reference-invalid", fmt.Sprintf("%q %s", variable, problem))
}

func unknownPlaceholder(variable, inside string) error {
	return &coded.Error{
		Code:     "placeholder-unknown",
		Sentence: fmt.Sprintf("%q uses ${%s}, which the plugin's format does not define", variable, inside),
		Next:     "correct the plugin's files, or give the value yourself in config.json",
	}
}

// notAllowed says how the operator would allow it: what to write for the connector in
// config.json.
func (s scope) notAllowed(variable, name, why, entry string) error {
	next := "list the name there and approve the connector again"
	if s.connector != "" {
		next = fmt.Sprintf(`if it may have that, write {"connectors": {%q: {%s}}} into config.json, then approve it`, s.connector, entry)
	}
	return &coded.Error{Code: "reference-not-allowed", Sentence: fmt.Sprintf("%q refers to %q, which %s", variable, name, why), Next: next}
}
