package plugins

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"sallyport/internal/coded"
	"sallyport/runtime/permissions"
)

// HandFile is where connectors are that have no bundle: written by the operator, by
// hand or with a command. It is JSON and may hold comments and trailing commas.
const HandFile = "connectors.json"

// HandEntry is one connector of that file, for whoever writes it. Its values may use
// the references of spec/child-environment.md 5.
type HandEntry struct {
	Command   string            `json:"command,omitempty"`
	Args      []string          `json:"args,omitempty"`
	Cwd       string            `json:"cwd,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	Inherit   []string          `json:"inherit,omitempty"`
	Transport string            `json:"transport,omitempty"`
	URL       string            `json:"url,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	// Permissions is what the connector asks for; a list that is absent is that of a
	// package which says nothing.
	Permissions *permissions.Set `json:"permissions,omitempty"`
	// Imported says which program's configuration the entry was taken from.
	Imported *Imported `json:"imported,omitempty"`
}

// Imported is where an entry came from.
type Imported struct {
	Client string    `json:"client"`
	File   string    `json:"file"` // with ~ for the home folder
	At     time.Time `json:"at"`
}

// handFields are the fields of an entry. It is a file of ours: what is not known is
// refused and not passed over.
func handFields() []string {
	return []string{"command", "args", "cwd", "env", "inherit", "transport", "type", "url", "headers", "permissions", "imported", "description"}
}

// loadHand reads the connectors of a file; nil if there is none. One that cannot be
// read is a plugin that is rejected, so that what was approved from it does not pass
// for gone.
func loadHand(path string) *Plugin {
	info, err := os.Stat(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	p := &Plugin{Name: ByHand, Format: ByHand, Source: HandFile, Description: "connectors written by hand", Manifest: HandFile}
	if err == nil {
		err = readable(info, maxServersFile)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		p.reject(Problem{Code: "connectors-unreadable", Path: HandFile, Sentence: "the file " + reason(err)})
		return p
	}
	p.readHand(data)
	return p
}

func (p *Plugin) readHand(data []byte) {
	r := &report{path: HandFile}
	entries, problem := r.handEntries(data)
	if problem != nil {
		p.reject(*problem)
		if p.Invalid != nil {
			p.Invalid.Next = "correct connectors.json, or remove it"
		}
		return
	}
	seen := map[string]int{}
	for _, m := range entries.members {
		if i, twice := seen[m.name]; twice {
			problem := r.add(m.at, "server-duplicate", fmt.Sprintf("the connector %s stands twice", show(m.name)))
			p.Connectors[i].Invalid = handRefusal(problem)
			continue
		}
		seen[m.name] = len(p.Connectors)
		p.Connectors = append(p.Connectors, r.handConnector(m))
	}
	p.Problems = r.problems
	slices.SortFunc(p.Connectors, func(a, b Connector) int { return cmp.Compare(a.ID.Server, b.ID.Server) })
}

// handEntries parses the file down to its entries.
func (r *report) handEntries(data []byte) (*node, *Problem) {
	fatal := func(at int64, sentence string) (*node, *Problem) {
		p := r.add(at, "connectors-invalid", sentence)
		where := r.doc.place(at)
		p.Line, p.Column = where.line, where.column
		return nil, &p
	}
	plain, err := standardJSON(data)
	if err != nil {
		var syntax *syntaxError
		p := &Problem{Code: "connectors-syntax", Path: r.path, Sentence: "this is not valid JSON"}
		if errors.As(err, &syntax) {
			p.Line, p.Column, p.Sentence = syntax.place.line, syntax.place.column, syntax.sentence
		}
		return nil, p
	}
	if !r.parse(plain, "connectors-syntax") {
		return nil, &r.problems[0]
	}
	root := r.doc.root
	if root.kind != '{' {
		return fatal(root.from, "the file is "+root.kindName()+", not an object")
	}
	if twice := root.repeatedHere(); twice != nil {
		return fatal(twice.at, fmt.Sprintf("the field %s stands twice", show(twice.name)))
	}
	for _, m := range root.members {
		if m.name != "connectors" && m.name != "$schema" {
			return fatal(m.at, fmt.Sprintf("the field %s is unknown; the connectors stand under connectors", show(m.name)))
		}
	}
	entries := root.get("connectors")
	switch {
	case entries == nil:
		return &node{kind: '{'}, nil
	case entries.kind != '{':
		return fatal(entries.from, "connectors is "+entries.kindName()+", not an object")
	case len(entries.members) > maxServers:
		return fatal(entries.from, fmt.Sprintf("there are more than %d connectors", maxServers))
	}
	return entries, nil
}

// handPlace is how the reader of comments says where.
var handPlace = regexp.MustCompile(`line (\d+), column (\d+)`)

// standardJSON replaces comments and trailing commas by spaces, so that every place
// stays where it is.
func standardJSON(data []byte) ([]byte, error) {
	plain, err := hujson.Standardize(slices.Clone(data)) // it writes into what it is given
	if err == nil {
		return plain, nil
	}
	// Where it is no JSON of either kind, the sentence of our own reader is better.
	if _, ours := parseDocument(data); ours != nil && !strings.Contains(ours.Error(), "comments are not") && !strings.Contains(ours.Error(), "closing bracket") {
		return nil, ours
	}
	syntax := &syntaxError{"this is not valid JSON, even with comments", place{1, 1}}
	if found := handPlace.FindStringSubmatch(err.Error()); found != nil {
		syntax.place.line, _ = strconv.Atoi(found[1])
		syntax.place.column, _ = strconv.Atoi(found[2])
	}
	return nil, syntax
}

func handRefusal(problem Problem) *coded.Error {
	refusal := problem.refusal()
	refusal.Next = "correct the entry in connectors.json"
	return refusal
}

// handConnector reads one entry.
func (r *report) handConnector(m member) Connector {
	c := Connector{
		ID: ID{Plugin: ByHand, Server: m.name}, Format: ByHand, Source: HandFile, Requested: permissions.Undeclared(),
	}
	s := server{name: m.name, at: m.at}
	if f := r.fillHand(&s, &c, m.value); f != nil {
		c.Invalid = handRefusal(r.add(cmp.Or(f.at, m.at), f.code, fmt.Sprintf("the connector %s: %s", show(m.name), f.sentence)))
	}
	c.Transport = s.transport
	inherit := c.Launch.Inherit
	c.Launch = s.launch
	c.Launch.Inherit = inherit
	for _, list := range [][]Value{c.Launch.Env, c.Launch.Headers} {
		for i := range list {
			list[i].FromOperator = true
			c.Requested.Secrets = referredTo(c.Requested.Secrets, inherit, list[i].Value)
		}
	}
	return c
}

func (r *report) fillHand(s *server, c *Connector, entry *node) *fault {
	if f := handName(s.name); f != nil {
		return f
	}
	if entry.kind == '{' {
		for _, field := range entry.members {
			if !slices.Contains(handFields(), field.name) {
				return &fault{field.at, "server-invalid", fmt.Sprintf("the field %s is unknown", show(field.name))}
			}
		}
		if f := c.handExtras(r.doc, entry); f != nil {
			return f
		}
	}
	return s.fillOpen(&report{}, entry, openEntry{format: ByHand})
}

func handName(name string) *fault {
	if name != strings.TrimSpace(name) {
		return &fault{0, "server-name-invalid", "the name begins or ends with a space"}
	}
	return serverName(name)
}

// handExtras are the fields that only an entry of ours has.
func (c *Connector) handExtras(doc *document, entry *node) *fault {
	if n := entry.get("inherit"); n != nil {
		list, ok := n.strings()
		if !ok {
			return &fault{n.from, "server-invalid", "inherit is not a list of strings"}
		}
		sentence := ""
		if c.Launch.Inherit, sentence = inheritNames(list); sentence != "" {
			return &fault{n.from, "server-invalid", sentence}
		}
	}
	if n := entry.get("permissions"); n != nil {
		set, err := permissions.Request(doc.raw(n))
		if err != nil {
			return &fault{n.from, "server-invalid", err.Error()}
		}
		c.Requested = set
	}
	return nil
}

// handReference finds secret:NAME and the parent's variables in a value.
var handReference = regexp.MustCompile(`^(?:secret|env):([^\s=]+)$|\$\{(?:secret:|env:)?([A-Za-z0-9_.-]+)(?::-[^}]*)?\}`)

// HasReference reports whether a value of an entry refers to a secret or a variable.
func HasReference(value string) bool { return handReference.MatchString(value) }

// referredTo adds the names that a value of the operator's own refers to: who writes
// the reference asks for it, and the approval is still asked about it.
func referredTo(asked, inherit []string, value string) []string {
	for _, found := range handReference.FindAllStringSubmatch(value, -1) {
		name := found[1] + found[2]
		if _, place := DialectOf(ByHand).Places[name]; place || slices.Contains(inherit, name) || slices.Contains(asked, name) {
			continue
		}
		asked = append(slices.Clone(asked), name)
	}
	slices.Sort(asked)
	return asked
}

// DataName is the name of the connector's own writable folder: its plugin's, and for
// one without a bundle its own. It is a safe name for a folder on every system.
func (c Connector) DataName() string {
	if c.Format != ByHand {
		return c.ID.Plugin
	}
	return ByHand + "/" + folderName(c.ID.Server)
}
