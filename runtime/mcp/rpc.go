package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
)

// The JSON-RPC error codes that a connection answers with by itself.
const (
	codeInvalidRequest = -32600
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeNobodyToAsk    = -32000
)

// RPCError is an error that the other side answered with.
type RPCError struct {
	Code    int64
	Message string
	Data    json.RawMessage
	// Raw is the whole error object as it was sent; nil for one made here.
	Raw json.RawMessage
}

// Error returns the message, which is the other side's text.
func (e *RPCError) Error() string { return e.number() + ": " + e.Message }

// LogValue is what a log gets: not the other side's text, in which it may repeat a secret
// that it was given.
func (e *RPCError) LogValue() slog.Value { return slog.StringValue(e.number()) }

func (e *RPCError) number() string {
	return "the server answered with error " + strconv.FormatInt(e.Code, 10)
}

// RPCError returns the error object, byte for byte where it was received.
func (e *RPCError) RPCError() json.RawMessage {
	if e.Raw != nil {
		return e.Raw
	}
	return errorObject(e.Code, e.Message, e.Data)
}

// readRPCError copies an error object out of a frame. What does not have the
// shape of JSON-RPC is kept in Raw all the same.
func readRPCError(raw []byte) *RPCError {
	e := &RPCError{Code: codeInternal, Raw: bytes.Clone(raw)}
	var scan scanner
	scan.reset(e.Raw)
	scan.members(func(name []byte, from, to int) bool {
		value := e.Raw[from:to]
		switch string(name) {
		case "code":
			if code, err := strconv.ParseInt(string(value), 10, 64); err == nil {
				e.Code = code
			}
		case "message":
			if value[0] == '"' {
				e.Message = unquote(value[1 : len(value)-1])
			}
		case "data":
			e.Data = value
		}
		return true
	})
	return e
}

// errorOf turns what an Upstream returned into an error object for the server.
func errorOf(err error) json.RawMessage {
	var answered interface{ RPCError() json.RawMessage }
	if errors.As(err, &answered) {
		return answered.RPCError()
	}
	return errorObject(codeInternal, "the client did not answer", nil)
}

func errorObject(code int64, message string, data json.RawMessage) json.RawMessage {
	text, _ := json.Marshal(message)
	out := append(strconv.AppendInt([]byte(`{"code":`), code, 10), `,"message":`...)
	out = append(out, text...)
	if data != nil {
		out = append(append(out, `,"data":`...), data...)
	}
	return append(out, '}')
}

// appendRequest writes a request or, with an id of 0, a notification as one line.
// The bytes of params between cutFrom and cutTo are left out and the id stands in
// their place (the progress token; equal for none).
func appendRequest(id int64, method string, params []byte, cutFrom, cutTo int) []byte {
	line := make([]byte, 0, len(params)+len(method)+80)
	line = append(line, `{"jsonrpc":"2.0"`...)
	if id != 0 {
		line = strconv.AppendInt(append(line, `,"id":`...), id, 10)
	}
	line = appendQuoted(append(line, `,"method":`...), method)
	if len(params) > 0 {
		line = append(line, `,"params":`...)
		from := len(line)
		line = append(line, params[:cutFrom]...)
		if cutTo > cutFrom {
			line = strconv.AppendInt(line, id, 10)
		}
		line = append(line, params[cutTo:]...)
		oneLine(line[from:])
	}
	return append(line, '}', '\n')
}

// appendAnswer writes the answer to a request of the server's as one line; key is
// "result" or "error".
func appendAnswer(id []byte, key string, value []byte) []byte {
	line := make([]byte, 0, len(id)+len(value)+48)
	line = append(append(line, `{"jsonrpc":"2.0","id":`...), id...)
	line = append(append(append(line, `,"`...), key...), `":`...)
	from := len(line)
	line = append(line, value...)
	oneLine(line[from:])
	return append(line, '}', '\n')
}

// oneLine makes sound JSON fit in one frame: a raw line break can only be white
// space, never part of a string.
func oneLine(raw []byte) {
	for _, c := range []byte{'\n', '\r'} {
		for at := 0; ; {
			next := bytes.IndexByte(raw[at:], c)
			if next < 0 {
				break
			}
			at += next
			raw[at] = ' '
		}
	}
}

func appendQuoted(line []byte, text string) []byte {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < 0x20 || c >= 0x7F || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(text) // a string always has a JSON form
			return append(line, quoted...)
		}
	}
	return append(append(append(line, '"'), text...), '"')
}

// idNumber reads the id of an answer. Besides our own digits it takes their
// equal as a string or a float, which some servers echo; exact is false then.
func idNumber(raw []byte) (id int64, exact, ok bool) {
	text := string(raw)
	if id, err := strconv.ParseInt(text, 10, 64); err == nil {
		return id, true, true
	}
	if text[0] == '"' {
		id, err := strconv.ParseInt(text[1:len(text)-1], 10, 64)
		return id, false, err == nil
	}
	number, err := strconv.ParseFloat(text, 64)
	id = int64(number)
	return id, false, err == nil && float64(id) == number && id > 0 && id < 1<<53
}
