package process

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"sort"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// masked stands for a secret in a child's own words.
const masked = "[secret]"

// shortestSecret is the length below which a value is too common a word to be
// masked everywhere.
const shortestSecret = 4

// masker replaces secrets in a stream, also when they come in pieces: an end
// that may still become a secret is held back until it is decided.
type masker struct {
	forms [][]byte // longest first
	held  []byte
}

func newMasker(secrets []string) *masker {
	m := &masker{}
	seen := map[string]bool{}
	for _, secret := range secrets {
		for _, form := range formsOf(secret) {
			if len(form) >= shortestSecret && !seen[form] {
				seen[form] = true
				m.forms = append(m.forms, []byte(form))
			}
		}
	}
	sort.SliceStable(m.forms, func(i, j int) bool { return len(m.forms[i]) > len(m.forms[j]) })
	return m
}

// formsOf lists how a secret is likely to be written: as it is, line by line,
// escaped for JSON or an address, as hex, and inside base64 at each of the three
// offsets.
func formsOf(secret string) []string {
	forms := append(append([]string{secret}, jsonForms(secret)...), addressForms(secret)...)
	if len(secret) < 2*shortestSecret {
		return forms // shorter encodings would be found by chance
	}
	forms = append(forms, hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret))))
	for _, line := range strings.FieldsFunc(secret, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if len(line) >= 4*shortestSecret {
			forms = append(forms, line)
		}
	}
	return append(forms, base64Forms(secret)...)
}

// jsonForms are those of Go, which escapes for HTML, of those who do not, and of
// those who write ASCII only.
func jsonForms(secret string) []string {
	quoted, err := json.Marshal(secret)
	if err != nil {
		return nil
	}
	escaped := strings.TrimSuffix(strings.TrimPrefix(string(quoted), `"`), `"`)
	plain := strings.NewReplacer(`\\`, `\\`, `\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(escaped)
	return []string{escaped, plain, inASCII(escaped), inASCII(plain)}
}

// inASCII escapes what is not ASCII as JSON does.
func inASCII(text string) string {
	var out strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		if unit < utf8.RuneSelf {
			out.WriteByte(byte(unit))
		} else {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.String()
}

// addressForms are percent encodings, which differ in what they leave as it is:
// Go's two, JavaScript's encodeURIComponent and encodeURI, Python's quote; each with
// large and small digits.
func addressForms(secret string) []string {
	forms := []string{url.QueryEscape(secret), url.PathEscape(secret)}
	for _, kept := range []string{"-_.~", "-_.~/", "-_.!~*'()", "-_.!~*'();/?:@&=+$,#"} {
		forms = append(forms, percent(secret, kept))
	}
	for _, form := range forms {
		forms = append(forms, smallDigits(form))
	}
	return forms
}

// smallDigits writes %2F as %2f and leaves everything else.
func smallDigits(encoded string) string {
	small := []byte(encoded)
	for i := 0; i+2 < len(small); i++ {
		if small[i] == '%' {
			copy(small[i+1:i+3], bytes.ToLower(small[i+1:i+3]))
			i += 2
		}
	}
	return string(small)
}

// percent encodes all but ASCII letters, digits and what is kept.
func percent(text, kept string) string {
	var out strings.Builder
	for _, b := range []byte(text) {
		if '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || strings.IndexByte(kept, b) >= 0 {
			out.WriteByte(b)
		} else {
			fmt.Fprintf(&out, "%%%02X", b)
		}
	}
	return out.String()
}

// base64Forms returns the characters that depend on the secret alone, for each
// place at which it may stand in what was encoded.
func base64Forms(secret string) []string {
	var forms []string
	for offset := range 3 {
		text := strings.Repeat("\x00", offset) + secret
		encoded := base64.StdEncoding.EncodeToString([]byte(text))
		from, to := (offset*8+5)/6, len(text)*8/6
		form := encoded[from:to]
		forms = append(forms, form, strings.NewReplacer("+", "-", "/", "_").Replace(form))
	}
	return forms
}

// next masks what can be decided after b and keeps the rest. A whole secret is
// masked unless what begins at it, or before it, may still become a longer one.
func (m *masker) next(b []byte) []byte {
	if len(m.forms) == 0 {
		return b
	}
	data := append(m.held, b...)
	var out []byte
	for {
		open := len(data) - m.undecided(data)
		at, length := m.find(data)
		if at < 0 || open <= at {
			m.held = append([]byte(nil), data[open:]...)
			return append(out, data[:open]...)
		}
		out = append(append(out, data[:at]...), masked...)
		data = data[at+length:]
	}
}

// end masks what is left: the beginning of a secret is not shown either.
func (m *masker) end() []byte {
	held := m.held
	m.held = nil
	if len(held) >= shortestSecret {
		return []byte(masked)
	}
	return held
}

// undecided returns how many bytes at the end of data may be the beginning of a
// secret.
func (m *masker) undecided(data []byte) int {
	longest := 0
	for _, form := range m.forms {
		for n := min(len(form)-1, len(data)); n > longest; n-- {
			if bytes.HasSuffix(data, form[:n]) {
				longest = n
				break
			}
		}
	}
	return longest
}

// find returns the first secret in data, of several at one place the longest;
// at is -1 when there is none.
func (m *masker) find(data []byte) (at, length int) {
	at = -1
	for _, form := range m.forms {
		window := data
		if at >= 0 {
			window = data[:min(len(data), at+len(form)-1)]
		}
		if n := bytes.Index(window, form); n >= 0 && (at < 0 || n < at) {
			at, length = n, len(form)
		}
	}
	return at, length
}
