package permissions

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sallyport/internal/coded"
)

// Within reports, as an error with the code "permissions-wider", an entry of s
// that outer does not cover. Both must be valid.
func (s Set) Within(outer Set) error {
	a, err := s.normal()
	if err != nil {
		return err
	}
	b, err := outer.normal()
	if err != nil {
		return err
	}
	for _, list := range []struct {
		name         string
		inner, outer []string
		covers       func(outer, inner string) bool
	}{
		{"tools", a.Tools, b.Tools, coversTools},
		{"net", a.Net, b.Net, coversNet},
		{"secrets", a.Secrets, b.Secrets, equal},
		{"fs", a.FS, b.FS, coversFS},
	} {
		for _, entry := range list.inner {
			if !slices.ContainsFunc(list.outer, func(o string) bool { return list.covers(o, entry) }) {
				return coded.New("permissions-wider",
					fmt.Sprintf("permissions.%s: %s is more than what was requested", list.name, quoted(entry)))
			}
		}
	}
	return nil
}

// WithNet returns s with more hosts in its list, for what the operator asks for in
// addition to a package.
func (s Set) WithNet(hosts []string) (Set, error) {
	s.Net = append(slices.Clone(s.Net), hosts...)
	return s.normal()
}

// WithFS returns s with more of the words for files, likewise.
func (s Set) WithFS(words []string) (Set, error) {
	s.FS = append(slices.Clone(s.FS), words...)
	return s.normal()
}

// AllowsTool reports whether a pattern of s matches the tool's name. The tool
// must also be pinned (spec/permissions.md); that is not asked here.
func (s Set) AllowsTool(name string) bool {
	return slices.ContainsFunc(s.Tools, func(p string) bool { return p != "" && matches(p, name) })
}

// AllowsHost reports whether s names the host (a name or an address literal,
// in any case, brackets allowed) with that port. The address that is really
// dialled is for the caller to check too.
func (s Set) AllowsHost(host string, port int) bool {
	host = strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), "."))
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	} else if !isHostName(host) {
		return false
	}
	wanted := joinHostPort(host, port)
	return slices.ContainsFunc(s.Net, func(p string) bool {
		normal, err := netPattern(p)
		return err == nil && coversNet(normal, wanted)
	})
}

// AllowsSecret reports whether s lists the secret's name.
func (s Set) AllowsSecret(name string) bool { return slices.Contains(s.Secrets, name) }

// AllowsFS reports whether s covers the fs word; writing the workspace covers
// reading it.
func (s Set) AllowsFS(word string) bool {
	return slices.ContainsFunc(s.FS, func(p string) bool { return coversFS(p, word) })
}

func equal(a, b string) bool { return a == b }

func coversFS(outer, inner string) bool {
	return outer == inner || outer == WorkspaceWrite && inner == WorkspaceRead
}

// coversTools reports whether every name that inner matches is matched by
// outer. Names have more characters than any pattern uses, so it is enough to
// put one that outer does not use where inner has a star: only a star of outer
// can take it, and a star takes anything else as well.
func coversTools(outer, inner string) bool {
	return matches(outer, strings.ReplaceAll(inner, "*", "\x00"))
}

// coversNet compares normal patterns, which always have a port.
func coversNet(outer, inner string) bool {
	if outer == inner {
		return true
	}
	suffix, wild := strings.CutPrefix(outer, "*")
	return wild && strings.HasSuffix(inner, suffix) && len(inner) > len(suffix)
}

// matches reports whether pattern, where * is any run of characters, matches
// the whole of name. It takes time in the order of both lengths multiplied.
func matches(pattern, name string) bool {
	p, n, star, mark := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && pattern[p] == name[n]:
			p, n = p+1, n+1
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
