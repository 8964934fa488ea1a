package unpack

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// clean returns the path that an entry's name means, "" for the root itself, or
// why it means none. Nothing is repaired but a leading "./" and a folder's "/".
func clean(name string, limits Limits) (string, error) {
	if len(name) > limits.PathBytes {
		return "", tooLong(name)
	}
	if !utf8.ValidString(name) || name == "" || strings.ContainsFunc(name, isControl) {
		return "", badName(name)
	}
	if strings.Contains(name, `\`) {
		return "", backslash(name)
	}
	if strings.HasPrefix(name, "/") || hasDrive(name) {
		return "", absolute(name)
	}
	rest := strings.TrimSuffix(name, "/")
	for strings.HasPrefix(rest, "./") {
		rest = strings.TrimPrefix(rest, "./")
	}
	if rest == "." || rest == "" && strings.HasPrefix(name, "./") {
		return "", nil
	}
	steps := strings.Split(rest, "/")
	if len(steps) > limits.Depth {
		return "", tooLong(name)
	}
	for _, step := range steps {
		switch {
		case step == "..":
			return "", traversal(name)
		case step == "" || step == ".":
			return "", badName(name)
		case len(step) > limits.NameBytes:
			return "", tooLong(name)
		}
	}
	if hasDrive(rest) {
		return "", absolute(name)
	}
	return rest, nil
}

// isControl is what would break a line or a terminal.
func isControl(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

func hasDrive(name string) bool {
	return len(name) >= 2 && name[1] == ':' && (name[0]|0x20 >= 'a' && name[0]|0x20 <= 'z')
}

// key is equal for two paths that some system would give one file.
func key(p string, keepCase bool) string {
	if isASCII(p) {
		if keepCase {
			return p
		}
		return strings.ToLower(p)
	}
	if keepCase {
		return norm.NFC.String(p)
	}
	return norm.NFC.String(cases.Fold().String(norm.NFC.String(p)))
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// ImpossibleOnWindows reports whether Windows cannot have a file or folder with
// the last name of p, or would take it for another.
func ImpossibleOnWindows(p string) bool {
	name := path.Base(p)
	if strings.HasSuffix(name, ".") || strings.HasSuffix(name, " ") || strings.ContainsAny(name, `<>:"|?*`) {
		return true
	}
	base, _, _ := strings.Cut(name, ".")
	base = strings.ToUpper(strings.TrimRight(base, " "))
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	port, found := strings.CutPrefix(base, "COM")
	if !found {
		port, found = strings.CutPrefix(base, "LPT")
	}
	return found && len([]rune(port)) == 1 && strings.ContainsAny(port, "0123456789¹²³")
}
