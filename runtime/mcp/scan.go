package mcp

import (
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"strings"
)

// maxDepth keeps a whole message within the 10,000 levels of encoding/json.
const maxDepth = 9998

// A scanner checks JSON (RFC 8259) in place. It keeps nothing of what it saw and
// allocates only for nesting deeper than it met before. UTF-8 is not its concern.
type scanner struct {
	data    []byte
	at      int
	objects []uint64 // one bit a level: 1 is an object, 0 an array
}

func (s *scanner) reset(data []byte) { s.data, s.at = data, 0 }

// peek passes white space and returns the byte behind it, 0 at the end.
func (s *scanner) peek() byte {
	for s.at < len(s.data) {
		switch c := s.data[s.at]; c {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// value passes one whole value. It is a loop, not a recursion: how deep it goes
// is the peer's choice.
func (s *scanner) value() (raw []byte, ok bool) {
	s.peek()
	from, depth := s.at, 0
	for {
		c := s.peek()
		if c == '{' || c == '[' {
			if depth == maxDepth {
				return nil, false
			}
			s.at++
			s.push(depth, c == '{')
			depth++
			if s.peek() != c+2 { // '{'+2 is '}', '['+2 is ']'
				if c == '{' && !s.name() {
					return nil, false
				}
				continue
			}
		} else if !s.scalar(c) {
			return nil, false
		}
		if depth, ok = s.unwind(depth); !ok {
			return nil, false
		}
		if depth == 0 {
			return s.data[from:s.at], true
		}
	}
}

// unwind stands behind a value at the given depth: it closes every level that
// ends here and passes the comma, and the name, in front of the next value.
func (s *scanner) unwind(depth int) (int, bool) {
	for depth > 0 {
		object := s.objects[(depth-1)/64]>>((depth-1)%64)&1 == 1
		switch c := s.peek(); {
		case c == ',':
			s.at++
			return depth, !object || s.name()
		case c == '}' && object, c == ']' && !object:
			s.at++
			depth--
		default:
			return depth, false
		}
	}
	return 0, true
}

func (s *scanner) push(level int, object bool) {
	word, bit := level/64, uint64(1)<<(level%64)
	if word == len(s.objects) {
		s.objects = append(s.objects, 0)
	}
	if object {
		s.objects[word] |= bit
	} else {
		s.objects[word] &^= bit
	}
}

// name passes a member's name and its colon.
func (s *scanner) name() bool {
	if s.peek() != '"' || !s.text() || s.peek() != ':' {
		return false
	}
	s.at++
	return true
}

func (s *scanner) scalar(first byte) bool {
	switch first {
	case '"':
		return s.text()
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.number()
}

func (s *scanner) literal(word string) bool {
	if len(s.data)-s.at < len(word) || string(s.data[s.at:s.at+len(word)]) != word {
		return false
	}
	s.at += len(word)
	return true
}

// text passes a string, of which the opening quote is next.
func (s *scanner) text() bool {
	s.at++
	for {
		s.plain()
		if s.at == len(s.data) {
			return false
		}
		switch s.data[s.at] {
		case '"':
			s.at++
			return true
		case '\\':
			if !s.escape() {
				return false
			}
		default: // a control character
			return false
		}
	}
}

// plain passes bytes that stand for themselves in a string, eight at a time.
func (s *scanner) plain() {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	data, at := s.data, s.at
	for len(data)-at >= 8 {
		word := binary.LittleEndian.Uint64(data[at:])
		quote, slash := word^(ones*'"'), word^(ones*'\\')
		// The lowest mark of each term is exact; borrows only reach upwards.
		marks := ((quote-ones)&^quote | (slash-ones)&^slash | (word-ones*0x20)&^word) & tops
		if marks != 0 {
			s.at = at + bits.TrailingZeros64(marks)/8
			return
		}
		at += 8
	}
	for at < len(data) && data[at] >= 0x20 && data[at] != '"' && data[at] != '\\' {
		at++
	}
	s.at = at
}

func (s *scanner) escape() bool {
	rest := s.data[s.at:]
	if len(rest) < 2 {
		return false
	}
	switch rest[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.at += 2
		return true
	case 'u':
		if len(rest) < 6 {
			return false
		}
		for _, c := range rest[2:6] {
			if !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f') {
				return false
			}
		}
		s.at += 6
		return true
	}
	return false
}

func (s *scanner) number() bool {
	s.skip('-')
	if !s.skip('0') && !s.digits() {
		return false
	}
	if s.skip('.') && !s.digits() {
		return false
	}
	if s.skip('e') || s.skip('E') {
		if !s.skip('+') {
			s.skip('-')
		}
		return s.digits()
	}
	return true
}

func (s *scanner) skip(c byte) bool {
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) digits() bool {
	from := s.at
	for s.at < len(s.data) && '0' <= s.data[s.at] && s.data[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}

// members passes an object and shows every member: its name as written, without
// the quotes, and where its value lies. It is false for anything but an object,
// and where each says so.
func (s *scanner) members(each func(name []byte, from, to int) bool) bool {
	if s.peek() != '{' {
		return false
	}
	s.at++
	if s.peek() == '}' {
		s.at++
		return true
	}
	for {
		s.peek()
		from := s.at + 1
		if !s.name() {
			return false
		}
		name := s.data[from:]
		name = name[:nameLength(name)]
		raw, ok := s.value()
		if !ok || !each(name, s.at-len(raw), s.at) {
			return false
		}
		switch s.peek() {
		case ',':
			s.at++
		case '}':
			s.at++
			return true
		default:
			return false
		}
	}
}

// elements passes an array and shows every element.
func (s *scanner) elements(each func(raw []byte) bool) bool {
	if s.peek() != '[' {
		return false
	}
	s.at++
	if s.peek() == ']' {
		s.at++
		return true
	}
	for {
		raw, ok := s.value()
		if !ok || !each(raw) {
			return false
		}
		switch s.peek() {
		case ',':
			s.at++
		case ']':
			s.at++
			return true
		default:
			return false
		}
	}
}

// end reports whether nothing but white space is left.
func (s *scanner) end() bool {
	s.peek()
	return s.at == len(s.data)
}

// nameLength finds the quote that closes a string already known to be sound.
func nameLength(rest []byte) int {
	for i := 0; ; i++ {
		switch rest[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
}

// unquote returns what a string between quotes stands for.
func unquote(name []byte) string {
	plain := true
	for _, c := range name {
		if c == '\\' {
			plain = false
			break
		}
	}
	if plain {
		return string(name)
	}
	var text string
	quoted := make([]byte, 0, len(name)+2)
	quoted = append(append(append(quoted, '"'), name...), '"')
	if json.Unmarshal(quoted, &text) != nil {
		return string(name)
	}
	return text
}

// spelled reports whether a name is the wanted word, and whether it is that word
// in another dress: other case, folded letters, or written with escapes.
func spelled(name []byte, want string) (exact, variant bool) {
	if string(name) == want {
		return true, false
	}
	return false, strings.EqualFold(unquote(name), want)
}
