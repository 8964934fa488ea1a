package approvals

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sallyport/runtime/env"
	"sallyport/runtime/plugins"
)

// literals refuses what looks like a credential and was not said to be none
// (spec/child-environment.md 5.1), and returns what was.
func (r *Resolver) literals(c plugins.Connector) ([]env.Literal, error) {
	words, found, err := r.findLiterals(c)
	if err != nil {
		return nil, err
	}
	return found, words.CheckLiterals(found)
}

func (r *Resolver) findLiterals(c plugins.Connector) (env.Words, []env.Literal, error) {
	root := rootSymbol
	if c.Root == "" {
		root = ""
	}
	words := r.words(c, root, dataSymbol)
	found, err := words.Literals(declaredAll(c.Launch.Env), declaredAll(c.Launch.Headers), c.Launch.Args, c.Launch.URL)
	return words, found, err
}

// Literals lists what looks like a credential in a connector as it is declared now,
// also what the operator said is none.
func (g *Gate) Literals(id plugins.ID) ([]env.Literal, error) {
	find := g.cfg.ConnectorNow
	if find == nil {
		find = g.cfg.Connector
	}
	c, ok := find(id)
	switch {
	case !ok:
		return nil, unknownConnector(id)
	case c.Invalid != nil:
		return nil, c.Invalid
	}
	_, found, err := g.resolver.findLiterals(c)
	if err != nil {
		return nil, refusalOf(err)
	}
	return found, nil
}

func declaredAll(values []plugins.Value) []env.Declared {
	list := make([]env.Declared, len(values))
	for i, v := range values {
		list[i] = declaredOf(v)
	}
	return list
}

// literalFacts says what passes as no secret, and what still lies in a package.
func literalFacts(c plugins.Connector, passed []env.Literal) []Fact {
	var facts []Fact
	var others []string
	for _, l := range passed {
		if !l.Certain {
			others = append(others, Visible(l.Name))
			continue
		}
		facts = append(facts, Fact{FactNotSecret, fmt.Sprintf("%s looks like %s, and you said that it is no secret", Visible(l.Name), l.Kind), true})
	}
	if others != nil {
		facts = append(facts, Fact{FactNotSecret, "you said that this is no secret: " + strings.Join(others, ", "), false})
	}
	for _, l := range leftIn(c) {
		facts = append(facts, Fact{FactLeftIn,
			fmt.Sprintf("the package still holds %s in %s; what you set is used in its place", l.Kind, Visible(l.Name)), false})
	}
	return facts
}

// leftIn lists the credentials of a package that the operator's values replace.
func leftIn(c plugins.Connector) []env.Literal {
	var texts env.Texts
	for _, v := range c.Launch.Replaced {
		texts.Env = append(texts.Env, env.NameValue{Name: v.Name, Value: v.Value})
	}
	return slices.DeleteFunc(env.FindLiterals(texts), func(l env.Literal) bool { return l.Placeholder })
}

// credentials are values that are hidden in a file's text.
type credentials []string

// leftInValues are the credentials that the package still holds.
func leftInValues(c plugins.Connector) (values credentials) {
	for _, l := range leftIn(c) {
		for _, v := range c.Launch.Replaced {
			if v.Name == l.Name {
				values = append(values, v.Value)
			}
		}
	}
	return values
}

// writtenOut are the credentials that a copy of a bundle itself declares for its
// servers: another copy's connector does not know them. What the operator said of id is
// none is left out. Where the copy cannot be read they are not known.
func writtenOut(ctx context.Context, root string, id plugins.ID, x env.Exempt) (values credentials, known bool) {
	if root == "" {
		return nil, false
	}
	bundle, err := plugins.Load(ctx, root)
	if err != nil || bundle.Invalid != nil {
		return nil, false
	}
	for _, c := range bundle.Connectors {
		said := env.Exempt{}
		if c.ID.Server == id.Server {
			said = x
		}
		for _, v := range c.Launch.Env {
			values = append(values, hiddenPart(v.Value, said.ShowValue(env.InEnv, v.Name, v.Value)))
		}
		for _, v := range c.Launch.Headers {
			values = append(values, hiddenPart(v.Value, said.ShowValue(env.InHeader, v.Name, v.Value)))
		}
		for i, shown := range said.ShowArguments(c.Launch.Args) {
			values = append(values, hiddenPart(c.Launch.Args[i], shown))
		}
		values = append(values, hiddenPart(c.Launch.URL, said.ShowAddress(c.Launch.URL)))
	}
	return values, true
}

// hiddenPart is what of a text is missing where it is shown.
func hiddenPart(text, shown string) string {
	if text == shown {
		return ""
	}
	_, credential := env.SplitScheme(strings.TrimPrefix(text, strings.TrimSuffix(shown, env.Hidden)))
	return credential
}

// hideIn hides them, as they are and as JSON writes them, the longest first.
func (values credentials) hideIn(text string) string {
	inJSON := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	longest := slices.SortedFunc(slices.Values(values), func(a, b string) int { return len(b) - len(a) })
	for _, value := range longest {
		if value != "" {
			text = strings.ReplaceAll(text, inJSON.Replace(value), env.Hidden)
			text = strings.ReplaceAll(text, value, env.Hidden)
		}
	}
	return text
}

// exempt is what the operator had said is no secret when the fields were read.
func (f Fields) exempt() env.Exempt { return env.Exempt{NotSecret: f.Options.NotSecret} }

// shownArgs are the arguments for showing, what looks like a credential hidden: also
// of an approval from a time that did not know the shape yet.
func (f Fields) shownArgs(of func(Text) string) []string {
	args := make([]string, len(f.Args))
	for i, arg := range f.Args {
		args[i] = of(arg)
	}
	return f.exempt().ShowArguments(args)
}

// shownEntry is an environment entry or header for showing.
func (f Fields) shownEntry(where env.Where, e Entry) Entry {
	e.Value = f.exempt().ShowValue(where, e.Name, e.Value)
	e.Expanded = f.exempt().ShowValue(where, e.Name, e.Expanded)
	return e
}

// shownURL is the address for showing.
func (f Fields) shownURL() Text {
	return Text{f.exempt().ShowAddress(f.URL.Declared), f.exempt().ShowAddress(f.URL.Expanded)}
}
