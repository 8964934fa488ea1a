package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"sallyport/internal/atomicfile"
	"sallyport/internal/coded"
	"sallyport/internal/onejson"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/clients"
	"sallyport/runtime/env"
	"sallyport/runtime/launchers"
	"sallyport/runtime/permissions"
	"sallyport/runtime/plugins"
)

// ImportFile is a file of an agent program, with what could be imported from it.
type ImportFile struct {
	clients.Found
	Servers []ImportServer
}

// ImportServer is one entry, as it would be imported.
type ImportServer struct {
	clients.Entry
	Import clients.Import
	// Literals are the credentials that are written out in it: names, never values.
	Literals []env.Literal
	// Fetches is the code that it downloads when it starts.
	Fetches []launchers.Fetch
	// Connector is what it was imported as already; "" if it was not.
	Connector string
	// SameAs is the first entry, CLIENT:NAME, that says exactly the same.
	SameAs string
	// Own is true for Sallyport's own entry, which is not for importing.
	Own bool
	// Refused says why it cannot be imported; nil otherwise.
	Refused *coded.Error
}

// Importable lists what could be imported: from every agent program's files, those of
// a project too where one is named, or from a text that somebody hands over. It
// writes nothing.
func (h *Host) Importable(project string, text *ImportText) ([]ImportFile, error) {
	var projects []string
	if project != "" {
		folder, err := h.projectFolder(project)
		if err != nil {
			return nil, err
		}
		projects = []string{folder}
	}
	var found []clients.Found
	if text != nil {
		found = clients.Parse(h.system(), text.Name, text.Raw)
	} else {
		found = clients.Read(h.system(), projects...)
	}
	known, err := h.imports()
	if err != nil {
		return nil, err
	}
	seen := map[string]string{}
	files := make([]ImportFile, len(found))
	for i, f := range found {
		files[i].Found = f
		for _, e := range f.Entries {
			files[i].Servers = append(files[i].Servers, h.importServer(f, e, known, seen))
		}
	}
	return files, nil
}

// ImportText is a configuration that somebody hands over as text.
type ImportText struct {
	Name string // of the file, for its ending
	Raw  []byte
}

func (h *Host) importServer(f clients.Found, e clients.Entry, known []imported, seen map[string]string) ImportServer {
	s := ImportServer{Entry: e, Own: ownEntry(e)}
	for _, one := range known {
		if one.is(f, e.Name) {
			s.Connector = one.Connector
		}
	}
	if s.Import, s.Refused = f.Convert(e); s.Refused != nil {
		return s
	}
	s.Fetches = launchers.Recognise(s.Import.Command, s.Import.Args)
	s.Literals = literalsOf(s.Import)
	for _, l := range s.Literals {
		if (l.Where == env.InArgument || l.Where == env.InAddress) && !l.Placeholder {
			s.Refused = &coded.Error{Code: "literal-secret",
				Sentence: fmt.Sprintf("%s: %s is written out in %s, where every program on the computer could read it", cutName(e.Name), l.Kind, literalPlace(l)),
				Next:     "see whether the server takes it from an environment variable or a header, and write that in the program's file"}
		}
	}
	key := sameKey(s.Import)
	if first, there := seen[key]; there {
		s.SameAs = first
	} else if !s.Own {
		seen[key] = f.Client + ":" + e.Name
	}
	return s
}

func literalPlace(l env.Literal) string {
	if l.Where == env.InAddress {
		return "its address"
	}
	return "its arguments"
}

func cutName(name string) string {
	if runes := []rune(name); len(runes) > 60 {
		return string(runes[:59]) + "…"
	}
	return name
}

// ownEntry reports whether an entry starts Sallyport itself.
func ownEntry(e clients.Entry) bool {
	base := strings.TrimSuffix(filepath.Base(filepath.FromSlash(strings.ReplaceAll(e.Command, `\`, "/"))), ".exe")
	self, err := os.Executable()
	return len(e.Args) > 0 && e.Args[0] == "mcp" && (base == "sallyport" || err == nil && e.Command == self)
}

// sameKey is equal for entries that say the same, whatever they are called.
func sameKey(i clients.Import) string {
	i.Name = ""
	raw, _ := json.Marshal(i) // text and lists always encode
	return string(raw)
}

var referenceInside = regexp.MustCompile(`\$\{[^}]*\}|^(?:secret|env):`)

// literalsOf finds credentials in what is not a reference.
func literalsOf(i clients.Import) []env.Literal {
	literal := func(pairs []clients.Pair) (values []env.NameValue) {
		for _, p := range pairs {
			if !referenceInside.MatchString(p.Value) {
				values = append(values, env.NameValue{Name: p.Name, Value: p.Value})
			}
		}
		return values
	}
	return env.FindLiterals(env.Texts{Env: literal(i.Env), Headers: literal(i.Headers), Args: i.Args, URL: i.URL})
}

// Importing says what is to be imported.
type Importing struct {
	Picks   []Pick // none: everything that can be
	Project string
	Text    *ImportText
	// LeaveSecrets keeps no value: what refers to one is blocked until it is set.
	LeaveSecrets bool
	DryRun       bool
}

// Pick names entries: those of a client, of one file of it, or one by name.
type Pick struct{ Client, File, Name string }

// Imported says what became of one entry.
type Imported struct {
	Client, File, Name string
	// Connector is its id; "" where it was refused.
	Connector string
	// Renamed is true where the name was taken or could not be one.
	Renamed bool
	// SameAs names the entry that says the same, and that it shares a connector with.
	SameAs string
	// Kept are the names of secrets whose values went to the keyring, Needs of those
	// that have to be set.
	Kept, Needs []string
	Refused     *coded.Error
	// Already is true where it was imported before.
	Already bool
}

// Import writes entries of other programs into connectors.json, as connectors that
// nobody has approved. The programs' files are read and never written. Credentials go
// to the keyring first; where that fails, the entry is refused.
func (h *Host) Import(ctx context.Context, what Importing, by approvals.By) ([]Imported, error) {
	h.connecting.Lock()
	defer h.connecting.Unlock()
	h.writingHand.Lock()
	defer h.writingHand.Unlock()
	files, err := h.Importable(what.Project, what.Text)
	if err != nil {
		return nil, err
	}
	text, err := h.handText()
	if err != nil {
		return nil, err
	}
	edit, err := plugins.EditHand(text)
	if err != nil {
		return nil, err
	}
	known, err := h.imports()
	if err != nil {
		return nil, err
	}
	kept, err := h.Secrets.List(ctx)
	if err != nil {
		return nil, err
	}
	run := importRun{host: h, what: what, by: by, edit: edit, connector: map[string]string{}, secretOf: map[string]string{}, taken: map[string]bool{}}
	for _, k := range kept {
		run.taken[k.Name] = true
	}
	for _, f := range files {
		for _, s := range f.Servers {
			if what.wants(f.Found, s) {
				run.one(ctx, f.Found, s)
			}
		}
	}
	if what.DryRun || len(run.added) == 0 {
		return run.results, nil
	}
	for _, one := range run.added {
		record := audit.Record{Action: audit.Import, Result: audit.OK, Actor: by.User, Via: by.Via, Target: one.Client,
			Plugin: plugins.ByHand, Binding: strings.TrimPrefix(one.Connector, plugins.ByHand+"/")}
		if _, err := h.Audit.Append(ctx, record); err != nil {
			return nil, err
		}
	}
	if err := h.writeHand(text, edit.Text()); err != nil {
		return nil, err
	}
	if err := h.keepImports(append(known, run.added...)); err != nil {
		return nil, err
	}
	h.reread(context.WithoutCancel(ctx))
	return run.results, nil
}

// wants reports whether an entry was picked. Everything means everything new.
func (w Importing) wants(f clients.Found, s ImportServer) bool {
	if s.Own {
		return false
	}
	if len(w.Picks) == 0 {
		return true
	}
	return slices.ContainsFunc(w.Picks, func(p Pick) bool {
		return p.Client == f.Client && (p.File == "" || p.File == f.File) && (p.Name == "" || p.Name == s.Name)
	})
}

// importRun is one import while it goes on.
type importRun struct {
	host      *Host
	what      Importing
	by        approvals.By
	edit      *plugins.HandEdit
	results   []Imported
	added     []imported
	connector map[string]string // by what an entry says
	secretOf  map[string]string // by value
	taken     map[string]bool   // names of secrets
}

func (r *importRun) one(ctx context.Context, f clients.Found, s ImportServer) {
	result := Imported{Client: f.Client, File: f.File, Name: s.Name, Refused: s.Refused}
	key := sameKey(s.Import)
	switch {
	case s.Refused != nil:
	case s.Connector != "":
		result.Already, result.Connector = true, s.Connector
	case r.connector[key] != "":
		result.Connector, result.SameAs = r.connector[key], s.SameAs
	default:
		r.add(ctx, f, s, &result)
		r.connector[key] = result.Connector
	}
	if result.Connector != "" && !result.Already {
		r.added = append(r.added, imported{f.Client, f.File, f.Project, s.Name, result.Connector})
	}
	r.results = append(r.results, result)
}

// add puts one entry into connectors.json, with its values replaced by references.
func (r *importRun) add(ctx context.Context, f clients.Found, s ImportServer, result *Imported) {
	i, needs := s.Import, slices.Clone(s.Import.Secrets)
	values := map[string]string{} // to keep, by the secret's name
	i.Env = r.withoutLiterals(i.Env, s.Literals, env.InEnv, values, &needs)
	i.Headers = r.withoutLiterals(i.Headers, s.Literals, env.InHeader, values, &needs)
	name := freeName(s.Name, r.edit.Names())
	entry := handEntry(i, append(needs, keysOf(values)...), plugins.Imported{Client: f.Client, File: f.File, At: r.host.now().UTC().Truncate(time.Second)})
	if err := plugins.CheckHand(name, entry); err != nil {
		result.Refused = asRefusal(err)
		return
	}
	for _, secret := range keysOf(values) {
		if r.what.LeaveSecrets {
			needs = append(needs, secret)
			continue
		}
		result.Kept = append(result.Kept, secret)
		if r.what.DryRun {
			continue
		}
		if err := r.host.SetSecret(ctx, secret, []byte(values[secret]), r.by); err != nil {
			result.Refused, result.Kept = asRefusal(err), nil
			return
		}
	}
	for secret, value := range values {
		r.secretOf[value], r.taken[secret] = secret, true
	}
	if err := r.edit.Add(name, entry); err != nil {
		result.Refused = asRefusal(err)
		return
	}
	slices.Sort(needs)
	result.Needs = slices.Compact(needs)
	result.Connector, result.Renamed = plugins.ByHand+"/"+name, name != s.Name
}

// withoutLiterals puts a reference in the place of every credential.
func (r *importRun) withoutLiterals(pairs []clients.Pair, literals []env.Literal, where env.Where, values map[string]string, needs *[]string) []clients.Pair {
	out := slices.Clone(pairs)
	for i, p := range out {
		at := slices.IndexFunc(literals, func(l env.Literal) bool { return l.Where == where && l.Name == p.Name })
		if at < 0 {
			continue
		}
		scheme, value := "", p.Value
		if found := authScheme.FindString(p.Value); where == env.InHeader && found != "" {
			scheme, value = found, p.Value[len(found):]
		}
		secret, known := r.secretOf[value]
		if !known {
			secret = r.freeSecret(literals[at].Secret, values)
		}
		switch {
		case literals[at].Placeholder:
			*needs = append(*needs, secret)
		case known && !r.what.LeaveSecrets:
			// Kept already, under the name of the first entry that had it.
		default:
			values[secret] = value
		}
		out[i].Value = "secret:" + secret
		if scheme != "" {
			out[i].Value = scheme + "${secret:" + secret + "}"
		}
	}
	return out
}

var authScheme = regexp.MustCompile(`^(?i:bearer|basic|token|apikey|api-key)[ \t]+`)

// freeSecret is a name that no other value has.
func (r *importRun) freeSecret(name string, values map[string]string) string {
	for n := 1; ; n++ {
		candidate := name
		if n > 1 {
			candidate = fmt.Sprintf("%s_%d", name, n)
		}
		if _, used := values[candidate]; !used && !r.taken[candidate] {
			return candidate
		}
	}
}

func keysOf(values map[string]string) []string {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// freeName makes a connector's name of a server's, that no other has.
func freeName(name string, taken []string) string {
	clean := strings.Trim(strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 127 {
			return r
		}
		return '-'
	}, strings.TrimSpace(name)), "-.")
	if runes := []rune(clean); len(runes) > 60 {
		clean = string(runes[:60])
	}
	if clean == "" || plugins.CheckHand(clean, plugins.HandEntry{Command: "x"}) != nil {
		clean = "server"
	}
	for n := 1; ; n++ {
		candidate := clean
		if n > 1 {
			candidate = fmt.Sprintf("%s-%d", clean, n)
		}
		if !slices.Contains(taken, candidate) {
			return candidate
		}
	}
}

func handEntry(i clients.Import, secrets []string, from plugins.Imported) plugins.HandEntry {
	entry := plugins.HandEntry{Command: i.Command, Args: i.Args, Cwd: i.Cwd, Env: mapOf(i.Env), Inherit: i.Inherit,
		URL: i.URL, Headers: mapOf(i.Headers), Imported: &from}
	if i.Transport != clients.Stdio {
		entry.Transport = string(i.Transport)
	}
	if len(secrets) > 0 {
		slices.Sort(secrets)
		entry.Permissions = &permissions.Set{Secrets: slices.Compact(secrets)}
	}
	return entry
}

func mapOf(pairs []clients.Pair) map[string]string {
	if len(pairs) == 0 {
		return nil
	}
	values := map[string]string{}
	for _, p := range pairs {
		values[p.Name] = p.Value
	}
	return values
}

func asRefusal(err error) *coded.Error {
	var refusal *coded.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	return &coded.Error{Code: "import-failed", Sentence: "it could not be imported", Err: err, Next: "see the log, and report it with the time"}
}

// imported is one line of the list of what was imported from where. It grants
// nothing, so it is not sealed.
type imported struct {
	Client    string `json:"client"`
	File      string `json:"file"`
	Project   string `json:"project,omitempty"`
	Server    string `json:"server"`
	Connector string `json:"connector"`
}

func (i imported) is(f clients.Found, name string) bool {
	return i.Client == f.Client && i.File == f.File && i.Project == f.Project && i.Server == name
}

type importsFile struct {
	Imports []imported `json:"imports"`
}

func (h *Host) importsPath() string { return filepath.Join(h.Places.Data, "imports.json") }

// imports are what was imported and is still there.
func (h *Host) imports() ([]imported, error) {
	raw, err := os.ReadFile(h.importsPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var kept importsFile
	if err == nil {
		err = onejson.Decode(raw, &kept)
	}
	if err != nil {
		return nil, &coded.Error{Code: "imports-unreadable", Sentence: "the list of what was imported cannot be read", Err: err,
			Next: "look at imports.json in the data folder; without it nothing counts as imported"}
	}
	text, err := h.handText()
	if err != nil {
		return nil, err
	}
	edit, err := plugins.EditHand(text)
	if err != nil {
		return nil, err
	}
	names := edit.Names()
	return slices.DeleteFunc(kept.Imports, func(i imported) bool {
		return !slices.Contains(names, strings.TrimPrefix(i.Connector, plugins.ByHand+"/"))
	}), nil
}

func (h *Host) keepImports(all []imported) error {
	raw, err := json.MarshalIndent(importsFile{all}, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(h.importsPath(), append(raw, '\n'), 0o600)
}

// importedFrom names the entries of the file that a program's entry is written into
// which were imported and are still in it.
func (h *Host) importedFrom(client clients.Client, project string) ([]string, error) {
	target, err := client.Target(h.system(), project)
	if err != nil {
		return nil, err
	}
	known, err := h.imports()
	if err != nil {
		return nil, err
	}
	var projects []string
	if project != "" {
		projects = []string{project}
	}
	var names []string
	for _, f := range clients.Read(h.system(), projects...) {
		if f.Client != client.Name || f.File != target || project == "" && f.Project != "" {
			continue
		}
		for _, e := range f.Entries {
			if slices.ContainsFunc(known, func(i imported) bool { return i.is(f, e.Name) }) {
				names = append(names, e.Name)
			}
		}
	}
	return names, nil
}
