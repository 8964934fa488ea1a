package cli

import (
	"slices"

	"github.com/spf13/cobra"
)

// helpGroup is a part of the list of commands, so that a newcomer reads five short
// lists and not a long one.
type helpGroup struct {
	title    string
	commands []string
}

func helpGroups() []helpGroup {
	return []helpGroup{
		{"Look:", []string{"open", "tray", "serve", "status", "health", "doctor", "audit"}},
		{"Get plugins and servers:", []string{"plugins", "install", "update", "undo", "uninstall", "vendor", "connectors", "import", "config", "times", "digest"}},
		{"Decide:", []string{"approve", "deny", "revoke", "enable", "disable", "diff", "env", "decisions", "policy"}},
		{"Run:", []string{"start", "stop", "restart"}},
		{"Let agents in:", []string{"connect", "clients", "tools", "call", "mcp"}},
		{"This installation:", []string{"sources", "autostart", "updates", "diagnostics"}},
		{"Secrets and signing in:", []string{"secrets", "login", "logout", "console"}},
	}
}

func addGroups(root *cobra.Command) {
	for _, g := range helpGroups() {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
	}
}

// putInGroups leaves what is in none for the list at the end.
func putInGroups(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		for _, g := range helpGroups() {
			if slices.Contains(g.commands, cmd.Name()) {
				cmd.GroupID = g.title
			}
		}
	}
}
