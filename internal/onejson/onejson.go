// Package onejson reads a file of our own that is one JSON document.
//
// The one idea: what is not understood whole is not understood. A field that is
// not known, and anything but white space behind the document's end, is an error:
// a file that was written over a longer one has old bytes there (C79).
//
// It limits no size and does not refuse a name that stands twice; for what others
// wrote and what is hashed there is internal/jcs. It knows no domain words. Every
// package may import it.
package onejson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// ErrBehind is the error about what stands behind the document's end.
var ErrBehind = errors.New("something follows after the end")

// Decode reads raw, which is one document, into what into points to. After an
// error into may be filled in part. Errors name fields and types and may hold up
// to a few characters of raw.
func Decode(raw []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	// Decoder.More would pass a lone bracket.
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return ErrBehind
	}
	return nil
}
