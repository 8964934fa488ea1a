package gateway

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"sallyport/runtime/plugins"
)

const (
	// maxName is the longest exposed name, prefix included: what the strictest
	// agents take.
	maxName    = 64
	separator  = "__"
	hashLength = 10 // 50 bits in base32
	maxBody    = maxName - 1 - hashLength
	maxTail    = 32
)

// ExposedName returns the name under which agents see a tool or prompt:
// plugin__server__name where that is short, made of letters, digits, '_' and '-',
// and can be taken apart in one way only; else a readable shorter form with a
// hash over the three originals. It depends on nothing but its arguments, so it
// is the same after a restart and in any order of connecting.
func ExposedName(id plugins.ID, original string) string {
	parts := [...]string{id.Plugin, id.Server, original}
	plain := true
	for i, part := range parts {
		plain = plain && stands(part)
		parts[i] = clean(part)
	}
	name := strings.Join(parts[:], separator)
	if plain && len(name) <= maxName {
		return name
	}
	if len(name) > maxBody {
		tail := clip(parts[2], maxTail)
		head := clip(parts[0]+separator+parts[1], maxBody-len(separator)-len(tail))
		name = head + separator + tail
	}
	return name + "_" + nameHash(id, original)
}

// stands reports whether a part may stand in a name as it is: it holds only what
// agents take, and no underscore that could be read as a part of a separator.
func stands(part string) bool {
	return part != "" && clean(part) == part && !strings.Contains(part, separator) &&
		part[0] != '_' && part[len(part)-1] != '_'
}

// clean replaces each run of characters that some agent refuses by one '-'.
func clean(part string) string {
	var out strings.Builder
	gap := false
	for _, r := range part {
		if !inName(r) {
			gap = true
			continue
		}
		if gap && out.Len() > 0 {
			out.WriteByte('-')
		}
		gap = false
		out.WriteRune(r)
	}
	if out.Len() == 0 {
		return "x"
	}
	return out.String()
}

func inName(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-'
}

func clip(s string, length int) string {
	if len(s) > length {
		s = s[:length]
	}
	return strings.TrimRight(s, "_-")
}

var nameCoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// nameHash separates the parts by NUL, which no name holds.
func nameHash(id plugins.ID, original string) string {
	sum := sha256.Sum256([]byte(id.Plugin + "\x00" + id.Server + "\x00" + original))
	return nameCoding.EncodeToString(sum[:])[:hashLength]
}
