package approvals

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"sallyport/runtime/env"
)

// Change is one difference between an approved identity and the one now.
type Change struct {
	Code  string `json:"code"`  // reason code of spec/approval.md 2.1
	Field string `json:"field"` // "version", "args", "env.NAME"
	Old   string `json:"old"`   // for people, made visible; "" where there was nothing
	New   string `json:"new"`
}

// Changes returns every difference between two identities in the order of the
// table of spec/approval.md 2.1, so that the first one's code is the reason. It
// is empty exactly when the identities are equal.
func Changes(old, now Fields) []Change {
	old, now = old.normal(), now.normal()
	var out []Change
	one := func(code, field string, a, b any, show func(any) string) {
		if !reflect.DeepEqual(a, b) {
			out = append(out, Change{code, field, show(a), show(b)})
		}
	}
	one("binding-changed", "plugin", old.Plugin, now.Plugin, showString)
	one("binding-changed", "binding", old.Binding, now.Binding, showString)
	one("binding-changed", "source", old.Source, now.Source, showString)
	one("publisher-changed", "publisher", old.Publisher, now.Publisher, showString)
	one("version-changed", "version", old.Version, now.Version, showString)
	one("artifact-changed", "artifact", old.Artifact, now.Artifact, showString)
	one("transport-changed", "transport", old.Transport, now.Transport, showString)
	out = append(out, textChange("command-changed", "command", old.Command, now.Command)...)
	one("executable-changed", "executable", old.Executable, now.Executable, showProgram)
	out = append(out, inputChanges(old.Inputs, now.Inputs)...)
	out = append(out, argChanges(old, now)...)
	out = append(out, textChange("cwd-changed", "cwd", old.Cwd, now.Cwd)...)
	out = append(out, entryChanges("env-changed", env.InEnv, old, now)...)
	one("env-changed", "inherit", old.Inherit, now.Inherit, showList)
	out = append(out, urlChange(old, now)...)
	out = append(out, entryChanges("headers-changed", env.InHeader, old, now)...)
	one("permissions-changed", "permissions.tools", old.Permitted.Tools, now.Permitted.Tools, showList)
	one("permissions-changed", "permissions.net", old.Permitted.Net, now.Permitted.Net, showList)
	one("permissions-changed", "permissions.secrets", old.Permitted.Secrets, now.Permitted.Secrets, showList)
	one("permissions-changed", "permissions.fs", old.Permitted.FS, now.Permitted.FS, showList)
	one("options-changed", "options", old.Options, now.Options, showOptions)
	for i, change := range out {
		out[i] = Change{change.Code, Visible(change.Field), visibleText(change.Old), visibleText(change.New)}
	}
	return out
}

// textChange compares what runs, the expanded text, and also the declared one: a
// placeholder and its present value are not the same promise.
func textChange(code, field string, old, now Text) []Change {
	if old == now {
		return nil
	}
	if old.Expanded == now.Expanded {
		return []Change{{code, field, old.Declared, now.Declared}}
	}
	return []Change{{code, field, old.Expanded, now.Expanded}}
}

// urlChange compares the addresses and shows them without what looks like a credential.
func urlChange(old, now Fields) []Change {
	if old.URL == now.URL {
		return nil
	}
	a, b := old.shownURL(), now.shownURL()
	if a == b {
		return []Change{{"endpoint-changed", "url", a.Expanded, b.Expanded}}
	}
	return textChange("endpoint-changed", "url", a, b)
}

func argChanges(old, now Fields) []Change {
	if reflect.DeepEqual(old.Args, now.Args) {
		return nil
	}
	a, b := showArgs(old.shownArgs(expanded)), showArgs(now.shownArgs(expanded))
	if a == b {
		a, b = showArgs(old.shownArgs(declared)), showArgs(now.shownArgs(declared))
	}
	return []Change{{"args-changed", "args", a, b}}
}

func expanded(t Text) string { return t.Expanded }
func declared(t Text) string { return t.Declared }

// showArgs writes one argument a line, quoted where a line would not tell.
func showArgs(args []string) string {
	lines := make([]string, len(args))
	for i, arg := range args {
		lines[i] = Visible(arg)
	}
	return strings.Join(lines, "\n")
}

func inputChanges(old, now []Input) []Change {
	type key struct{ at, path string }
	return keyedChanges(old, now, "input-changed",
		func(i Input) (key, string) { return key{i.At, i.Path}, "inputs." + i.At },
		func(i Input) string { return i.Path + " sha256:" + i.SHA256 })
}

func entryChanges(code string, where env.Where, old, now Fields) []Change {
	before, after, prefix := old.Env, now.Env, "env."
	if where == env.InHeader {
		before, after, prefix = old.Headers, now.Headers, "headers."
	}
	either := Fields{Options: Options{NotSecret: slices.Concat(old.Options.NotSecret, now.Options.NotSecret)}}
	return keyedChanges(before, after, code,
		func(e Entry) (string, string) { return e.Name, prefix + e.Name },
		func(e Entry) string {
			e = either.shownEntry(where, e)
			text := e.Value
			if e.Expanded != "" {
				text += " (" + e.Expanded + ")"
			}
			if e.Operator {
				text += " (yours)"
			}
			return text
		})
}

// keyedChanges reports entries removed, changed and added, in the order old then
// new. Two lists that hold the same entries in another order are a change of the
// order, reported as one.
func keyedChanges[T comparable, K comparable](old, now []T, code string, key func(T) (K, string), show func(T) string) []Change {
	if reflect.DeepEqual(old, now) {
		return nil
	}
	later := map[K]T{}
	for _, entry := range now {
		k, _ := key(entry)
		later[k] = entry
	}
	var out []Change
	seen := map[K]bool{}
	for _, entry := range old {
		k, field := key(entry)
		seen[k] = true
		other, ok := later[k]
		switch {
		case !ok:
			out = append(out, Change{code, field, show(entry), ""})
		case other != entry:
			out = append(out, Change{code, field, show(entry), show(other)})
		}
	}
	for _, entry := range now {
		if k, field := key(entry); !seen[k] {
			out = append(out, Change{code, field, "", show(entry)})
		}
	}
	if out == nil {
		out = append(out, Change{code, "order", "", ""})
	}
	return out
}

func showString(v any) string { return v.(string) }

func showList(v any) string { return strings.Join(v.([]string), "\n") }

func showProgram(v any) string {
	p := v.(*Program)
	if p == nil {
		return ""
	}
	return p.String()
}

// String shows the path found, the real path where it differs, the hash or why
// there is none, and the interpreters.
func (p Program) String() string {
	text := p.Found
	if p.Real != p.Found {
		text += " → " + p.Real
	}
	switch {
	case p.SHA256 != "":
		text += " sha256:" + p.SHA256
	case p.InBundle:
		text += " (in the bundle)"
	case p.Protected:
		text += " (writable by an administrator only)"
	}
	if p.Shim != "" {
		text += " (" + p.Shim + " shim)"
	}
	for _, inner := range p.Interpreters {
		text += "\nrun by " + inner.String()
	}
	return text
}

func showOptions(v any) string {
	o := v.(Options)
	return fmt.Sprintf("maxFrame %s, stdoutNoise %q, memoryBytes %s, cpuSeconds %s, openFiles %s, processes %s",
		o.MaxFrame, o.StdoutNoise, o.MemoryBytes, o.CPUSeconds, o.OpenFiles, o.Processes) + showBudget(o) + showNotSecret(o.NotSecret)
}

func showBudget(o Options) string {
	text := ""
	if o.Calls != "" {
		text += ", calls " + o.Calls
	}
	if o.ResultBytes != "" {
		text += ", resultBytes " + o.ResultBytes
	}
	if o.BudgetRequired {
		text += ", budget required"
	}
	return text
}

func showNotSecret(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ", notSecret " + strings.Join(names, " ")
}
