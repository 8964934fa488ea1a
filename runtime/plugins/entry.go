package plugins

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// openEntry is how an entry in the manner of the applications is read: open to
// fields that are not known, and to several words for one thing.
type openEntry struct {
	format string
	// contained is nil where there is no bundle.
	contained containment
}

// openServer reads one entry; the first thing wrong with it is its problem.
func (r *report) openServer(m member, open openEntry) server {
	s := server{name: m.name, at: m.at}
	if f := s.fillOpen(r, m.value, open); f != nil {
		p := r.add(cmp.Or(f.at, m.at), f.code, fmt.Sprintf("the server %s: %s", show(m.name), f.sentence))
		s.problem = &p
	}
	return s
}

func (s *server) fillOpen(r *report, entry *node, open openEntry) *fault {
	if f := serverName(s.name); f != nil {
		return f
	}
	if entry.kind != '{' {
		return &fault{entry.from, "server-invalid", "the entry is " + entry.kindName() + ", not an object"}
	}
	if twice := entry.repeated(); twice != nil {
		return &fault{twice.at, "duplicate-key", fmt.Sprintf("the field %s stands twice", show(twice.name))}
	}
	address, f := addressOf(entry)
	if f != nil {
		return f
	}
	word, f := transportWord(entry)
	if f != nil {
		return f
	}
	command := entry.get("command")
	switch {
	case command != nil && address != nil:
		return &fault{command.from, "server-contradictory", "it has a command and an address, and only one of them can be meant"}
	case word.transport == Stdio && address != nil:
		return &fault{word.at, "server-contradictory", "its type is " + show(word.text) + " and it has an address"}
	case word.transport != Stdio && word.transport != "" && command != nil:
		return &fault{word.at, "server-contradictory", "its type is " + show(word.text) + " and it has a command"}
	case command == nil && address == nil && word.transport == "":
		return &fault{entry.from, "server-invalid", "it has neither a command nor an address"}
	}
	if word.transport == Stdio || command != nil {
		s.transport = Stdio
		r.unknownFields(entry, "the server "+show(s.name)+": ", open.known("command", "args", "env", "cwd"))
		return s.fillOpenStdio(entry, open)
	}
	s.transport = cmp.Or(word.transport, StreamableHTTP)
	r.unknownFields(entry, "the server "+show(s.name)+": ", open.known("url", "serverUrl", "httpUrl", "baseUrl", "headers"))
	return s.fillOpenRemote(entry, address, open)
}

// known are the fields that an entry of the format may have without being mentioned.
func (o openEntry) known(names ...string) []string {
	names = append(names, "type", "transport", "description")
	if o.format == Codex {
		names = append(names, "env_vars", "http_headers", "env_http_headers", "bearer_token_env_var", "startup_timeout_sec", "tool_timeout_sec")
	}
	return names
}

// word is what an entry says about its transport, in whatever words.
type word struct {
	transport Transport // "" if it says nothing
	text      string
	at        int64
}

// transportWord reads type, or transport, which may be an object (C33).
func transportWord(entry *node) (word, *fault) {
	n := entry.get("type")
	if other := entry.get("transport"); other != nil && n == nil {
		n = other
		if other.kind == '{' {
			n = other.get("type")
		}
	}
	if n == nil {
		return word{}, nil
	}
	if n.kind != '"' {
		return word{}, &fault{n.from, "server-type-unknown", "type is " + n.kindName() + ", not a string"}
	}
	w := word{text: n.text, at: n.from}
	switch strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(n.text)) {
	case "stdio", "local":
		w.transport = Stdio
	case "http", "streamablehttp", "remote":
		w.transport = StreamableHTTP
	case "sse":
		w.transport = SSE
	case "ws", "websocket":
		return w, &fault{n.from, "transport-unsupported", "the transport " + show(n.text) + " is not supported; streamable-http and sse are"}
	default:
		return w, &fault{n.from, "server-type-unknown", fmt.Sprintf("the type %s is unknown", show(n.text))}
	}
	return w, nil
}

// addressOf finds the address under any of the names that it has. Two that differ
// contradict each other.
func addressOf(entry *node) (*node, *fault) {
	var address *node
	candidates := []*node{entry.get("url"), entry.get("serverUrl"), entry.get("httpUrl"), entry.get("baseUrl")}
	if transport := entry.get("transport"); transport != nil && transport.kind == '{' {
		candidates = append(candidates, transport.get("url"))
	}
	for _, n := range candidates {
		switch {
		case n == nil:
		case address == nil:
			address = n
		case n.kind != address.kind || n.text != address.text:
			return nil, &fault{n.from, "server-contradictory", "it has two addresses"}
		}
	}
	return address, nil
}

func (s *server) fillOpenStdio(entry *node, open openEntry) *fault {
	command, at, f := requiredText(entry, "command", "command-invalid")
	if f != nil {
		return f
	}
	if strings.ContainsFunc(command, unicode.IsControl) {
		return &fault{at.from, "command-invalid", "command holds control characters"}
	}
	if sentence := open.outside("", command, true); sentence != "" {
		return &fault{at.from, "command-invalid", "command " + show(command) + " " + sentence}
	}
	s.launch.Command = command
	if cwd := entry.get("cwd"); cwd != nil {
		switch {
		case cwd.kind != '"':
			return &fault{cwd.from, "cwd-invalid", "cwd is " + cwd.kindName() + ", not a string"}
		case strings.ContainsRune(cwd.text, 0):
			return &fault{cwd.from, "cwd-invalid", "cwd holds a NUL character"}
		}
		if sentence := open.outside("", cwd.text, true); sentence != "" {
			return &fault{cwd.from, "cwd-invalid", "cwd " + show(cwd.text) + " " + sentence}
		}
		s.launch.Cwd = cwd.text
	}
	if f := s.fillOpenArgs(entry.get("args"), open); f != nil {
		return f
	}
	if s.launch.Env, f = textValues(entry, "env", "env-invalid", variable); f != nil {
		return f
	}
	slices.SortFunc(s.launch.Env, func(a, b Value) int { return cmp.Compare(a.Name, b.Name) })
	if names := entry.get("env_vars"); names != nil && open.format == Codex {
		list, ok := names.strings()
		if !ok {
			return &fault{names.from, "env-invalid", "env_vars is not a list of names"}
		}
		sentence := ""
		if s.inherit, sentence = inheritNames(list); sentence != "" {
			return &fault{names.from, "env-invalid", "env_vars: " + sentence}
		}
	}
	return nil
}

func (s *server) fillOpenArgs(args *node, open openEntry) *fault {
	if args == nil {
		return nil
	}
	if args.kind != '[' {
		return &fault{args.from, "args-invalid", "args is " + args.kindName() + ", not a list of strings"}
	}
	for _, item := range args.items {
		switch {
		case item.kind != '"':
			return &fault{item.from, "args-invalid", "args holds " + item.kindName() + ", not a string"}
		case strings.ContainsRune(item.text, 0):
			return &fault{item.from, "args-invalid", "an argument holds a NUL character"}
		}
		if sentence := open.outside(s.launch.Cwd, item.text, false); sentence != "" {
			return &fault{item.from, "args-invalid", "the argument " + show(item.text) + " " + sentence}
		}
		s.launch.Args = append(s.launch.Args, item.text)
	}
	return nil
}

// variable refuses what no process can be given (spec/child-environment.md 3). What
// Sallyport sets itself wins over what is declared (2).
func variable(name, value string) string {
	if name == "PLUGIN_ROOT" || name == "PLUGIN_DATA" {
		return ""
	}
	return envEntry(name, value)
}

// outside says why a text cannot be a path of the bundle, "" if it can or is none:
// what begins with the plugin's root, with ./ or with ../, and where whole is true
// any relative path. Relative ones are taken from cwd.
func (o openEntry) outside(cwd, text string, whole bool) string {
	if o.contained == nil {
		return ""
	}
	if _, value, ok := strings.Cut(text, "="); ok && !whole && strings.HasPrefix(text, "-") {
		text = value
	}
	rest, fromRoot := o.belowRoot(text)
	relative := strings.HasPrefix(rest, "./") || strings.HasPrefix(rest, "../") || rest == ".." || whole && strings.Contains(rest, "/")
	absolute := strings.HasPrefix(rest, "/") || len(rest) > 1 && rest[1] == ':' || strings.HasPrefix(rest, "${")
	switch {
	case fromRoot:
	case absolute || !relative:
		return ""
	case cwd != "":
		base, inRoot := o.belowRoot(cwd)
		if !inRoot && (strings.HasPrefix(base, "/") || strings.HasPrefix(base, "${")) {
			return ""
		}
		rest = base + "/" + rest
	}
	if strings.Contains(rest, "${") {
		// What stands there is known at the start only, and is looked at then.
		return ""
	}
	return strings.TrimSpace(outsideSentence("", o.contained(rest)))
}

// belowRoot returns what follows the placeholder of the plugin's root, slashed.
func (o openEntry) belowRoot(text string) (string, bool) {
	slashed := strings.ReplaceAll(text, `\`, "/")
	for word, place := range DialectOf(o.format).Places {
		placeholder := "${" + word + "}"
		if place != PlaceRoot {
			continue
		}
		if slashed == placeholder {
			return ".", true
		}
		if rest, ok := strings.CutPrefix(slashed, placeholder+"/"); ok {
			return rest, true
		}
	}
	return slashed, false
}

func (s *server) fillOpenRemote(entry, address *node, open openEntry) *fault {
	switch {
	case address == nil:
		return &fault{entry.from, "url-invalid", "the required field url is missing"}
	case address.kind != '"':
		return &fault{address.from, "url-invalid", "url is " + address.kindName() + ", not a string"}
	case address.text == "":
		return &fault{address.from, "url-invalid", "url is empty"}
	}
	// An address with placeholders is looked at once they are expanded (CheckAddress).
	if !strings.Contains(address.text, "${") {
		if sentence := endpoint(address.text); sentence != "" {
			return &fault{address.from, "url-invalid", sentence}
		}
	}
	s.launch.URL = address.text
	var f *fault
	if s.launch.Headers, f = textValues(entry, "headers", "headers-invalid", headerField); f != nil {
		return f
	}
	if open.format == Codex {
		if f := s.fillCodexHeaders(entry); f != nil {
			return f
		}
	}
	if name := sortHeaders(s.launch.Headers); name != "" {
		return &fault{entry.from, "headers-invalid", "headers: " + show(name) + " stands twice in different case"}
	}
	return nil
}
