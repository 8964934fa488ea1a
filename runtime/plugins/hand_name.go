package plugins

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// folderName makes the name of a folder of any text. A text that is one already stays
// as it is; every other gets a part of its hash, so that no two become one, whatever a
// file system makes of case and marks (C36).
func folderName(text string) string {
	const most = 40
	var b strings.Builder
	plain := text != "" && len(text) <= most && !strings.Contains(text, "--")
	for _, r := range text {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_':
			b.WriteRune(r)
		case r >= 'A' && r <= 'Z':
			b.WriteRune(r + 'a' - 'A')
			plain = false
		default:
			b.WriteByte('_')
			plain = false
		}
	}
	// Windows has devices by these names: con, nul, com1, …
	if plain && len(text) > 4 {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	name := b.String()
	return name[:min(len(name), most)] + "--" + hex.EncodeToString(sum[:6])
}
