package plugins

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// maxSettings is how many values a bundle may ask for.
const maxSettings = 200

// readSettings reads user_config. A setting that cannot be read ends the plugin: a
// limit or a secrecy that was not understood cannot be kept.
func (m *mcpb) readSettings(_ *report, root *node) *fault {
	n := root.get("user_config")
	if n == nil {
		return nil
	}
	if n.kind != '{' || len(n.members) > maxSettings {
		return &fault{n.from, "user-config-invalid", fmt.Sprintf("user_config is no object with at most %d fields", maxSettings)}
	}
	for _, field := range n.members {
		s, sentence := readSetting(field)
		if sentence != "" {
			return &fault{field.at, "user-config-invalid", fmt.Sprintf("user_config: %s %s", show(field.name), sentence)}
		}
		m.settings = append(m.settings, s)
	}
	slices.SortFunc(m.settings, func(a, b Setting) int { return cmp.Compare(a.Key, b.Key) })
	return nil
}

func readSetting(field member) (s Setting, sentence string) {
	n := field.value
	if field.name == "" || len(field.name) > 128 || strings.ContainsAny(field.name, "=}") || strings.ContainsFunc(field.name, unicode.IsControl) {
		return s, "is no name: it is empty or long, or holds '=', '}' or control characters"
	}
	if n.kind != '{' {
		return s, "is " + n.kindName() + ", not an object"
	}
	s = Setting{Key: field.name}
	for _, text := range []struct {
		name string
		to   *string
	}{{"type", &s.Type}, {"title", &s.Title}, {"description", &s.Description}} {
		if value := n.get(text.name); value != nil {
			if value.kind != '"' {
				return s, "has a " + text.name + " that is " + value.kindName() + ", not a string"
			}
			*text.to = value.text
		}
	}
	if !slices.Contains([]string{"string", "number", "boolean", "directory", "file"}, s.Type) {
		return s, "has the unknown type " + show(s.Type)
	}
	for _, flag := range []struct {
		name string
		to   *bool
	}{{"required", &s.Required}, {"sensitive", &s.Sensitive}, {"multiple", &s.Multiple}} {
		if value := n.get(flag.name); value != nil {
			if value.kind != 't' && value.kind != 'f' {
				return s, "has " + flag.name + " that is " + value.kindName() + ", not true or false"
			}
			*flag.to = value.kind == 't'
		}
	}
	for _, bound := range []struct {
		name string
		to   *string
	}{{"min", &s.Min}, {"max", &s.Max}} {
		if value := n.get(bound.name); value != nil {
			if value.kind != '0' {
				return s, "has a " + bound.name + " that is " + value.kindName() + ", not a number"
			}
			*bound.to = value.text
		}
	}
	if value := n.get("default"); value != nil {
		if s.Default, sentence = defaultOf(value); sentence != "" {
			return s, sentence
		}
		if wrong := s.fits(s.Default); wrong != "" {
			return s, "has a default that does not fit it: " + wrong
		}
	}
	return s, ""
}

// defaultOf returns a default as texts: that is what placeholders are replaced by.
func defaultOf(n *node) ([]string, string) {
	switch n.kind {
	case '"', '0':
		return []string{n.text}, ""
	case 't', 'f':
		return []string{strconv.FormatBool(n.kind == 't')}, ""
	case 'n':
		return nil, ""
	}
	if list, ok := n.strings(); ok {
		return list, ""
	}
	return nil, "has a default that is neither a string, a number, true, false nor a list of strings"
}
