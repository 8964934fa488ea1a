package approvals

import (
	"fmt"
	"net/url"
	"strings"

	"sallyport/runtime/plugins"
)

// firstSentence opens a question about something new.
func firstSentence(r Resolved) string {
	name := strings.TrimSpace(called(r) + " " + Visible(r.Connector.Version))
	if r.Connector.Transport == plugins.Stdio {
		return name + " wants to run a program on this computer."
	}
	if r.Connector.Transport == plugins.Skills {
		return fmt.Sprintf("%s wants to give agents %s. Nothing of it runs.", name, counted(len(r.Connector.Skills), "skill"))
	}
	return fmt.Sprintf("%s wants to connect to %s.", name, hostOf(r.Fields.URL.Expanded))
}

func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return Visible(u.Host)
	}
	return "another computer"
}

// Sentence is the question in one line, for lists and notices; the review of a change
// says what changed.
func (d Decision) Sentence() string {
	switch {
	case d.Call != nil:
		return d.Call.Sentence(d.Subject())
	case d.Bundle != nil:
		return d.Bundle.Sentence(d.Action)
	}
	name := Visible(d.Plugin)
	if d.Plugin == plugins.ByHand {
		name = Visible(d.Server)
	}
	switch {
	case d.Stage == StageTools:
		return fmt.Sprintf("Which tools of %s may agents call?", name)
	case d.Action == "upgrade":
		return name + " changed and waits for a new approval."
	case d.Action == "reconnect":
		return name + " asks to run again as it was approved."
	case plugins.Transport(d.Fields.Transport) == plugins.Stdio:
		return strings.TrimSpace(name+" "+Visible(d.Fields.Version)) + " wants to run a program on this computer."
	case plugins.Transport(d.Fields.Transport) == plugins.Skills:
		return name + " wants to give agents skills."
	}
	return fmt.Sprintf("%s wants to connect to %s.", name, hostOf(d.Fields.URL.Expanded))
}

// called is the name that its reader knows: the plugin's, or, where the operator
// wrote the connector down, the one that was given to it.
func called(r Resolved) string {
	if r.Connector.Format == plugins.ByHand {
		return Visible(r.Connector.ID.Server)
	}
	return Visible(r.Connector.ID.Plugin)
}

// changedSentence opens a question about something that was approved before.
func changedSentence(base *before, now Resolved, d Diff) string {
	name := called(now)
	parts := append(fileWords(d), launchWords(d.Launch)...)
	parts = append(parts, toolWords(d.Tools)...)
	if old, new := base.Fields.Version, now.Connector.Version; old != new {
		if len(parts) == 0 {
			parts = []string{"nothing but the version changed"}
		}
		return fmt.Sprintf("%s %s → %s: %s.", name, Visible(old), Visible(new), strings.Join(parts, ", "))
	}
	date := base.At.Format("2 January 2006")
	switch len(parts) {
	case 0:
		return fmt.Sprintf("%s is as you approved it on %s.", name, date)
	case 1:
		return fmt.Sprintf("%s changed since you approved it on %s: %s, nothing else.", name, date, parts[0])
	}
	return fmt.Sprintf("%s changed since you approved it on %s: %s.", name, date, strings.Join(parts, ", "))
}

func fileWords(d Diff) []string {
	counts := map[string]int{}
	for _, f := range d.Files {
		counts[f.Kind]++
	}
	var parts []string
	for _, kind := range []struct{ kind, word string }{
		{"modified", "modified"}, {"added", "added"}, {"removed", "removed"}, {"mode-changed", "made executable or not"},
	} {
		if n := counts[kind.kind]; n > 0 {
			parts = append(parts, counted(n, "file")+" "+kind.word)
		}
	}
	if d.FilesLeftOut > 0 {
		parts = append(parts, fmt.Sprintf("%d more files changed", d.FilesLeftOut))
	}
	if len(parts) == 0 && d.Note != "" {
		parts = append(parts, "its files changed")
	}
	return parts
}

func launchWords(changes []Change) []string {
	var parts []string
	for _, code := range codesOf(changes) {
		switch code {
		case "version-changed": // said by the numbers
		case "permissions-changed":
			parts = append(parts, permissionWords(changes)...)
		default:
			parts = append(parts, strings.TrimSuffix(strings.ReplaceAll(code, "-", " "), " changed")+" changed")
		}
	}
	return parts
}

func permissionWords(changes []Change) []string {
	var parts []string
	for _, change := range changes {
		if change.Code != "permissions-changed" {
			continue
		}
		gained := added(change.Old, change.New)
		asks := map[string]string{
			"permissions.net": "asks for network access to ", "permissions.secrets": "asks for the secrets ",
			"permissions.fs": "asks for files: ", "permissions.tools": "asks for the tools ",
		}[change.Field]
		if len(gained) > 0 {
			parts = append(parts, asks+strings.Join(gained, " and "))
		} else {
			parts = append(parts, "asks for less ("+strings.TrimPrefix(change.Field, "permissions.")+")")
		}
	}
	return parts
}

// added returns the lines of now that old does not have.
func added(old, now string) []string {
	had := map[string]bool{}
	for _, line := range strings.Split(old, "\n") {
		had[line] = true
	}
	var out []string
	for _, line := range strings.Split(now, "\n") {
		if line != "" && !had[line] {
			out = append(out, Visible(line))
		}
	}
	return out
}

func toolWords(changes []ToolChange) []string {
	counts := map[string]int{}
	for _, c := range changes {
		counts[c.Kind]++
	}
	var parts []string
	for _, kind := range []string{"added", "changed", "removed"} {
		if n := counts[kind]; n > 0 {
			parts = append(parts, counted(n, "tool")+" "+kind)
		}
	}
	return parts
}

func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
