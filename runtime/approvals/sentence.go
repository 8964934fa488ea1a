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
	host := "another computer"
	if u, err := url.Parse(r.Fields.URL.Expanded); err == nil && u.Host != "" {
		host = u.Host
	}
	return fmt.Sprintf("%s wants to connect to %s.", name, Visible(host))
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
