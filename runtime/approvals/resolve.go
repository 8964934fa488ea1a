package approvals

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"sallyport/internal/coded"
	"sallyport/runtime/artifact"
	"sallyport/runtime/env"
	"sallyport/runtime/plugins"
)

// The symbols that stand for the two folders in an identity (spec/approval.md 2.1a).
const (
	rootSymbol = "${PLUGIN_ROOT}"
	dataSymbol = "${PLUGIN_DATA}"
)

// Mode says how much a resolution may believe.
type Mode int

// Full reads every byte: for questions and starts. Cached believes what the file
// system says did not change: for lists (spec/approval.md 5.2).
const (
	Full Mode = iota
	Cached
)

// Resolver turns a declared connector into what exactly would run.
type Resolver struct {
	Parent     env.Parent
	PluginData func(plugin string) string // PLUGIN_DATA, absolute
	Cache      *artifact.Cache            // may be nil: Cached then digests in full
	memo       programMemo
}

// Resolved is a connector as it is now, with everything an approval is bound to.
type Resolved struct {
	Connector  plugins.Connector
	Fields     Fields
	Identity   Identity
	Tree       *artifact.Tree // nil without a bundle
	Executable env.Executable // zero for a connector that is dialled
	Path       string         // the user's PATH that was used; stored with the approval
	Warnings   []Fact         // what the approval does not fix, most serious first
	plan       *env.Plan      // speaks of the source folder; for showing only
}

// Digest returns the digest of the bundle, "" without one.
func (r Resolved) Digest() artifact.Digest {
	if r.Tree == nil {
		return ""
	}
	return r.Tree.Digest
}

// Resolve finds, reads and expands everything. path is the user's PATH: the
// present one for a question, the approved one for comparing with an approval.
// A refusal is a *coded.Error that says why this cannot be approved as it is.
func (r *Resolver) Resolve(ctx context.Context, c plugins.Connector, mode Mode, path string) (Resolved, error) {
	out := Resolved{Connector: c, Path: path}
	if c.Invalid != nil {
		return out, c.Invalid
	}
	fields, err := r.declared(c)
	if err != nil {
		return out, err
	}
	passed, err := r.literals(c)
	if err != nil {
		return out, err
	}
	plan, err := r.plan(c, c.Root, path)
	if err != nil {
		return out, err
	}
	out.plan = plan
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		out.Tree, err = r.tree(ctx, c, mode)
		return err
	})
	if c.Transport == plugins.Stdio {
		group.Go(func() (err error) {
			out.Executable, err = r.program(ctx, c, mode, plan)
			return err
		})
	}
	var names named
	if c.Root == "" {
		group.Go(func() (err error) {
			names, err = r.inputsOf(ctx, c)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return out, err
	}
	fields.Inputs = names.inputs
	fields.Artifact = NoArtifact
	if out.Tree != nil {
		fields.Artifact = string(out.Tree.Digest)
		if c.SignedTree != "" && c.SignedTree != fields.Artifact {
			fields.Publisher = "" // the signature is not of these bytes
		}
	}
	if c.Transport == plugins.Stdio {
		program := programFields(out.Executable, r.symbolic(c))
		fields.Executable = &program
		out.Warnings = notFixed(c, out.Executable, fields, names.own)
	}
	out.Warnings = append(out.Warnings, literalFacts(c, passed)...)
	out.Fields = fields.normal()
	out.Identity = out.Fields.Identity()
	if out.Identity == "" {
		return out, &coded.Error{Code: artifact.CodePathEncoding, Sentence: "a text of the connector is not valid UTF-8", Next: "rename or rewrite it"}
	}
	return out, nil
}

// declared fills the fields that need no file but the manifest.
func (r *Resolver) declared(c plugins.Connector) (Fields, error) {
	f := Fields{
		Plugin: c.ID.Plugin, Binding: c.ID.Server, Source: c.Source, Version: c.Version,
		Transport: string(c.Transport),
		Inherit:   sorted(c.Launch.Inherit),
		Permitted: permissionFields(c.Requested),
		Options:   optionFields(c.Options),
		Publisher: c.Publisher,
	}
	if err := env.CheckArguments(c.Launch.Command, c.Launch.Args, c.Launch.Cwd); err != nil {
		return f, err
	}
	if err := env.CheckNoSecret("address", c.Launch.URL); err != nil {
		return f, err
	}
	root := rootSymbol
	if c.Root == "" {
		root = ""
	}
	words := r.words(c, root, dataSymbol)
	var err error
	if f.Env, err = entriesOf(c, words, c.Launch.Env); err != nil {
		return f, err
	}
	if f.Headers, err = entriesOf(c, words, c.Launch.Headers); err != nil {
		return f, err
	}
	for _, text := range []struct {
		field, declared string
		to              *Text
	}{
		{"command", c.Launch.Command, &f.Command}, {"working directory", c.Launch.Cwd, &f.Cwd}, {"address", c.Launch.URL, &f.URL},
	} {
		expanded, err := words.One(text.field, text.declared)
		if err != nil {
			return f, err
		}
		*text.to = Text{Declared: text.declared, Expanded: expanded}
	}
	if c.Transport != plugins.Stdio && f.URL.Expanded != f.URL.Declared {
		if err := plugins.CheckAddress(f.URL.Expanded); err != nil {
			return f, err
		}
	}
	args, err := words.Arguments(c.Launch.Args)
	if err != nil {
		return f, err
	}
	for _, arg := range args {
		f.Args = append(f.Args, Text(arg))
	}
	if c.Transport == plugins.Stdio && f.Cwd.Expanded == "" {
		f.Cwd.Expanded = defaultDir(c)
	}
	return f, nil
}

func defaultDir(c plugins.Connector) string {
	if c.Root == "" {
		return dataSymbol
	}
	return rootSymbol
}

// entriesOf leaves out what an optional setting without a value leaves out. The
// expanded form is there for the formats that have more than folders to expand.
func entriesOf(c plugins.Connector, words env.Words, values []plugins.Value) ([]Entry, error) {
	entries := make([]Entry, 0, len(values))
	for _, v := range values {
		entry := Entry{Name: v.Name, Value: v.Value, Operator: v.FromOperator}
		expanded, ok, err := words.Value(declaredOf(v))
		switch {
		case err != nil:
			return nil, err
		case !ok:
			continue
		case c.Format != plugins.AgentPlugins && c.Format != "" && expanded != v.Value:
			entry.Expanded = expanded
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

func declaredOf(v plugins.Value) env.Declared {
	return env.Declared{Name: v.Name, Value: v.Value, References: v.FromOperator}
}

// words expands the connector's texts with these folders.
func (r *Resolver) words(c plugins.Connector, root, data string) env.Words {
	return env.WordsOf(r.request(c, root, data))
}

func (r *Resolver) request(c plugins.Connector, root, data string) env.Request {
	return env.Request{
		Parent: r.Parent, Inherit: c.Launch.Inherit, Secrets: c.Requested.Secrets, Root: root, Data: data,
		Dialect: plugins.DialectOf(c.Format), Settings: c.Settings,
		Exempt: env.Exempt{Connector: c.ID.String(), NotSecret: c.Options.NotSecret},
	}
}

// plan builds the environment with root as PLUGIN_ROOT.
func (r *Resolver) plan(c plugins.Connector, root, path string) (*env.Plan, error) {
	request := r.request(c, root, r.data(c))
	request.Path = path
	for _, v := range c.Launch.Env {
		request.Declared = append(request.Declared, declaredOf(v))
	}
	plan, err := env.Build(request)
	if err != nil {
		return nil, err
	}
	for _, h := range c.Launch.Headers {
		if err := plan.CheckHeader(declaredOf(h)); err != nil {
			return nil, err
		}
	}
	return plan, nil
}

func (r *Resolver) data(c plugins.Connector) string {
	if r.PluginData == nil {
		return ""
	}
	return r.PluginData(c.DataName())
}

func (r *Resolver) tree(ctx context.Context, c plugins.Connector, mode Mode) (*artifact.Tree, error) {
	if c.Root == "" {
		return nil, nil
	}
	if mode == Cached && r.Cache != nil {
		return r.Cache.Tree(ctx, c.Root)
	}
	return artifact.Of(ctx, c.Root, artifact.Options{})
}

func (r *Resolver) program(ctx context.Context, c plugins.Connector, mode Mode, plan *env.Plan) (env.Executable, error) {
	search, err := r.search(c, c.Root, plan)
	if err != nil {
		return env.Executable{}, err
	}
	if mode == Cached {
		if known, ok := r.memo.get(search); ok {
			return known, nil
		}
	}
	begun := time.Now() // by the clock of the file system, so not one that is handed in
	found, err := env.Find(ctx, search)
	if err != nil {
		return found, err
	}
	args, err := r.arguments(c, c.Root)
	if err != nil {
		return found, err
	}
	if err := env.CheckBatch(found.Found, args); err != nil {
		return found, err
	}
	r.memo.put(search, found, begun)
	return found, nil
}

// arguments are those that a start from root is given.
func (r *Resolver) arguments(c plugins.Connector, root string) ([]string, error) {
	words, err := r.words(c, root, r.data(c)).Arguments(c.Launch.Args)
	args := make([]string, len(words))
	for i, word := range words {
		args[i] = word.Expanded
	}
	return args, err
}

func (r *Resolver) search(c plugins.Connector, root string, plan *env.Plan) (env.Search, error) {
	command, err := r.words(c, root, r.data(c)).One("command", c.Launch.Command)
	if err != nil {
		return env.Search{}, err
	}
	path, err := plan.Path()
	if err != nil {
		return env.Search{}, err
	}
	home, _ := r.Parent.Lookup("HOME")
	ext, _ := r.Parent.Lookup("PATHEXT")
	return env.Search{Command: command, Path: path, Root: root, Home: home, PathExt: ext}, nil
}

// symbolic writes a path below the two folders with their symbols.
func (r *Resolver) symbolic(c plugins.Connector) func(string) string {
	places := []struct{ dir, symbol string }{{c.Root, rootSymbol}, {r.data(c), dataSymbol}}
	return func(path string) string {
		for _, place := range places {
			if rel, ok := below(place.dir, path); ok {
				return place.symbol + "/" + rel
			}
		}
		return path
	}
}

// below returns path relative to dir, slashed, if it is inside.
func below(dir, path string) (string, bool) {
	if dir == "" || path == "" {
		return "", false
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

// refusalOf returns err as the coded error that it is or holds.
func refusalOf(err error) *coded.Error {
	var refusal *coded.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	code := "resolve-failed"
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		code = "interrupted"
	}
	return &coded.Error{Code: code, Sentence: "what would run could not be read", Next: "try again", Err: err}
}
