package plugins

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// The two placeholders of Agent Plugins 1.0.0 §9.2. They are replaced by
// env.ExpandFolders.
const (
	rootPlaceholder = "${PLUGIN_ROOT}"
	dataPlaceholder = "${PLUGIN_DATA}"
)

// containment answers whether a slash-separated path stays within the plugin:
// nil, fs.ErrNotExist when it does and nothing is there, or errOutside.
type containment func(path string) error

func (b *bundle) contains(path string) error {
	_, _, err := b.resolve(path)
	return err
}

func (s *server) fillStdio(entry *node, contained containment) *fault {
	if f := onlyFields(entry, "stdio", "type", "command", "args", "env", "cwd"); f != nil {
		return f
	}
	command, at, f := requiredText(entry, "command", "command-invalid")
	if f != nil {
		return f
	}
	if sentence := commandToken(command, contained); sentence != "" {
		return &fault{at.from, "command-invalid", sentence}
	}
	s.launch.Command = command
	if args := entry.get("args"); args != nil {
		list, ok := args.strings()
		if !ok {
			return &fault{args.from, "args-invalid", "args is not a list of strings"}
		}
		for _, arg := range list {
			if strings.ContainsRune(arg, 0) {
				return &fault{args.from, "args-invalid", "an argument holds a NUL character"}
			}
		}
		s.launch.Args = list
	}
	if s.launch.Env, f = textValues(entry, "env", "env-invalid", envEntry); f != nil {
		return f
	}
	slices.SortFunc(s.launch.Env, func(a, b Value) int { return cmp.Compare(a.Name, b.Name) })
	if cwd := entry.get("cwd"); cwd != nil {
		if cwd.kind != '"' {
			return &fault{cwd.from, "cwd-invalid", "cwd is " + cwd.kindName() + ", not a string"}
		}
		if sentence := cwdForm(cwd.text, contained); sentence != "" {
			return &fault{cwd.from, "cwd-invalid", sentence}
		}
		s.launch.Cwd = cwd.text
	}
	return nil
}

// commandToken follows §7.2.1: one token, a bare name or ./path. A backslash and
// a drive letter are read as a path on every system, so that one package means
// the same everywhere.
func commandToken(command string, contained containment) string {
	if strings.ContainsFunc(command, unicode.IsControl) {
		return "command holds control characters"
	}
	relative, isPath := strings.CutPrefix(command, "./")
	if isPath {
		if strings.Contains(relative, `\`) {
			return "command holds a backslash"
		}
		if strings.Trim(relative, "./") == "" {
			return "command names no file"
		}
		return outsideSentence("command", contained(relative))
	}
	drive := len(command) >= 2 && command[1] == ':'
	switch {
	case drive || command == "." || command == ".." || strings.ContainsAny(command, `/\`):
		return "command is a path that does not begin with ./"
	case strings.ContainsFunc(command, unicode.IsSpace):
		return "command holds a space; arguments belong in args"
	}
	return ""
}

func outsideSentence(field string, err error) string {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return field + " " + reason(err)
}

// envEntry refuses what no process can be given (spec/child-environment.md 3)
// and the two names that are not the package's to set (§9.2).
func envEntry(name, value string) string {
	switch {
	case name == "":
		return "is an empty name"
	case strings.ContainsAny(name, "=\x00"):
		return "holds '=' or NUL"
	case strings.ContainsRune(value, 0):
		return "has a value with a NUL character"
	case name == "PLUGIN_ROOT" || name == "PLUGIN_DATA":
		return "is set by the client and may not be declared"
	}
	return ""
}

// cwdForm checks one of the three forms of §7.2.1. The data folder may not exist
// yet, so its part is checked by names only here, and by what they lead to before
// every start (runtime/process).
func cwdForm(cwd string, contained containment) string {
	if strings.ContainsRune(cwd, 0) {
		return "cwd holds a NUL character"
	}
	below, inData, ok := cwdBelow(cwd)
	switch {
	case !ok:
		return "cwd is neither ./path nor ${PLUGIN_ROOT} nor ${PLUGIN_DATA} with or without a path below"
	case inData && climbs(below):
		return "cwd leads out of the plugin's data folder"
	case !inData:
		return outsideSentence("cwd", contained(below))
	}
	return ""
}

// cwdBelow splits a declared cwd into its base and the path below it, with any
// further placeholder expanded as text that names no folder.
func cwdBelow(cwd string) (below string, inData, ok bool) {
	var found bool
	switch {
	case cwd == rootPlaceholder || cwd == dataPlaceholder:
		inData = cwd == dataPlaceholder
	default:
		if below, found = strings.CutPrefix(cwd, "./"); found {
			break
		}
		if below, found = strings.CutPrefix(cwd, rootPlaceholder+"/"); found {
			break
		}
		if below, found = strings.CutPrefix(cwd, dataPlaceholder+"/"); !found {
			return "", false, false
		}
		inData = true
	}
	return filepath.ToSlash(below), inData, true
}

// climbs reports whether .. leads above the start of the path.
func climbs(path string) bool {
	depth := 0
	for step := range strings.SplitSeq(path, "/") {
		switch step {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return true
			}
		default:
			depth++
		}
	}
	return false
}
