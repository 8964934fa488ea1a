// Package updates says whether there is a newer Sallyport, when somebody asks.
//
// The one idea: what is believed about a release is one small file, the manifest, signed
// as it is, byte for byte, with a key whose other half is in the program. It is asked for
// on demand only, never by itself, and the answer is words: which version there is, where
// its files are and what they hash to. Nothing is downloaded and nothing is installed.
//
// An old manifest is the one attack that a signature does not show, so each has an end: a
// manifest that has passed it says nothing about what is newest.
//
// It dials through the client that it is handed, which decides where it may go. host, cli
// and the tool that signs import it.
package updates

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"sallyport/internal/coded"
	"sallyport/internal/onejson"
)

// Schema is the one form of a manifest that there is.
const Schema = 1

// SignatureSuffix is what the signature's address has behind the manifest's.
const SignatureSuffix = ".sig"

const (
	maxManifest  = 256 << 10
	maxSignature = 1 << 10
	maxFiles     = 200
	maxText      = 2000
	maxFileSize  = 4 << 30
	// longest is how long a manifest may hold, and ahead how far a clock may be behind.
	longest = 400 * 24 * time.Hour
	ahead   = 24 * time.Hour
)

// Manifest is what is said about the newest release.
type Manifest struct {
	Schema  int       `json:"schema"`
	Version string    `json:"version"` // three numbers, perhaps with -rc.1
	Date    time.Time `json:"date"`    // of the signing
	Expires time.Time `json:"expires"` // after it the manifest says nothing
	Notes   string    `json:"notes"`   // a page about the release
	Files   []File    `json:"files"`
}

// File is one that can be downloaded.
type File struct {
	OS     string `json:"os"`   // as Go names it: linux, darwin, windows
	Arch   string `json:"arch"` // amd64, arm64, universal
	Kind   string `json:"kind"` // deb, rpm, zip, dmg, exe ...
	URL    string `json:"url"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// Parse reads a manifest strictly. It verifies nothing: see Verify.
func Parse(raw []byte) (Manifest, error) {
	var m Manifest
	if len(raw) > maxManifest {
		return m, invalid("it is too large")
	}
	if err := onejson.Decode(raw, &m); err != nil {
		return Manifest{}, &coded.Error{Code: "updates-manifest-invalid", Sentence: "the manifest of updates is not valid: it is not the JSON that is expected", Next: nextInvalid, Err: err}
	}
	if why := m.wrong(); why != "" {
		return Manifest{}, invalid(why)
	}
	return m, nil
}

const nextInvalid = "look for updates on the project's own page, and say there that this happened"

func invalid(why string) error {
	return &coded.Error{Code: "updates-manifest-invalid", Sentence: "the manifest of updates is not valid: " + why, Next: nextInvalid}
}

func (m Manifest) wrong() string {
	switch {
	case m.Schema != Schema:
		return "its schema is another one, which a newer Sallyport may know"
	case !isVersion(m.Version):
		return "its version is none"
	case m.Date.IsZero() || m.Expires.IsZero():
		return "it does not say from when to when it holds"
	case !m.Expires.After(m.Date) || m.Expires.Sub(m.Date) > longest:
		return "it ends before it begins, or holds too long"
	case !isAddress(m.Notes):
		return "the address of its notes is not one of https"
	case len(m.Files) == 0 || len(m.Files) > maxFiles:
		return "it names no files, or too many"
	}
	seen := map[string]bool{}
	for i, f := range m.Files {
		key := f.OS + "/" + f.Arch + "/" + f.Kind
		if why := f.wrong(); why != "" {
			return fmt.Sprintf("file %d: %s", i+1, why)
		}
		if seen[key] {
			return fmt.Sprintf("file %d: there are two of its system, processor and kind", i+1)
		}
		seen[key] = true
	}
	return ""
}

var word = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,31}$`)

func (f File) wrong() string {
	sum, err := hex.DecodeString(f.SHA256)
	switch {
	case !word.MatchString(f.OS) || !word.MatchString(f.Arch) || !word.MatchString(f.Kind):
		return "its system, processor or kind is no word"
	case !isAddress(f.URL):
		return "its address is not one of https"
	case err != nil || len(sum) != 32 || f.SHA256 != strings.ToLower(f.SHA256):
		return "its hash is none"
	case f.Size <= 0 || f.Size > maxFileSize:
		return "its size is none"
	}
	return ""
}

// isVersion takes what VERSION has: three numbers, and no remarks on the build.
func isVersion(version string) bool {
	return len(version) <= 64 && semver.IsValid("v"+version) && semver.Canonical("v"+version) == "v"+version
}

// isAddress takes an https URL in printable ASCII, without a password in it.
func isAddress(text string) bool {
	if len(text) > maxText || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return false
	}
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Hostname() != "" && u.User == nil
}

// Sign returns the signature file of a manifest: one line, the standard base64 of an
// Ed25519 signature (RFC 8032) of the manifest's bytes. A manifest that no Sallyport would
// take is not signed.
func Sign(key ed25519.PrivateKey, manifest []byte) ([]byte, error) {
	if len(key) != ed25519.PrivateKeySize {
		return nil, invalid("the key is none that signs")
	}
	if _, err := Parse(manifest); err != nil {
		return nil, err
	}
	return []byte(base64.StdEncoding.EncodeToString(ed25519.Sign(key, manifest)) + "\n"), nil
}

// Verify compares a signature file with the bytes of a manifest; one of the keys is enough.
func Verify(keys []ed25519.PublicKey, manifest, signature []byte) error {
	line := strings.TrimSuffix(string(signature), "\n")
	sum, err := base64.StdEncoding.Strict().DecodeString(line)
	if err == nil && len(sum) == ed25519.SignatureSize && !strings.ContainsAny(line, "\r\n") {
		for _, key := range keys {
			if len(key) == ed25519.PublicKeySize && ed25519.Verify(key, manifest, sum) {
				return nil
			}
		}
	}
	return &coded.Error{Code: "updates-signature-invalid", Sentence: "what the address says about updates is not signed by the key that this Sallyport knows, so it is not believed",
		Next: nextInvalid}
}

// ParseKey reads a public key: the standard base64 of its 32 bytes.
func ParseKey(text string) (ed25519.PublicKey, error) {
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return nil, &coded.Error{Code: "updates-key-invalid", Sentence: "the key is no public key of Ed25519", Next: "give the base64 of its 32 bytes, 44 characters", Err: err}
	}
	return raw, nil
}

// FormatKey writes a public key as ParseKey reads it.
func FormatKey(key ed25519.PublicKey) string { return base64.StdEncoding.EncodeToString(key) }
