package clients

import (
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/coded"
)

// shape is where the servers stand in a tree, and what is odd about its entries.
type shape struct {
	says   string // "recognised as …"
	path   []string
	inputs []string
	list   bool // a list of entries with a name each
	// perProject is the file of Claude Code that holds one object of servers for each
	// project.
	perProject bool
	sseURL     bool // "url" is SSE and "httpUrl" is not
	goose      bool
	openCode   bool
}

var (
	mcpServers      = shape{says: "mcpServers (Claude, Cursor and others)", path: []string{"mcpServers"}}
	projects        = shape{says: "mcpServers of projects (Claude Code)", path: []string{"projects"}, perProject: true}
	gemini          = shape{says: "mcpServers (Gemini CLI)", path: []string{"mcpServers"}, sseURL: true}
	serverList      = shape{says: "a list mcpServers (Continue)", path: []string{"mcpServers"}, list: true}
	oldContinue     = shape{says: "modelContextProtocolServers (Continue)", path: []string{"experimental", "modelContextProtocolServers"}, list: true}
	vsServers       = shape{says: "servers (VS Code mcp.json)", path: []string{"servers"}, inputs: []string{"inputs"}}
	vsSettings      = shape{says: "mcp.servers (VS Code settings)", path: []string{"mcp", "servers"}, inputs: []string{"mcp", "inputs"}}
	vsSettingsFlat  = shape{says: "mcp.servers (VS Code settings)", path: []string{"mcp.servers"}, inputs: []string{"mcp.inputs"}}
	codex           = shape{says: "mcp_servers (Codex)", path: []string{"mcp_servers"}}
	zed             = shape{says: "context_servers (Zed)", path: []string{"context_servers"}}
	goose           = shape{says: "extensions (Goose)", path: []string{"extensions"}, goose: true}
	openCode        = shape{says: "mcp (OpenCode)", path: []string{"mcp"}, openCode: true}
	openCodeServers = shape{says: "mcp.servers (OpenCode)", path: []string{"mcp", "servers"}, openCode: true}
	flat            = shape{says: "servers by name, without a key around them"}
)

// Transport is how a server is reached.
type Transport string

// The transports; "" is one that could not be told.
const (
	Stdio          Transport = "stdio"
	StreamableHTTP Transport = "streamable-http"
	SSE            Transport = "sse"
)

// Code is the code of a problem of one entry.
type Code string

// The codes of entries.
const (
	entryInvalid     Code = "client-entry-invalid"
	entryContradicts Code = "client-entry-contradicts"
	entryUnsupported Code = "client-entry-unsupported"
	entryRepeated    Code = "client-entry-repeated"
)

// Pair is a variable or a header.
type Pair struct{ Name, Value string }

// Entry is one server of a file, as it is written there.
type Entry struct {
	Name      string
	Transport Transport
	Command   string
	Args      []string
	Cwd       string
	Env       []Pair
	Headers   []Pair
	URL       string
	Disabled  bool
	// Problem says why it cannot be imported as it is; nil otherwise.
	Problem *coded.Error
	Place   Place

	inherit []string // variables that are passed on by name
	keys    []string // variables whose values are in a keyring of the client's
}

// entries reads what a shape holds. ok is false where its key is not there.
func (s shape) entries(root *node) (found []Entry, ok bool, problem *coded.Error) {
	holder := root.path(s.path...)
	if s.path == nil {
		holder = root
	}
	if holder == nil {
		return nil, false, s.lookalike(root)
	}
	if len(holder.members)+len(holder.items) > maxEntries {
		return nil, true, fileProblem(holder.at, "it holds more than 1000 servers")
	}
	switch {
	case holder.kind == isNull:
		return nil, true, nil
	case holder.kind == isList && s.list:
		found = s.fromList(holder)
	case holder.kind == isObject:
		found = s.fromObject(holder)
	default:
		return nil, true, fileProblem(holder.at, fmt.Sprintf("%s is %s and holds no servers", strings.Join(s.path, "."), holder.kind.words()))
	}
	return found, true, nil
}

// lookalike tells of a key that is the right one but for its case, which the client
// does not read and a reader of less care would, and of one that stands twice.
func (s shape) lookalike(root *node) *coded.Error {
	if root == nil || len(s.path) == 0 {
		return nil
	}
	first := s.path[0]
	switch root.count(first) {
	case 0:
	case 1:
		return nil
	default:
		return fileProblem(root.at, fmt.Sprintf("%s stands twice in it", first))
	}
	for _, m := range root.members {
		if strings.EqualFold(m.name, first) && m.name != first {
			return fileProblem(m.at, fmt.Sprintf("%q is not %q, which differs in case, so no client reads it", m.name, first))
		}
	}
	return nil
}

func (s shape) fromObject(holder *node) (found []Entry) {
	for _, m := range holder.members {
		if s.openCode && m.name == "servers" && m.value.get("type") == nil {
			continue // the key of a newer shape
		}
		if s.goose && !external(m.value) {
			continue
		}
		e := s.entry(m.name, m.value, m.at)
		if holder.count(m.name) > 1 {
			e.Problem = entryProblem(entryRepeated, e, "its name stands twice in the file")
		}
		found = append(found, e)
	}
	return found
}

func (s shape) fromList(holder *node) (found []Entry) {
	for i, item := range holder.items {
		name, ok := item.textAt("name")
		if !ok {
			name = fmt.Sprintf("number %d", i+1)
		}
		e := s.entry(name, item, item.at)
		found = append(found, e)
	}
	for i := range found {
		twice := func(o Entry) bool { return o.Name == found[i].Name }
		if slices.ContainsFunc(found[:i], twice) || slices.ContainsFunc(found[i+1:], twice) {
			found[i].Problem = entryProblem(entryRepeated, found[i], "its name stands twice in the file")
		}
	}
	return found
}

// external reports whether a Goose extension is a server of its own and none that
// is built in.
func external(n *node) bool {
	kind, _ := n.textAt("type")
	switch kind {
	case "builtin", "platform", "frontend", "inline_python":
		return false
	}
	return true
}

// textAt returns the text of a member.
func (n *node) textAt(name string) (string, bool) {
	v := n.get(name)
	if v == nil || v.kind != isText {
		return "", false
	}
	return v.text, true
}

// entry reads one server. Every way in which one of the known clients writes a
// field is understood, and what cannot be is said.
func (s shape) entry(name string, n *node, at Place) Entry {
	e := Entry{Name: name, Place: at}
	r := entryReader{e: &e, n: n, shape: s}
	switch {
	case n.kind != isObject:
		r.refuse(entryInvalid, "it is "+n.kind.words()+" and not an object")
	case name == "":
		r.refuse(entryInvalid, "its name is empty")
	default:
		r.read()
	}
	return e
}

// tooWide reports whether a value has more in one place than a person would write:
// names are looked for one by one.
func (n *node) tooWide() bool {
	return len(n.members) > maxEntries || len(n.items) > maxEntries || slices.ContainsFunc(n.items, (*node).tooWide) ||
		slices.ContainsFunc(n.members, func(m member) bool { return m.value.tooWide() })
}

// holdsNUL looks through all text of a value: no process takes a NUL, and the marks
// that envReference makes must be ours alone.
func (n *node) holdsNUL() bool {
	if strings.ContainsRune(n.text, 0) {
		return true
	}
	for _, m := range n.members {
		if strings.ContainsRune(m.name, 0) || m.value.holdsNUL() {
			return true
		}
	}
	return slices.ContainsFunc(n.items, (*node).holdsNUL)
}

type entryReader struct {
	e     *Entry
	n     *node
	shape shape
}

// refuse keeps the first problem.
func (r *entryReader) refuse(code Code, why string) {
	if r.e.Problem == nil {
		r.e.Problem = entryProblem(code, *r.e, why)
	}
}

func entryProblem(code Code, e Entry, why string) *coded.Error {
	return &coded.Error{Code: string(code), Sentence: fmt.Sprintf("%s: %s (%s)", show(e.Name), why, e.Place),
		Next: "correct the entry in the client's file, or leave it where it is"}
}

func fileProblem(at Place, why string) *coded.Error {
	return &coded.Error{Code: "client-file-invalid", Sentence: fmt.Sprintf("%s (%s)", why, at), Next: "correct the file, in the program that it belongs to or in an editor"}
}

// show cuts a name that somebody else wrote; who prints it makes it visible.
func show(name string) string {
	if runes := []rune(name); len(runes) > 60 {
		return string(runes[:59]) + "…"
	}
	return name
}

func (r *entryReader) read() {
	if r.n.tooWide() {
		r.refuse(entryInvalid, "it holds more than 1000 of something")
		return
	}
	if r.n.holdsNUL() {
		r.refuse(entryInvalid, "it holds a NUL character")
		return
	}
	for _, m := range r.n.members {
		if r.n.count(m.name) > 1 {
			r.refuse(entryInvalid, fmt.Sprintf("%q stands twice in it", show(m.name)))
		}
		if m.name == "<<" || m.value.kind == isOther && m.name != "timeout" {
			r.refuse(entryInvalid, fmt.Sprintf("%q is written in a way that is not read here", show(m.name)))
		}
	}
	r.nested()
	r.launch()
	r.values("env", "environment", "envs")
	r.headers()
	r.switches()
	r.special()
	r.transport()
}

// nested takes transport:{…} apart, as Continue and some others write it.
func (r *entryReader) nested() {
	inner := r.n.get("transport")
	if inner == nil || inner.kind != isObject {
		return
	}
	outer := r.n
	merged := &node{kind: isObject, at: r.n.at}
	for _, m := range outer.members {
		if m.name != "transport" {
			merged.members = append(merged.members, m)
		}
	}
	for _, m := range inner.members {
		if merged.get(m.name) != nil && m.name != "name" {
			r.refuse(entryContradicts, fmt.Sprintf("%q stands in it and in its transport", show(m.name)))
		}
		merged.members = append(merged.members, m)
	}
	r.n = merged
}

func (r *entryReader) launch() {
	command := r.n.get("command")
	if command == nil {
		command = r.n.get("cmd")
	}
	if command != nil {
		switch command.kind {
		case isText:
			r.e.Command = command.text
		case isList: // OpenCode
			if words, ok := r.texts(command); ok && len(words) > 0 {
				r.e.Command, r.e.Args = words[0], words[1:]
			}
		case isObject: // Zed, before 2025
			r.oldZed(command)
		case isNull:
		default:
			r.refuse(entryInvalid, "command is "+command.kind.words()+" and not text")
		}
		if command.kind != isNull && strings.TrimSpace(r.e.Command) == "" {
			r.refuse(entryInvalid, "command is empty")
		}
	}
	if args := r.n.get("args"); args != nil && args.kind != isNull {
		words, ok := r.texts(args)
		if ok && len(r.e.Args) > 0 && len(words) > 0 {
			r.refuse(entryContradicts, "its arguments stand in two places")
		}
		r.e.Args = append(r.e.Args, words...)
	}
	if cwd := r.n.get("cwd"); cwd != nil && cwd.kind != isNull {
		if cwd.kind != isText {
			r.refuse(entryInvalid, "cwd is "+cwd.kind.words()+" and not text")
		}
		r.e.Cwd = cwd.text
	}
	r.url()
}

func (r *entryReader) oldZed(command *node) {
	path, ok := command.textAt("path")
	if !ok {
		r.refuse(entryInvalid, "command has no path")
	}
	r.e.Command = path
	if args := command.get("args"); args != nil && args.kind != isNull {
		r.e.Args, _ = r.texts(args)
	}
	if env := command.get("env"); env != nil && env.kind != isNull {
		r.e.Env = r.pairs("env", env)
	}
}

func (r *entryReader) url() {
	var from string
	for _, name := range []string{"url", "serverUrl", "httpUrl", "uri", "baseUrl"} {
		v := r.n.get(name)
		if v == nil || v.kind == isNull || v.kind == isText && v.text == "" {
			continue
		}
		if v.kind != isText {
			r.refuse(entryInvalid, name+" is "+v.kind.words()+" and not text")
			continue
		}
		if from != "" && r.e.URL != v.text {
			r.refuse(entryContradicts, from+" and "+name+" are two addresses")
		}
		r.e.URL, from = v.text, name
	}
	switch {
	case from == "":
	case r.shape.sseURL && from == "url":
		r.e.Transport = SSE
	default:
		r.e.Transport = StreamableHTTP
	}
}

// texts reads a list of text. A number in it is no text: nobody guesses.
func (r *entryReader) texts(n *node) ([]string, bool) {
	if n.kind != isList {
		r.refuse(entryInvalid, "what should be a list of text is "+n.kind.words())
		return nil, false
	}
	words := []string{}
	for _, item := range n.items {
		if item.kind != isText {
			r.refuse(entryInvalid, "an argument is "+item.kind.words()+" and not text")
			return nil, false
		}
		words = append(words, item.text)
	}
	return words, true
}

func (r *entryReader) pairs(what string, n *node) (found []Pair) {
	if n.kind != isObject {
		r.refuse(entryInvalid, what+" is "+n.kind.words()+" and not an object")
		return nil
	}
	for _, m := range n.members {
		if m.value.kind != isText {
			r.refuse(entryInvalid, fmt.Sprintf("the value of %q is %s and not text", show(m.name), m.value.kind.words()))
			continue
		}
		if n.count(m.name) > 1 {
			r.refuse(entryInvalid, fmt.Sprintf("%q stands twice in %s", show(m.name), what))
		}
		found = append(found, Pair{m.name, m.value.text})
	}
	return found
}

func (r *entryReader) values(names ...string) {
	for _, name := range names {
		if v := r.n.get(name); v != nil && v.kind != isNull {
			r.e.Env = append(r.e.Env, r.pairs(name, v)...)
		}
	}
}

func (r *entryReader) headers() {
	for _, name := range []string{"headers", "http_headers"} {
		if v := r.n.get(name); v != nil && v.kind != isNull {
			r.e.Headers = append(r.e.Headers, r.pairs(name, v)...)
		}
	}
	if v := r.n.path("requestOptions", "headers"); v != nil && v.kind != isNull {
		r.e.Headers = append(r.e.Headers, r.pairs("requestOptions.headers", v)...)
	}
}

func (r *entryReader) switches() {
	for name, off := range map[string]string{"disabled": "true", "enabled": "false"} {
		if v := r.n.get(name); v != nil && v.kind == isBool && v.text == off {
			r.e.Disabled = true
		}
	}
}

// special reads what single clients have: names of variables instead of values.
func (r *entryReader) special() {
	names := func(key string) []string {
		v := r.n.get(key)
		if v == nil || v.kind == isNull {
			return nil
		}
		words, _ := r.texts(v)
		return words
	}
	r.e.inherit = names("env_vars") // Codex
	r.e.keys = names("env_keys")    // Goose
	if name, ok := r.n.textAt("bearer_token_env_var"); ok {
		r.e.Headers = append(r.e.Headers, Pair{"Authorization", "Bearer " + envReference(name)})
	}
	if v := r.n.get("env_http_headers"); v != nil && v.kind != isNull {
		for _, p := range r.pairs("env_http_headers", v) {
			r.e.Headers = append(r.e.Headers, Pair{p.Name, envReference(p.Value)})
		}
	}
	if file, ok := r.n.textAt("envFile"); ok && file != "" {
		r.refuse(entryUnsupported, "it takes variables from a file, which is not imported")
	}
	if source, ok := r.n.textAt("source"); ok && source == "extension" || r.n.get("settings") != nil && r.e.Command == "" {
		r.refuse(entryUnsupported, "it belongs to an extension of the editor, which starts it")
	}
}

// envReference marks a reference that we made, apart from any that a file holds.
func envReference(name string) string { return "\x00env:" + name + "\x00" }

// transport settles how the server is reached, by the word for it and by what
// there is to reach (C33).
func (r *entryReader) transport() {
	word, _ := r.n.textAt("type")
	if word == "" {
		word, _ = r.n.textAt("transport")
	}
	if command, url := r.e.Command != "", r.e.URL != ""; command && url {
		r.refuse(entryContradicts, "it has a command and an address")
	} else if !command && !url {
		r.refuse(entryInvalid, "it has neither a command nor an address")
	}
	if r.e.URL == "" {
		r.e.Transport = Stdio
	}
	switch strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(word)) {
	case "":
	case "stdio", "local":
		if r.e.URL != "" {
			r.refuse(entryContradicts, "its type is for a command and it has an address")
		}
	case "http", "streamablehttp", "remote", "sse":
		if r.e.URL == "" {
			r.refuse(entryContradicts, "its type is for an address and it has a command")
		}
		if strings.EqualFold(word, "sse") {
			r.e.Transport = SSE
		} else {
			r.e.Transport = StreamableHTTP
		}
	default:
		r.refuse(entryUnsupported, fmt.Sprintf("its type %q is not one that Sallyport reaches", show(word)))
	}
}
