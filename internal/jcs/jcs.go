// Package jcs gives one JSON value one spelling: the JSON Canonicalization
// Scheme of RFC 8785.
//
// The one idea: what is hashed, sealed or pinned is the canonical form, so key
// order and white space never count and everything else does. What has no single
// reading (a repeated key, broken UTF-8, a lone surrogate, a second value behind
// the first, a number beyond the range of a double) is refused, not repaired.
//
// It knows no domain words and keeps no state. Every package may import it.
package jcs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrRange is in the chain of errors about a number that no double can hold.
var ErrRange = errors.New("number is beyond the range of a double")

// ErrInexact is in the chain of errors about a number whose value changes when
// it is read as a double.
var ErrInexact = errors.New("number changes when it is read as a double")

// Canonical returns the RFC 8785 form of the one JSON value in raw; raw is not
// changed. It refuses what has no single reading, see the package comment. A
// number that a double holds only nearly is rounded, as the RFC says: ask Exact
// first where that must not happen.
func Canonical(raw []byte) ([]byte, error) {
	if err := eachNumber(raw, inRange); err != nil {
		return nil, fmt.Errorf("cannot canonicalize JSON: %w", err)
	}
	value := jsontext.Value(bytes.Clone(raw))
	if err := value.Canonicalize(); err != nil {
		return nil, fmt.Errorf("cannot canonicalize JSON: %w", err)
	}
	return value, nil
}

// Marshal returns the canonical form of v as encoding/json sees it. A string
// that is not UTF-8 is refused: encoding/json would write U+FFFD for each bad
// byte, and different strings would look the same.
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("cannot encode JSON: %w", err)
	}
	if hasReplacement(buf.Bytes()) {
		return nil, errors.New("cannot encode JSON: a string is not valid UTF-8")
	}
	return Canonical(buf.Bytes())
}

// Sum returns prefix followed by the lower-case hex SHA-256 of v's canonical
// form.
func Sum(prefix string, v any) (string, error) {
	canonical, err := Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return prefix + hex.EncodeToString(sum[:]), nil
}

// hasReplacement reports whether encoding/json replaced a bad byte. It spells a
// replacement as the escape \ufffd and a genuine U+FFFD as itself, so the escape
// tells. A json.RawMessage that holds this very escape is refused too; give such
// text to Canonical first.
func hasReplacement(encoded []byte) bool {
	for i := 0; i < len(encoded); i++ {
		if encoded[i] != '\\' {
			continue
		}
		if bytes.HasPrefix(encoded[i+1:], []byte("ufffd")) {
			return true
		}
		i++ // the escaped character is not the start of an escape
	}
	return false
}

// eachNumber reads raw as one whole JSON value and hands check the text of every
// number in it.
func eachNumber(raw []byte, check func(text string) error) error {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	if dec.PeekKind() == jsontext.KindInvalid {
		_, err := dec.ReadToken()
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	for {
		token, err := dec.ReadToken()
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if token.Kind() == jsontext.KindNumber {
			if err := check(token.String()); err != nil {
				return fmt.Errorf("at %q: %w", string(dec.StackPointer()), err)
			}
		}
		if dec.StackDepth() == 0 {
			break
		}
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return errors.New("data after the JSON value")
	}
	return nil
}
