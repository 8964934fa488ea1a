package approvals

import (
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

// hideLeftIn hides in a file's text the credentials that the package still holds.
func hideLeftIn(c plugins.Connector, text string) string {
	for _, l := range leftIn(c) {
		for _, v := range c.Launch.Replaced {
			if v.Name == l.Name && v.Value != "" {
				text = strings.ReplaceAll(text, v.Value, env.Hidden)
			}
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
