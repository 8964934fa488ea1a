package clients

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// encoding is how the text of a file is written as bytes, so that an edited text
// is written in the same way.
type encoding struct {
	order binary.ByteOrder // nil is UTF-8
	mark  bool             // a byte order mark stands in front
}

var errEncoding = errors.New("it is neither UTF-8 nor UTF-16")

// decode reads the text of a file. Only what comes back byte for byte is taken for
// UTF-16, so that no edit changes what it did not mean to.
func decode(raw []byte) (string, encoding, error) {
	e := encodingOf(raw)
	body := raw[len(e.bom()):]
	if e.order == nil {
		if !utf8.Valid(body) {
			return "", e, errEncoding
		}
		return string(body), e, nil
	}
	if len(body)%2 != 0 {
		return "", e, errEncoding
	}
	units := make([]uint16, len(body)/2)
	for i := range units {
		units[i] = e.order.Uint16(body[2*i:])
	}
	text := string(utf16.Decode(units))
	if !bytes.Equal(e.encode(text), raw) {
		return "", e, errEncoding // a lone surrogate
	}
	return text, e, nil
}

// encodingOf goes by the mark, and for UTF-16 without one by the zero beside the
// first character, which is ASCII in every format that is read here.
func encodingOf(raw []byte) encoding {
	switch {
	case bytes.HasPrefix(raw, []byte{0xef, 0xbb, 0xbf}):
		return encoding{mark: true}
	case bytes.HasPrefix(raw, []byte{0xff, 0xfe}):
		return encoding{binary.LittleEndian, true}
	case bytes.HasPrefix(raw, []byte{0xfe, 0xff}):
		return encoding{binary.BigEndian, true}
	case len(raw) >= 2 && raw[0] != 0 && raw[1] == 0:
		return encoding{order: binary.LittleEndian}
	case len(raw) >= 2 && raw[0] == 0 && raw[1] != 0:
		return encoding{order: binary.BigEndian}
	}
	return encoding{}
}

func (e encoding) bom() []byte {
	switch {
	case !e.mark:
		return nil
	case e.order == nil:
		return []byte{0xef, 0xbb, 0xbf}
	}
	mark := make([]byte, 2)
	e.order.PutUint16(mark, 0xfeff)
	return mark
}

func (e encoding) encode(text string) []byte {
	out := bytes.Clone(e.bom())
	if e.order == nil {
		return append(out, text...)
	}
	for _, unit := range utf16.Encode([]rune(text)) {
		var two [2]byte
		e.order.PutUint16(two[:], unit)
		out = append(out, two[:]...)
	}
	return out
}

// lineEnd is the line end that a text has most of.
func lineEnd(text string) string {
	if crlf := strings.Count(text, "\r\n"); crlf*2 > strings.Count(text, "\n") {
		return "\r\n"
	}
	return "\n"
}

// placeOf returns the line and column of a byte offset, in characters from 1.
func placeOf(text string, offset int) Place {
	offset = min(max(offset, 0), len(text))
	before := text[:offset]
	start := strings.LastIndexByte(before, '\n') + 1
	return Place{Line: strings.Count(before, "\n") + 1, Column: utf8.RuneCountInString(before[start:]) + 1}
}
