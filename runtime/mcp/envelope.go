package mcp

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// maxIDBytes and maxMethodBytes bound what a peer makes us keep and echo.
const (
	maxIDBytes     = 1024
	maxMethodBytes = 1024
)

// Kind is what a message is.
type Kind uint8

// The kinds of JSON-RPC message. An Orphan is an error response without an id,
// or with a null one: it answers nothing and is counted.
const (
	Request Kind = iota + 1
	Notification
	Response
	Orphan
)

// Envelope is one JSON-RPC 2.0 message, cut into its parts. Every field is a part
// of the frame that was parsed, byte for byte, and is valid as long as that.
type Envelope struct {
	Kind   Kind
	ID     []byte // a string with its quotes, or a number, as written
	Method []byte // decoded
	Params []byte // an object, an array or null; nil where there is none
	Result []byte // any value; nil in an error response
	Error  []byte // an object; nil in a result
}

// Parser cuts frames into envelopes (spec/stdio-framing.md 4). It is for one
// goroutine. Every frame's JSON is looked at once.
type Parser struct{ scan scanner }

// The envelope's keys. Anything else in an envelope is passed over.
var envelopeKeys = [...]string{"jsonrpc", "id", "method", "params", "result", "error"}

const (
	keyVersion = iota
	keyID
	keyMethod
	keyParams
	keyResult
	keyError
)

// Parse returns the envelope of a frame, or a *ProtocolError: invalid-utf8,
// malformed-json or invalid-message, in this order.
func (p *Parser) Parse(frame []byte) (Envelope, error) {
	if !utf8.Valid(frame) {
		return Envelope{}, fault(InvalidUTF8, "the server sent bytes that are not UTF-8", frame)
	}
	p.scan.reset(frame)
	if p.scan.peek() != '{' {
		return Envelope{}, p.notObject(frame)
	}
	var parts [len(envelopeKeys)][]byte
	wrong := ""
	ok := p.scan.members(func(name []byte, from, to int) bool {
		if wrong == "" {
			wrong = place(&parts, name, frame[from:to])
		}
		return true
	})
	if !ok || !p.scan.end() {
		return Envelope{}, malformed(frame)
	}
	var envelope Envelope
	if wrong == "" {
		envelope, wrong = assemble(&parts)
	}
	if wrong != "" {
		return Envelope{}, fault(InvalidMessage, "the server sent JSON that is not a JSON-RPC message: "+wrong, frame)
	}
	return envelope, nil
}

// notObject tells JSON of the wrong shape from what is no JSON at all.
func (p *Parser) notObject(frame []byte) error {
	if raw, ok := p.scan.value(); !ok || !p.scan.end() {
		return malformed(frame)
	} else if raw[0] == '[' {
		return fault(InvalidMessage, "the server sent a batch, which MCP does not have", frame)
	}
	return fault(InvalidMessage, "the server sent JSON that is not a JSON-RPC message: not an object", frame)
}

// place puts a member where it belongs and says what is wrong with its name.
func place(parts *[len(envelopeKeys)][]byte, name, value []byte) (wrong string) {
	for i, key := range envelopeKeys {
		if string(name) != key {
			continue
		}
		if parts[i] != nil {
			return "the key \"" + key + "\" twice"
		}
		parts[i] = value
		return ""
	}
	return oddName(name)
}

// oddName refuses names that another reader might take for an envelope key.
func oddName(name []byte) (wrong string) {
	text := unquote(name)
	if strings.IndexByte(text, 0) >= 0 {
		return "a key with a NUL character"
	}
	for _, key := range envelopeKeys {
		if strings.EqualFold(text, key) {
			return "a variant of the key \"" + key + "\""
		}
	}
	return ""
}

func assemble(parts *[len(envelopeKeys)][]byte) (e Envelope, wrong string) {
	e = Envelope{ID: parts[keyID], Params: parts[keyParams], Result: parts[keyResult], Error: parts[keyError]}
	if string(parts[keyVersion]) != `"2.0"` {
		return e, `"jsonrpc" is not "2.0"`
	}
	if wrong = checkID(e.ID, e.Error != nil && parts[keyMethod] == nil); wrong != "" {
		return e, wrong
	}
	if parts[keyMethod] != nil {
		return assembleRequest(e, parts[keyMethod])
	}
	switch {
	case e.Params != nil:
		return e, "parameters without a method"
	case (e.Result == nil) == (e.Error == nil):
		return e, "not exactly one of a method, a result and an error"
	case e.Error != nil && e.Error[0] != '{':
		return e, "an error that is not an object"
	case e.Error != nil && (e.ID == nil || e.ID[0] == 'n'):
		e.Kind, e.ID = Orphan, nil
	case e.ID == nil:
		return e, "a result without an id"
	default:
		e.Kind = Response
	}
	return e, ""
}

func assembleRequest(e Envelope, method []byte) (Envelope, string) {
	switch {
	case e.Result != nil || e.Error != nil:
		return e, "a method together with a result or an error"
	case method[0] != '"' || len(method) > maxMethodBytes:
		return e, "a method that is not a short string"
	case e.Params != nil && e.Params[0] != '{' && e.Params[0] != '[' && e.Params[0] != 'n':
		return e, "parameters that are not an object"
	}
	e.Method = method[1 : len(method)-1]
	if bytes.IndexByte(e.Method, '\\') >= 0 {
		e.Method = []byte(unquote(e.Method))
	}
	e.Kind = Request
	if e.ID == nil {
		e.Kind = Notification
	}
	return e, ""
}

func checkID(id []byte, nullAllowed bool) (wrong string) {
	switch {
	case id == nil, nullAllowed && id[0] == 'n':
		return ""
	case len(id) > maxIDBytes:
		return "an id that is too long"
	case id[0] == '"', id[0] == '-', '0' <= id[0] && id[0] <= '9':
		return ""
	}
	return "an id that is neither a string nor a number"
}

func malformed(frame []byte) error {
	return fault(MalformedJSON, "the server writes something other than MCP to stdout", frame)
}

func fault(code, sentence string, frame []byte) error {
	err := newProtocolError(code, sentence, nil)
	err.Size = int64(len(frame))
	return err
}
