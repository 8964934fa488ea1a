package env

import (
	"sort"
	"strings"
)

// The names that a child gets from the parent when they are set
// (spec/child-environment.md 1). LC_ is a prefix.
var (
	basePosix   = []string{"PATH", "HOME", "TMPDIR", "LANG", "LANGUAGE", "TZ"}
	baseWindows = []string{
		"PATH", "PATHEXT", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "TEMP", "TMP",
		"USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
		"PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432", "COMMONPROGRAMFILES",
		"COMMONPROGRAMFILES(X86)", "COMMONPROGRAMW6432", "NUMBER_OF_PROCESSORS",
		"PROCESSOR_ARCHITECTURE", "OS",
	}
)

// network is the group of spec/child-environment.md 4.
var (
	networkProxies = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}
	networkCAs     = []string{
		"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
	}
)

// NetworkGroup is the word in inherit that stands for the names which a
// company network needs.
const NetworkGroup = "network"

// fromBase returns the names of the parent that are on the base list, as the
// parent spells them.
func (p Parent) fromBase() []string {
	var names []string
	if p.windows() {
		for _, name := range baseWindows {
			if spelled, _, ok := p.find(name); ok {
				names = append(names, spelled)
			}
		}
		return names
	}
	for _, name := range basePosix {
		if _, ok := p.Vars[name]; ok {
			names = append(names, name)
		}
	}
	for name := range p.Vars {
		if strings.HasPrefix(name, "LC_") && plainName(name) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// expandInherit replaces the group by its names.
func expandInherit(inherit []string) []string {
	var names []string
	for _, name := range inherit {
		if name != NetworkGroup {
			names = append(names, name)
			continue
		}
		for _, upper := range append(append([]string(nil), networkProxies...), "NO_PROXY") {
			names = append(names, upper, strings.ToLower(upper))
		}
		names = append(names, networkCAs...)
	}
	return names
}

// plainName reports whether name is a portable variable name, with Windows'
// parentheses. No pattern is one: there is no "inherit all".
func plainName(name string) bool {
	for i, r := range name {
		switch {
		case r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z', r == '_':
		case i > 0 && (r >= '0' && r <= '9' || r == '(' || r == ')'):
		default:
			return false
		}
	}
	return name != ""
}
