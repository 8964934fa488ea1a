package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// prefix names the encoding of spec/artifact-digest.md version 1.
const prefix = "a1:"

// Digest names one exact tree: "a1:" and 64 lower-case hex digits.
type Digest string

// Valid reports whether d has the form of a digest that this version makes.
func (d Digest) Valid() bool {
	hexDigits, ok := strings.CutPrefix(string(d), prefix)
	if !ok || len(hexDigits) != hex.EncodedLen(sha256.Size) {
		return false
	}
	return strings.Trim(hexDigits, "0123456789abcdef") == ""
}

// Short returns d for people, "a1:9f3c…e2". It is never compared.
func (d Digest) Short() string {
	if !d.Valid() {
		return string(d)
	}
	return string(d[:7]) + "…" + string(d[len(d)-2:])
}

// folder returns the name that d has in a file system, where ':' may not stand.
func (d Digest) folder() string { return "a1-" + strings.TrimPrefix(string(d), prefix) }

// digestOfFolder is the inverse of folder.
func digestOfFolder(name string) (Digest, bool) {
	hexDigits, ok := strings.CutPrefix(name, "a1-")
	d := Digest(prefix + hexDigits)
	return d, ok && d.Valid()
}

func digestFromSum(sum []byte) Digest { return Digest(prefix + hex.EncodeToString(sum)) }
