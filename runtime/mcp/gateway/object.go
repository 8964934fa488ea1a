package gateway

import (
	"bytes"
	"encoding/json"
	"strings"
)

// fields walks the members of a JSON object in place. The text was parsed before
// it came here; on any other text the walk ends early and never panics.
type fields struct {
	text []byte
	at   int
}

// field is one member, as offsets into the object's text.
type field struct {
	key        []byte // with its quotes
	start, end int    // of the value
	keyStart   int
}

// members starts a walk. The walk of what is no object is empty.
func members(object []byte) fields {
	at := skipSpace(object, 0)
	if at == len(object) || object[at] != '{' {
		return fields{text: object, at: len(object)}
	}
	return fields{text: object, at: at + 1}
}

func (w *fields) next() (field, bool) {
	t := w.text
	at := skipSpace(t, w.at)
	if at < len(t) && t[at] == ',' {
		at = skipSpace(t, at+1)
	}
	if at >= len(t) || t[at] != '"' {
		w.at = len(t)
		return field{}, false
	}
	f := field{keyStart: at}
	end := skipString(t, at)
	f.key = t[at:end]
	at = skipSpace(t, end)
	if at >= len(t) || t[at] != ':' {
		w.at = len(t)
		return field{}, false
	}
	f.start = skipSpace(t, at+1)
	f.end = skipValue(t, f.start)
	w.at = f.end
	return f, f.end > f.start
}

func (f field) value(object []byte) json.RawMessage { return object[f.start:f.end:f.end] }

// named reports whether the key is name; plain keys are compared in place.
func (f field) named(name string) bool {
	if len(f.key) < 2 {
		return false
	}
	if bytes.IndexByte(f.key, '\\') < 0 {
		return string(f.key[1:len(f.key)-1]) == name
	}
	return unquote(f.key) == name
}

// resembles reports whether the key is name but for the case of its letters.
func (f field) resembles(name string) bool {
	if len(f.key) < 2 {
		return false
	}
	if bytes.IndexByte(f.key, '\\') < 0 {
		inner := f.key[1 : len(f.key)-1]
		return len(inner) >= len(name) && strings.EqualFold(string(inner), name)
	}
	return strings.EqualFold(unquote(f.key), name)
}

// lookup returns the value of the first member called name.
func lookup(object []byte, name string) (json.RawMessage, bool) {
	for walk := members(object); ; {
		f, ok := walk.next()
		if !ok {
			return nil, false
		}
		if f.named(name) {
			return f.value(object), true
		}
	}
}

// text returns the member's string, "" where it is absent or no string.
func text(object []byte, name string) string {
	value, ok := lookup(object, name)
	if !ok {
		return ""
	}
	return unquote(value)
}

// unquote returns the text of a JSON string, "" for anything else.
func unquote(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return ""
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// quote returns s as a JSON string, with nothing escaped that need not be.
func quote(s string) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil {
		return []byte(`""`)
	}
	return bytes.TrimRight(out.Bytes(), "\n")
}

// splice returns text with [start,end) replaced.
func splice(text []byte, start, end int, with []byte) []byte {
	out := make([]byte, 0, len(text)-(end-start)+len(with))
	out = append(out, text[:start]...)
	out = append(out, with...)
	return append(out, text[end:]...)
}

// prepend returns object with member (`"key":value`) put in front.
func prepend(object []byte, member string) []byte {
	at := skipSpace(object, 0)
	if at == len(object) || object[at] != '{' {
		return object
	}
	rest := skipSpace(object, at+1)
	out := make([]byte, 0, len(object)+len(member)+1)
	out = append(out, object[:at+1]...)
	out = append(out, member...)
	if rest < len(object) && object[rest] != '}' {
		out = append(out, ',')
	}
	return append(out, object[at+1:]...)
}

// without returns object less every member that drop names, and object itself
// where there is none.
func without(object []byte, drop func(field) bool) []byte {
	found := false
	for walk := members(object); ; {
		f, ok := walk.next()
		if !ok {
			break
		}
		found = found || drop(f)
	}
	if !found {
		return object
	}
	out := []byte{'{'}
	for walk := members(object); ; {
		f, ok := walk.next()
		if !ok {
			break
		}
		if drop(f) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, object[f.keyStart:f.end]...)
	}
	return append(out, '}')
}

// elements returns the elements of an array, each as it stands.
func elements(array []byte) []json.RawMessage {
	at := skipSpace(array, 0)
	if at == len(array) || array[at] != '[' {
		return nil
	}
	var out []json.RawMessage
	for at++; ; {
		at = skipSpace(array, at)
		if at < len(array) && array[at] == ',' {
			at = skipSpace(array, at+1)
		}
		if at >= len(array) || array[at] == ']' {
			return out
		}
		end := skipValue(array, at)
		if end <= at {
			return out
		}
		out = append(out, array[at:end:end])
		at = end
	}
}

func skipSpace(t []byte, at int) int {
	for at < len(t) && (t[at] == ' ' || t[at] == '\n' || t[at] == '\t' || t[at] == '\r') {
		at++
	}
	return at
}

// skipString returns the offset after the string that starts at at.
func skipString(t []byte, at int) int {
	for at++; at < len(t); {
		next := bytes.IndexByte(t[at:], '"')
		if next < 0 {
			return len(t)
		}
		quoteAt := at + next
		slashes := 0
		for i := quoteAt - 1; i >= at && t[i] == '\\'; i-- {
			slashes++
		}
		at = quoteAt + 1
		if slashes%2 == 0 {
			return at
		}
	}
	return len(t)
}

// skipValue returns the offset after the value that starts at at.
func skipValue(t []byte, at int) int {
	if at >= len(t) {
		return len(t)
	}
	switch t[at] {
	case '"':
		return skipString(t, at)
	case '{', '[':
		for depth := 0; at < len(t); {
			switch t[at] {
			case '"':
				at = skipString(t, at)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return at + 1
				}
			}
			at++
		}
		return len(t)
	default:
		for at < len(t) && !strings.ContainsRune(",}] \t\r\n:", rune(t[at])) {
			at++
		}
		return at
	}
}
