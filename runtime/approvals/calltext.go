package approvals

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxArguments bounds what is shown of a call's arguments, in bytes.
const maxArguments = 4 << 10

const masked = "(masked)"

// argumentsText writes what a call says for a person to read: as indented text, in
// the order and with the numbers of the sender, values under a name that tells of a
// secret masked, and what cannot be seen made visible. leftOut says that there is
// more than is shown; the answer is for all of it in any case.
func argumentsText(params json.RawMessage) (text string, leftOut bool) {
	raw := shownPart(params)
	var out bytes.Buffer
	whole := copyMasked(&out, raw)
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = Visible(lines[i])
	}
	text = strings.Join(lines, "\n")
	if len(text) > maxArguments {
		return strings.ToValidUTF8(text[:maxArguments], ""), true
	}
	return text, !whole
}

// shownPart is the value of "arguments" where that is all that is sent besides the
// tool's name and _meta, and the whole otherwise.
func shownPart(params json.RawMessage) []byte {
	decoder := jsontext.NewDecoder(bytes.NewReader(params), jsontext.AllowDuplicateNames(true))
	if token, err := decoder.ReadToken(); err != nil || token.Kind() != '{' {
		return params
	}
	part := []byte("{}")
	found := 0
	for decoder.PeekKind() != '}' {
		name, err := decoder.ReadToken()
		if err != nil {
			return params
		}
		key := name.String()
		value, err := decoder.ReadValue()
		if err != nil {
			return params
		}
		switch key {
		case "name", "_meta":
		case "arguments":
			part = bytes.Clone(value)
			found++
		default:
			return params
		}
	}
	if found > 1 {
		return params
	}
	return part
}

// copyMasked copies JSON token by token; whole is false where it stopped before the
// end, which it does once there is more than is shown.
func copyMasked(out *bytes.Buffer, raw []byte) (whole bool) {
	decoder := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	encoder := jsontext.NewEncoder(out, jsontext.AllowDuplicateNames(true), jsontext.WithIndent("  "))
	for encoder.OutputOffset() <= 2*maxArguments {
		kind, n := decoder.StackIndex(decoder.StackDepth())
		isName := kind == '{' && n%2 == 0
		token, err := decoder.ReadToken()
		if err != nil {
			return false
		}
		secret := isName && token.Kind() == '"' && tellsOfSecret(token.String())
		if encoder.WriteToken(token) != nil {
			return false
		}
		if secret {
			if decoder.SkipValue() != nil || encoder.WriteToken(jsontext.String(masked)) != nil {
				return false
			}
		}
		if decoder.StackDepth() == 0 {
			return true
		}
	}
	return false
}

// tellsOfSecret reports whether the value under a name is better not shown. Where
// in doubt it is masked: the answer does not depend on it.
func tellsOfSecret(name string) bool {
	name = strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(name))
	for _, word := range []string{
		"password", "passwd", "passphrase", "pwd", "secret", "token", "apikey", "accesskey", "privatekey",
		"authorization", "credential", "cookie", "bearer",
	} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}
