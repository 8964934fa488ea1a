package approvals

import (
	"crypto/sha256"
	"encoding/hex"
)

func sum256(prefix string, data []byte) string {
	sum := sha256.Sum256(data)
	return prefix + hex.EncodeToString(sum[:])
}
