package secrets

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"sallyport/internal/coded"
)

// CheckName accepts what permissions.secrets accepts (spec/permissions.md). Its
// refusal does not repeat the text: a value is easily pasted where the name belongs.
func CheckName(name string) error {
	ok := name != "" && len(name) <= 128
	for _, r := range name {
		ok = ok && (r == '_' || r == '-' || r == '.' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z')
	}
	if ok {
		return nil
	}
	return &coded.Error{
		Code:     "secret-name-invalid",
		Sentence: "that is not a name for a secret",
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
