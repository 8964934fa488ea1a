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
	name     string // of the variable or secret
	fallback bool   // text is a default
}

type kind int

const (
	isText kind = iota
	isEnv
	isSecret
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

// scope is what the text of one connector may refer to.
type scope struct {
	places  map[string]string // placeholder → folder
	env     map[string]bool   // names that env: may take
	secrets map[string]bool   // names that secret: may take
	fold    bool              // names compare without case
}

func newScope(r Request) scope {
	s := scope{places: placesOf(r), env: map[string]bool{}, secrets: map[string]bool{}, fold: r.Parent.windows()}
	for _, name := range r.Secrets {
		s.secrets[name] = true
		s.env[s.key(name)] = true
	}
	for _, name := range expandInherit(r.Inherit) {
		s.env[s.key(name)] = true
	}
	return s
}

func placesOf(r Request) map[string]string {
	places := map[string]string{"PLUGIN_ROOT": r.Root, "PLUGIN_DATA": r.Data}
	if r.Claude {
		places["CLAUDE_PLUGIN_ROOT"], places["CLAUDE_PLUGIN_DATA"] = r.Root, r.Data
	}
	return places
}

func (s scope) key(name string) string {
	if s.fold {
		return strings.ToUpper(name)
	}
	return name
}

// parse cuts a declared value. In a package's own text only the placeholders
// are special and everything else stays as it is.
func (s scope) parse(d Declared) (template, error) {
	if d.References {
		if t, whole, err := s.whole(d); whole || err != nil {
			return t, err
		}
	}
	var t template
	rest := d.Value
	for {
		before, after, found := strings.Cut(rest, "${")
		if !found {
			return append(t, piece{text: rest}), nil
		}
		t = append(t, piece{text: before})
		inside, tail, closed := strings.Cut(after, "}")
		if !closed && d.References {
			return nil, invalidReference(d.Name, "has '${' without '}'")
		}
		if !closed {
			return append(t, piece{text: "${" + after}), nil
		}
		p, special, err := s.placeholder(d, inside)
		if err != nil {
			return nil, err
		}
		if special {
			t, rest = append(t, p), tail
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

// placeholder reads what stands between ${ and }; special is false where the
// text is to stay as it is.
func (s scope) placeholder(d Declared, inside string) (p piece, special bool, err error) {
	if folder, ok := s.places[inside]; ok {
		if folder == "" {
			return p, true, invalidReference(d.Name, "uses ${"+inside+"}, which this connector does not have")
		}
		return piece{text: folder}, true, nil
	}
	if !d.References {
		return p, false, nil
	}
	name, fallback, hasDefault := strings.Cut(inside, ":-")
	scheme := "env"
	if before, after, ok := strings.Cut(name, ":"); ok {
		scheme, name = before, after
	}
	p, err = s.reference(d, scheme, name)
	if err == nil && hasDefault && scheme == "secret" {
		return p, true, invalidReference(d.Name, "gives a secret a default")
	}
	p.text, p.fallback = fallback, hasDefault
	return p, true, err
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
			return piece{}, notAllowed(d.Name, name, "permissions.secrets does not list")
		}
		return piece{kind: isSecret, name: name}, nil
	}
	if !s.env[s.key(name)] {
		return piece{}, notAllowed(d.Name, name, "neither permissions.secrets nor inherit lists")
	}
	return piece{kind: isEnv, name: name}, nil
}

func invalidReference(variable, problem string) error {
	return coded.New("reference-invalid", fmt.Sprintf("%q %s", variable, problem))
}

func notAllowed(variable, name, why string) error {
	return &coded.Error{
		Code:     "reference-not-allowed",
		Sentence: fmt.Sprintf("%q refers to %q, which %s", variable, name, why),
		Next:     "list the name there and approve the connector again",
	}
}
