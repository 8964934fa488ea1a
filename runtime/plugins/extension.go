package plugins

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sallyport/runtime/permissions"
)

// MaxFrameLimit is the largest maxFrame that can be asked for, in bytes
// (spec/stdio-framing.md 2).
const MaxFrameLimit = 64 << 20

// wishes is what a package says under extensions["app.sallyport"]
// (spec/agent-plugins.md 12): what it may do, and per server how to run it.
type wishes struct {
	permissions permissions.Set
	servers     map[string]serverWishes
}

type serverWishes struct {
	inherit []string
	options Options
	fault   *fault
}

// readWishes reads our namespace. A mistake for one server ends that server; a
// mistake outside of them ends all: what cannot be read is never left out,
// because what was left out might have been the limit.
func readWishes(m *manifest) (wishes, *fault) {
	w := wishes{permissions: permissions.Undeclared(), servers: map[string]serverWishes{}}
	if len(m.ours) == 0 {
		return w, nil
	}
	ours := m.ours[0]
	if len(m.ours) > 1 {
		return w, extensionFault(m.ours[1].from, "it stands twice")
	}
	if twice := ours.repeatedHere(); twice != nil {
		return w, extensionFault(twice.at, fmt.Sprintf("the field %s stands twice", show(twice.name)))
	}
	for _, field := range ours.members {
		switch field.name {
		case "permissions":
			set, err := permissions.Request(m.doc.raw(field.value))
			if err != nil {
				return w, extensionFault(field.value.from, err.Error())
			}
			w.permissions = set
		case "servers":
			if f := w.readServers(field.value); f != nil {
				return w, f
			}
		default:
			return w, extensionFault(field.at, fmt.Sprintf("the field %s is unknown", show(field.name)))
		}
	}
	return w, nil
}

func (w *wishes) readServers(n *node) *fault {
	if n.kind != '{' {
		return extensionFault(n.from, "servers is "+n.kindName()+", not an object")
	}
	for _, entry := range n.members {
		s, twice := w.servers[entry.name]
		if twice {
			s.fault = extensionFault(entry.at, fmt.Sprintf("the server %s stands twice", show(entry.name)))
		} else {
			s = readServerWishes(entry)
		}
		w.servers[entry.name] = s
	}
	return nil
}

func readServerWishes(entry member) (s serverWishes) {
	n := entry.value
	if n.kind != '{' {
		s.fault = extensionFault(n.from, "servers: an entry is "+n.kindName()+", not an object")
		return s
	}
	if twice := n.repeated(); twice != nil {
		s.fault = extensionFault(twice.at, fmt.Sprintf("the field %s stands twice", show(twice.name)))
		return s
	}
	for _, field := range n.members {
		sentence := ""
		switch field.name {
		case "inherit":
			list, ok := field.value.strings()
			if !ok {
				sentence = "inherit is not a list of strings"
				break
			}
			s.inherit, sentence = inheritNames(list)
		case "maxFrame":
			s.options.MaxFrame, sentence = amount(field.value, "maxFrame", MaxFrameLimit)
		case "stdoutNoise":
			sentence = noise(field.value.text)
			s.options.StdoutNoise = field.value.text
		case "budget":
			s.options.Budget, sentence = readBudget(field.value)
		default:
			sentence = fmt.Sprintf("the field %s is unknown", show(field.name))
		}
		if sentence != "" {
			s.fault = extensionFault(field.at, sentence)
			return s
		}
	}
	return s
}

func extensionFault(at int64, sentence string) *fault {
	return &fault{at, "extension-invalid", "extensions[" + strconv.Quote(namespace) + "]: " + sentence}
}

// inheritNames sorts names from the parent's environment and drops repeats.
func inheritNames(list []string) ([]string, string) {
	for _, name := range list {
		if name == "" || strings.ContainsAny(name, "=\x00*") {
			return nil, "inherit: " + show(name) + " is not the name of a variable"
		}
		if name == "PLUGIN_ROOT" || name == "PLUGIN_DATA" {
			return nil, "inherit: " + name + " is set by Sallyport"
		}
	}
	sorted := slices.Clone(list)
	slices.Sort(sorted)
	return slices.Compact(sorted), ""
}

func noise(value string) string {
	if value != "skip" {
		return `stdoutNoise is not "skip"`
	}
	return ""
}

// amount reads a whole number from 1 to limit.
func amount(n *node, name string, limit int64) (int64, string) {
	value, err := strconv.ParseInt(n.text, 10, 64)
	if n.kind != '0' || err != nil || value < 1 || value > limit {
		return 0, fmt.Sprintf("%s is not a whole number from 1 to %d", name, limit)
	}
	return value, ""
}
