package plugins

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode"
)

// dirname stands for the bundle's folder in a manifest.json.
const dirname = "${__dirname}"

// readServer reads how the server is started.
func (m *mcpb) readServer(r *report, root *node, platform string, contained containment) *fault {
	server := root.get("server")
	if server == nil {
		return &fault{root.from, "server-invalid", "the required field server is missing"}
	}
	if server.kind != '{' {
		return &fault{server.from, "server-invalid", "server is " + server.kindName() + ", not an object"}
	}
	kind, at, f := requiredText(server, "type", "server-type-unknown")
	if f != nil {
		return f
	}
	if !slices.Contains([]string{"node", "python", "binary", "uv"}, kind) {
		return &fault{at.from, "server-type-unknown", fmt.Sprintf("the server type %s is unknown; node, python, binary and uv are known", show(kind))}
	}
	entry, f := r.mcpbEntry(server, contained)
	if f != nil {
		return f
	}
	r.ignored(server, "server", "type", "entry_point", "mcp_config")
	config := server.get("mcp_config")
	switch {
	case config == nil && kind == "uv":
		locked := contained("uv.lock") == nil
		if !locked {
			r.add(at.from, "uv-lock-missing", "the bundle has no uv.lock, so uv chooses what it fetches anew and cannot keep its choice in the approved copy")
		}
		m.launch = uvLaunch(entry, locked)
		return nil
	case config == nil:
		return &fault{server.from, "mcp-config-missing", "server.mcp_config is missing, which says how a server of type " + kind + " is started"}
	case config.kind != '{':
		return &fault{config.from, "server-invalid", "server.mcp_config is " + config.kindName() + ", not an object"}
	}
	own, f := r.override(config, platform)
	if f != nil {
		return f
	}
	m.launch, f = mcpbLaunch(config, own, contained)
	if f == nil && kind == "binary" && m.launch.Command == entry && !strings.Contains(entry, "/") {
		// A bare name is looked up in PATH; this one is the bundle's own program.
		m.launch.Command = "./" + entry
	}
	return f
}

// mcpbEntry checks the file that the server begins with. One that is missing is said
// and no more: only the command decides what starts.
func (r *report) mcpbEntry(server *node, contained containment) (string, *fault) {
	n := server.get("entry_point")
	if n == nil {
		r.add(server.from, "entry-point-missing", "server.entry_point is missing")
		return "", nil
	}
	if n.kind != '"' || n.text == "" {
		return "", &fault{n.from, "server-invalid", "server.entry_point is empty or no string"}
	}
	entry := bundlePath(n.text)
	switch err := contained(entry); {
	case errors.Is(err, fs.ErrNotExist):
		r.add(n.from, "entry-point-missing", "the file that server.entry_point names is not there")
	case err != nil:
		return "", &fault{n.from, "path-outside", "server.entry_point " + reason(err)}
	}
	return entry, nil
}

// ignored lists the fields of an object that nothing reads; a known mistake is named.
func (r *report) ignored(object *node, name string, known ...string) {
	for _, field := range object.members {
		switch {
		case slices.Contains(known, field.name):
		case name == "server" && field.name == "env":
			r.add(field.at, "env-misplaced", "server.env is ignored: the variables belong in server.mcp_config.env")
		default:
			r.add(field.at, "unknown-field", fmt.Sprintf("the field %s of %s is unknown and ignored", show(field.name), name))
		}
	}
}

// override returns what the manifest says for one platform, or nil.
func (r *report) override(config *node, platform string) (*node, *fault) {
	r.ignored(config, "server.mcp_config", "command", "args", "env", "platform_overrides")
	all := config.get("platform_overrides")
	if all == nil {
		return nil, nil
	}
	if all.kind != '{' {
		return nil, &fault{all.from, "server-invalid", "platform_overrides is " + all.kindName() + ", not an object"}
	}
	for _, m := range all.members {
		if !slices.Contains([]string{"win32", "darwin", "linux"}, m.name) {
			r.add(m.at, "unknown-field", fmt.Sprintf("platform_overrides: the platform %s is unknown", show(m.name)))
		}
	}
	own := all.get(platform)
	if own != nil && own.kind != '{' {
		return nil, &fault{own.from, "server-invalid", "platform_overrides." + platform + " is " + own.kindName() + ", not an object"}
	}
	if own != nil {
		r.ignored(own, "platform_overrides."+platform, "command", "args", "env")
	}
	return own, nil
}

// mcpbLaunch puts the configuration and the platform's own together: a field that the
// platform has replaces the other whole, even by an empty list; one that it does not
// have stays.
func mcpbLaunch(config, own *node, contained containment) (launch Launch, f *fault) {
	from := func(name string) *node {
		if own != nil && own.get(name) != nil {
			return own
		}
		return config
	}
	command, at, f := requiredText(from("command"), "command", "command-invalid")
	if f != nil {
		return launch, f
	}
	var sentence string
	if launch.Command, sentence = mcpbCommand(command, contained); sentence != "" {
		return launch, &fault{at.from, "command-invalid", sentence}
	}
	if args := from("args").get("args"); args != nil {
		list, ok := args.strings()
		if !ok {
			return launch, &fault{args.from, "args-invalid", "args is not a list of strings"}
		}
		if slices.ContainsFunc(list, func(arg string) bool { return strings.ContainsRune(arg, 0) }) {
			return launch, &fault{args.from, "args-invalid", "an argument holds a NUL character"}
		}
		launch.Args = list
	}
	if launch.Env, f = textValues(from("env"), "env", "env-invalid", envEntry); f != nil {
		return launch, f
	}
	slices.SortFunc(launch.Env, func(a, b Value) int { return cmp.Compare(a.Name, b.Name) })
	return launch, nil
}

// mcpbCommand reads a command: a name that is looked up in PATH, an absolute path, or
// a path in the bundle, with ${__dirname} or without. The last is written as ./path,
// which is the same on every system; on Windows .exe is added when it is looked for.
func mcpbCommand(command string, contained containment) (string, string) {
	switch {
	case strings.ContainsFunc(command, unicode.IsControl):
		return "", "command holds control characters"
	case strings.HasPrefix(command, "/"), len(command) >= 2 && command[1] == ':', strings.HasPrefix(command, `\`):
		return command, ""
	case !strings.ContainsAny(command, `/\`):
		if strings.ContainsFunc(command, unicode.IsSpace) {
			return "", "command holds a space; arguments belong in args"
		}
		return command, ""
	}
	path := bundlePath(command)
	if strings.Contains(path, "${") {
		return command, ""
	}
	if strings.Trim(path, "./") == "" {
		return "", "command names no file"
	}
	if sentence := outsideSentence("command", contained(path)); sentence != "" {
		return "", sentence
	}
	return "./" + path, ""
}

// bundlePath is a path of the manifest's as one below the root, with slashes.
func bundlePath(path string) string {
	path = strings.ReplaceAll(path, `\`, "/")
	for _, separator := range []string{"${/}", "${pathSeparator}"} {
		path = strings.ReplaceAll(path, separator, "/")
	}
	path = strings.TrimPrefix(path, dirname+"/")
	for strings.HasPrefix(path, "./") {
		path = strings.TrimLeft(path[1:], "/")
	}
	return path
}

// uvLaunch is how a server of type uv is started where the manifest leaves it to the
// client. uv fetches what the project depends on when it starts; it goes where the
// plugin may write. A lock file is taken as it is: nothing may write to the bundle.
func uvLaunch(entry string, locked bool) Launch {
	args := []string{"run", "--directory", dirname, entry}
	if locked {
		args = slices.Insert(args, 1, "--frozen")
	}
	return Launch{
		Command: "uv", Args: args,
		Env: []Value{{Name: "UV_PROJECT_ENVIRONMENT", Value: dataPlaceholder + "/venv"}},
	}
}
