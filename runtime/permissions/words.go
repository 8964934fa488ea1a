package permissions

import "strings"

// Words says what s allows in plain sentences, one an entry, and which of them
// the operating system does not enforce. Entries are shown quoted: they are a
// package's text.
func (s Set) Words() []string {
	normal, err := s.normal()
	if err != nil {
		return []string{"The permissions cannot be read, so nothing is allowed."}
	}
	return []string{
		toolWords(normal.Tools), netWords(normal.Net), secretWords(normal.Secrets), fsWords(normal.FS),
	}
}

// AskedWords says which hosts the operator asked for, of those that are allowed;
// "" where there are none.
func AskedWords(net []string) string {
	if len(net) == 0 {
		return ""
	}
	return "Of these hosts your own configuration asks for " + joined(net) + ", and not the package."
}

func toolWords(list []string) string {
	switch {
	case len(list) == 0:
		return "It may offer no tools."
	case len(list) == 1 && list[0] == "*":
		return "It may offer any tool that you allow."
	}
	return "It may offer the tools " + joined(list) + ", as far as you allow them."
}

func netWords(list []string) string {
	if len(list) == 0 {
		return "Sallyport connects to no other host for it. Its own process: not enforced."
	}
	return "Sallyport may connect to " + joined(list) + " for it. Its own process: not enforced."
}

func secretWords(list []string) string {
	if len(list) == 0 {
		return "It gets no secrets."
	}
	return "It gets the secrets " + joined(list) + "."
}

func fsWords(list []string) string {
	phrases := map[string]string{
		PluginData: "its own data folder", WorkspaceRead: "read the workspace", WorkspaceWrite: "change the workspace",
	}
	said := make([]string, len(list))
	for i, word := range list {
		said[i] = phrases[word]
	}
	if len(said) == 0 {
		return "It is given no files. Its own process: not enforced."
	}
	return "Files: " + strings.Join(said, ", ") + ". Its own process: not enforced."
}

func joined(list []string) string {
	shown := make([]string, len(list))
	for i, entry := range list {
		shown[i] = quoted(entry)
	}
	return strings.Join(shown, ", ")
}
