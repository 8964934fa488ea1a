package secrets

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"sallyport/internal/coded"
)

// checkName accepts what permissions.secrets accepts (spec/permissions.md).
func checkName(name string) error {
	ok := name != "" && len(name) <= 128
	for _, r := range name {
		ok = ok && (r == '_' || r == '-' || r == '.' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z')
	}
	if ok {
		return nil
	}
	if len(name) > 128 {
		name = name[:128] + "…"
	}
	return &coded.Error{
		Code:     "secret-name-invalid",
		Sentence: fmt.Sprintf("%q is not a name for a secret", name),
		Next:     "use 1 to 128 letters, digits, '_', '-' and '.'",
	}
}

// key is the name in the keyring. Windows compares entries without case, so a
// name with small letters gets an ending that tells it from its likes. ':' is in
// no name.
func key(name string) string {
	if name == strings.ToUpper(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name + ":" + hex.EncodeToString(sum[:6])
}
