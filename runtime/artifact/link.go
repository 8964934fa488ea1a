package artifact

import (
	"runtime"
	"strings"
	"unicode/utf8"

	"sallyport/internal/coded"
)

// namesAreNormalised says that the file system finds a name in any Unicode form.
const namesAreNormalised = runtime.GOOS == "darwin"

// checkLink returns the link text as it is encoded, or the refusal of clause 4
// of spec/artifact-digest.md. It looks at the walked tree only, never at the
// disk: what a link leads to cannot change between the look and the digest.
func checkLink(dir *node, e *entry) (string, *coded.Error) {
	text := e.target
	if runtime.GOOS == "windows" {
		text = strings.ReplaceAll(text, `\`, "/")
	}
	switch {
	case !utf8.ValidString(text):
		return "", refuse(CodePathEncoding, e.path, nil)
	case isAbsoluteLink(text):
		return "", refuse(CodeSymlinkAbsolute, e.path, nil)
	case len(text) > maxTarget:
		return "", refuse(CodePathTooLong, e.path, nil)
	case text == "":
		return "", refuse(CodeSymlinkDangling, e.path, nil)
	}
	if code := resolveLink(dir, text); code != "" {
		return "", refuse(code, e.path, nil)
	}
	return text, nil
}

func isAbsoluteLink(text string) bool {
	if strings.HasPrefix(text, "/") {
		return true
	}
	return runtime.GOOS == "windows" && len(text) >= 2 && text[1] == ':'
}

// resolveLink follows text from dir, name by name and through the links met on
// the way, and returns the code of its refusal or "" (clause 4.3).
func resolveLink(dir *node, text string) string {
	at, onFile := dir, false
	todo := []string{text} // last is next
	for hops := 0; len(todo) > 0; {
		name, rest, more := strings.Cut(todo[len(todo)-1], "/")
		if todo[len(todo)-1] = rest; !more {
			todo = todo[:len(todo)-1]
		}
		if name == "" || name == "." {
			continue
		}
		if onFile {
			return CodeSymlinkDangling
		}
		if name == ".." {
			if at.parent == nil {
				return CodeSymlinkEscape
			}
			at = at.parent
			continue
		}
		e := at.find(name)
		switch {
		case e == nil:
			return CodeSymlinkDangling
		case e.refusal != nil:
			return e.refusal.Code
		case e.kind == KindLink:
			if hops++; hops > maxHops {
				return CodeSymlinkCycle
			}
			inner := e.target
			if runtime.GOOS == "windows" {
				inner = strings.ReplaceAll(inner, `\`, "/")
			}
			if isAbsoluteLink(inner) {
				return CodeSymlinkEscape
			}
			todo = append(todo, inner)
		case e.child != nil:
			at = e.child
		default:
			onFile = true
		}
	}
	if !onFile && contains(at, dir) {
		return CodeSymlinkCycle
	}
	return ""
}

// contains reports whether outer is dir or a directory above it.
func contains(outer, dir *node) bool {
	for ; dir != nil; dir = dir.parent {
		if dir == outer {
			return true
		}
	}
	return false
}
