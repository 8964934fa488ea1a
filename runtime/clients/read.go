package clients

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/coded"
)

// Input is something that VS Code asks the person for. Secret is the name that it
// would have in the keyring.
type Input struct{ Secret, Description string }

// Found is one file of a client, or the part of one that belongs to a project.
type Found struct {
	Client, Title string
	Scope         Scope
	// Project is the folder that the servers are for, as a label; "" for all.
	Project string
	File    string // a label: ~/…
	// Recognised says what shape the servers are in; "" where it is none.
	Recognised string
	Entries    []Entry
	Inputs     []Input
	// Problem is about the whole file: it cannot be read, or holds no configuration.
	// Entries is then empty, which does not mean that there are none.
	Problem *coded.Error

	path    string
	project string
	syntax  syntax
	system  System
}

// Read looks at the files of every client: the user's, those of the projects that
// are named, and those of the projects that Claude Code knows. A file that is not
// there is nothing to speak of; one that cannot be read is listed with the reason.
func Read(system System, projects ...string) []Found {
	var all []Found
	for _, client := range Clients() {
		all = append(all, client.read(system, "")...)
		for _, project := range projects {
			all = append(all, client.read(system, project)...)
		}
	}
	return all
}

func (c Client) read(system System, project string) (all []Found) {
	seen := map[string]bool{}
	for _, p := range c.places {
		if (p.scope == Project) != (project != "") {
			continue
		}
		for _, path := range system.find(p, project) {
			if !seen[path] {
				seen[path] = true
				all = append(all, c.readFile(system, p, path, project)...)
			}
		}
	}
	return all
}

func (c Client) readFile(system System, p place, path, project string) []Found {
	one := Found{Client: c.Name, Title: c.Title, Scope: p.scope, File: system.Label(path),
		path: path, project: project, syntax: c.syntax, system: system}
	if project != "" {
		one.Project = system.Label(project)
	}
	raw, err := readBounded(path)
	if err != nil {
		one.Problem = unreadable(err)
		return []Found{one}
	}
	all := one.fill(p.format, p.shapes, raw)
	if p.extra && !slices.ContainsFunc(all, func(f Found) bool { return len(f.Entries) > 0 || f.Recognised != "" }) {
		return nil
	}
	return all
}

// Parse reads the text of a configuration whose client is not known: name is the
// file's, which tells how it is written.
func Parse(system System, name string, raw []byte) []Found {
	one := Found{Client: "file", Title: filepath.Base(name), Scope: User, File: filepath.Base(name), system: system,
		syntax: syntax{braces: true, editor: true, curly: true, mustache: true}}
	if len(raw) > maxFile {
		one.Problem = unreadable(errTooLarge)
		return []Found{one}
	}
	f := isJSON
	switch strings.ToLower(filepath.Ext(name)) {
	case ".toml":
		f = isTOML
	case ".yaml", ".yml":
		f = isYAML
	}
	return one.fill(f, []shape{mcpServers, serverList, projects, vsServers, vsSettings, vsSettingsFlat, oldContinue, codex, zed, openCode, goose, flat}, raw)
}

// fill reads the servers of every shape that the file has.
func (one Found) fill(f format, shapes []shape, raw []byte) []Found {
	text, _, err := decode(raw)
	var root *node
	if err == nil {
		root, err = parse(f, text)
	}
	if err != nil {
		one.Problem = &coded.Error{Code: "client-file-invalid", Sentence: "the file cannot be understood: " + err.Error(),
			Next: "correct the file, in the program that it belongs to or in an editor"}
		return []Found{one}
	}
	if root.kind != isObject {
		one.Problem = notConfiguration(root.at)
		return []Found{one}
	}
	all := one.fromShapes(shapes, root)
	if len(all) == 0 {
		one.Problem = notConfiguration(root.at)
		if len(root.members) == 0 || one.Client != "file" {
			one.Problem = nil // a client's own file that has no servers yet
			one.Recognised = shapes[0].says
		}
		return []Found{one}
	}
	return all
}

func notConfiguration(at Place) *coded.Error {
	return &coded.Error{Code: "not-an-mcp-configuration", Sentence: fmt.Sprintf("it is not an MCP configuration (%s)", at),
		Next: "the known forms are mcpServers, servers, mcp, mcp_servers, context_servers and extensions; sallyport import --help names the clients"}
}

func (one Found) fromShapes(shapes []shape, root *node) (all []Found) {
	for _, s := range shapes {
		if s.path == nil && !looksFlat(root) {
			continue
		}
		if s.perProject {
			all = append(all, one.perProject(s, root)...)
			continue
		}
		if holder := root.path(s.path...); one.Client == "file" && holder != nil && (holder.kind == isList) != s.list {
			continue // another shape's
		}
		entries, ok, problem := s.entries(root)
		if problem != nil && slices.ContainsFunc(all, func(f Found) bool { return f.Problem != nil }) {
			continue // said already
		}
		if !ok && problem == nil || s.goose && one.Client == "file" && len(entries) == 0 {
			continue
		}
		found := one
		found.Recognised, found.Entries, found.Problem, found.Inputs = s.says, entries, problem, s.inputsOf(root)
		all = append(all, found)
		if s.openCode && len(entries) == 0 && len(all) > 1 {
			all = all[:len(all)-1]
		}
	}
	return slices.DeleteFunc(all, func(f Found) bool { return len(all) > 1 && len(f.Entries) == 0 && f.Problem == nil })
}

// looksFlat reports whether an object holds nothing but servers.
func looksFlat(root *node) bool {
	for _, m := range root.members {
		if m.value.kind != isObject || m.value.get("command") == nil && m.value.get("url") == nil {
			return false
		}
	}
	return len(root.members) > 0
}

func (one Found) perProject(s shape, root *node) (all []Found) {
	holder := root.path(s.path...)
	if holder == nil || holder.kind != isObject {
		return nil
	}
	for _, m := range holder.members {
		entries, ok, problem := mcpServers.entries(m.value)
		if !ok || len(entries) == 0 && problem == nil {
			continue
		}
		found := one
		found.Scope, found.Recognised, found.Entries, found.Problem = Project, s.says, entries, problem
		found.Project, found.project = one.system.Label(filepath.Clean(m.name)), m.name
		all = append(all, found)
	}
	return all
}

func (s shape) inputsOf(root *node) (found []Input) {
	list := root.path(s.inputs...)
	if s.inputs == nil || list == nil || list.kind != isList {
		return nil
	}
	for _, item := range list.items {
		id, ok := item.textAt("id")
		description, _ := item.textAt("description")
		if ok {
			found = append(found, Input{secretName(id), description})
		}
	}
	return found
}

var errTooLarge = errors.New("it is larger than is read (16 MiB)")

// readBounded reads a regular file of bounded size.
func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read only
	raw, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(raw) > maxFile {
		err = errTooLarge
	}
	return raw, err
}

func unreadable(err error) *coded.Error {
	return &coded.Error{Code: "client-file-unreadable", Sentence: "the file cannot be read: " + pathless(err), Err: err,
		Next: "make it a file that you may read"}
}

// pathless is the cause without the user's path.
func pathless(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}
