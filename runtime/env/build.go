package env

import (
	"fmt"
	"sort"
	"strings"

	"sallyport/internal/coded"
)

// Build makes the environment of one child: what the parent may give, what the
// connector declares, what Sallyport sets, in that order
// (spec/child-environment.md 1 to 5). It reads nothing but the request.
//
// Errors are *coded.Error and name the variable, never a value: env-invalid,
// env-nul, reference-invalid, reference-not-allowed, literal-secret,
// literal-placeholder.
func Build(r Request) (*Plan, error) {
	b := builder{request: r, scope: newScope(r), vars: map[string]Var{}}
	if err := b.inherit(); err != nil {
		return nil, err
	}
	b.path()
	if err := b.declared(); err != nil {
		return nil, err
	}
	if err := b.sallyport(); err != nil {
		return nil, err
	}
	return b.plan(), nil
}

type builder struct {
	request Request
	scope   scope
	vars    map[string]Var // by key
}

// key is what makes two names the same variable.
func (b *builder) key(name string) string {
	if b.request.Parent.windows() {
		return strings.ToUpper(name)
	}
	return name
}

func (b *builder) set(v Var) { b.vars[b.key(v.Name)] = v }

func (b *builder) has(name string) bool { _, ok := b.vars[b.key(name)]; return ok }

// inherit takes the base list and the names approved one by one.
func (b *builder) inherit() error {
	parent := b.request.Parent
	for _, name := range parent.fromBase() {
		b.set(Var{Name: name, Source: FromParent, value: literal(parent.Vars[name])})
	}
	for _, name := range expandInherit(b.request.Inherit) {
		if !plainName(name) {
			return coded.New("env-invalid", fmt.Sprintf("inherit holds %q, which is not the name of an environment variable", name))
		}
		if spelled, value, ok := parent.find(name); ok && !b.has(name) {
			b.set(Var{Name: spelled, Source: FromInherited, value: literal(value)})
		}
	}
	b.loopbackWithoutProxy()
	return b.withoutNUL()
}

// withoutNUL refuses what no kernel would take. A real parent cannot hold it.
func (b *builder) withoutNUL() error {
	for _, v := range b.vars {
		if strings.ContainsRune(v.Name+v.value.literal(), 0) {
			return nulError(v.Name)
		}
	}
	return nil
}

// loopbackWithoutProxy keeps a proxy that is passed on away from loopback.
func (b *builder) loopbackWithoutProxy() {
	proxied := false
	for _, name := range networkProxies {
		proxied = proxied || b.has(name) || b.has(strings.ToLower(name))
	}
	if !proxied {
		return
	}
	current := b.vars[b.key("NO_PROXY")].value.literal()
	if current == "" {
		current = b.vars[b.key("no_proxy")].value.literal()
	}
	for _, name := range []string{"no_proxy", "NO_PROXY"} {
		b.set(Var{Name: name, Source: FromSallyport, value: literal(withLoopback(current))})
	}
}

// withLoopback adds the names of loopback that list does not hold yet.
func withLoopback(list string) string {
	var parts []string
	have := map[string]bool{}
	for _, part := range strings.Split(list, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts, have[part] = append(parts, part), true
		}
	}
	if have["*"] {
		return list
	}
	for _, name := range []string{"localhost", "127.0.0.1", "::1"} {
		if !have[name] {
			parts = append(parts, name)
		}
	}
	return strings.Join(parts, ",")
}

// path replaces the parent's PATH by the user's own, or drops from the parent's
// what no child may search.
func (b *builder) path() {
	name, value, source := "PATH", b.request.Path, FromPath
	if spelled, inherited, ok := b.request.Parent.find("PATH"); ok {
		name = spelled
		if value == "" {
			value, source = joinPath(b.request.Parent.System, absoluteOnly(b.request.Parent.System, inherited)), FromParent
		}
	}
	delete(b.vars, b.key(name))
	if value != "" {
		b.set(Var{Name: name, Source: source, value: literal(value)})
	}
}

// declared adds what the connector declares (spec/child-environment.md 3).
func (b *builder) declared() error {
	for _, d := range b.request.Declared {
		if err := checkName(d.Name); err != nil {
			return err
		}
		if strings.ContainsRune(d.Value, 0) {
			return nulError(d.Name)
		}
		value, err := b.scope.parse(d)
		if err != nil {
			return err
		}
		if value.has(isBlank) {
			continue
		}
		if value.has(isMany) {
			return several(d.Name, value)
		}
		if err := b.request.Exempt.Check(literalsOf(InEnv, d, value)); err != nil {
			return err
		}
		b.set(Var{Name: d.Name, Source: sourceOf(d, value), Reference: value.references(), Text: d.Value, value: value})
	}
	return nil
}

func sourceOf(d Declared, value template) string {
	switch {
	case value.references() != "":
		return FromReference
	case d.References:
		return FromOperator
	default:
		return FromDeclared
	}
}

// sallyport adds spec/child-environment.md 2: the folders win over what was
// declared, the values for Python yield to it.
func (b *builder) sallyport() error {
	r := b.request
	fixed := [][2]string{{"PLUGIN_ROOT", r.Root}, {"PLUGIN_DATA", r.Data}}
	for name, place := range b.scope.dialect.Sets {
		fixed = append(fixed, [2]string{name, b.scope.places[place]})
	}
	for _, pair := range fixed {
		delete(b.vars, b.key(pair[0]))
		if pair[1] == "" {
			continue
		}
		if strings.ContainsRune(pair[1], 0) {
			return nulError(pair[0])
		}
		b.set(Var{Name: pair[0], Source: FromSallyport, value: literal(pair[1])})
	}
	for _, pair := range pythonValues(r.Parent.System) {
		if !b.has(pair[0]) {
			b.set(Var{Name: pair[0], Source: FromSallyport, value: literal(pair[1])})
		}
	}
	return nil
}

func pythonValues(system string) [][2]string {
	values := [][2]string{{"PYTHONDONTWRITEBYTECODE", "1"}, {"PYTHONUNBUFFERED", "1"}}
	if system == "windows" {
		values = append(values, [2]string{"PYTHONUTF8", "1"})
	}
	return values
}

func (b *builder) plan() *Plan {
	p := &Plan{Root: b.request.Root, Data: b.request.Data, parent: b.request.Parent, scope: b.scope, exempt: b.request.Exempt}
	for _, v := range b.vars {
		p.Vars = append(p.Vars, v)
	}
	sort.Slice(p.Vars, func(i, j int) bool { return p.Vars[i].Name < p.Vars[j].Name })
	return p
}

func checkName(name string) error {
	switch {
	case name == "":
		return coded.New("env-invalid", "an environment variable has an empty name")
	case strings.ContainsRune(name, 0):
		return nulError(name)
	case strings.ContainsRune(name, '='):
		return coded.New("env-invalid", fmt.Sprintf("the environment variable %q has '=' in its name", name))
	}
	return nil
}

func nulError(name string) error {
	return coded.New("env-nul", fmt.Sprintf("the environment variable %q holds a NUL character", name))
}
