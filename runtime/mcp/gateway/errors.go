package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"sallyport/internal/coded"
	"sallyport/runtime/mcp"
)

// JSON-RPC error codes. Those of JSON-RPC 2.0 first; codeRefused is in the range
// that MCP leaves to implementations and apart from what SDKs use for themselves;
// the last three are MCP's own since 2026-07-28.
const (
	codeParse              = -32700
	codeInvalidRequest     = -32600
	codeMethodNotFound     = -32601
	codeInvalidParams      = -32602
	codeInternal           = -32603
	codeRefused            = -32010
	codeResourceNotFound   = -32002 // before 2026-07-28
	codeHeaderMismatch     = -32020
	codeMissingCapability  = -32021
	codeUnsupportedVersion = -32022
)

// rawError is an error that carries a whole JSON-RPC error object. The errors of
// package mcp for a server's answer are of this kind too.
type rawError interface {
	error
	RPCError() json.RawMessage
}

// refuse makes an error answer of the gateway's own. data is JSON or nil.
func refuse(code int, message string, data []byte) *mcp.RPCError {
	raw := append([]byte(`{"code":`), strconv.Itoa(code)...)
	raw = append(raw, `,"message":`...)
	raw = append(raw, quote(message)...)
	if data != nil {
		raw = append(raw, `,"data":`...)
		raw = append(raw, data...)
	}
	return &mcp.RPCError{Raw: append(raw, '}')}
}

// refuseCoded is refuse for a reason with a stable code.
func refuseCoded(code int, reason *coded.Error) *mcp.RPCError {
	message := reason.Error() + " [" + reason.Code + "]"
	if reason.Next != "" {
		message += ". " + reason.Next
	}
	data := append([]byte(`{"code":`), quote(reason.Code)...)
	if reason.Next != "" {
		data = append(data, `,"next":`...)
		data = append(data, quote(reason.Next)...)
	}
	if reason.Path != "" {
		data = append(data, `,"path":`...)
		data = append(data, quote(reason.Path)...)
	}
	return refuse(code, message, append(data, '}'))
}

// errorObject turns any error into what the agent gets: a server's own answer as
// it came, a refusal with its code, and of everything else only that it failed.
// What failed is for the log, which may name paths and an agent may not.
func (g *Gateway) errorObject(method string, err error) json.RawMessage {
	var raw rawError
	if errors.As(err, &raw) {
		return raw.RPCError()
	}
	var reason *coded.Error
	switch {
	case errors.As(err, &reason):
		return refuseCoded(codeRefused, reason).Raw
	case errors.Is(err, context.DeadlineExceeded):
		return refuseCoded(codeRefused, coded.New("call-timeout", "the server did not answer in time")).Raw
	case errors.Is(err, context.Canceled):
		return refuseCoded(codeRefused, coded.New("cancelled", "the request was cancelled")).Raw
	}
	g.log.Warn("request failed", "method", method, "error", err)
	return refuse(codeInternal, "Internal error: the request failed inside Sallyport; see its log", nil).Raw
}

// modernStatus is the HTTP status that 2026-07-28 asks for with an error.
func modernStatus(errorObject []byte) int {
	code, _ := lookup(errorObject, "code")
	switch string(code) {
	case "-32601":
		return http.StatusNotFound
	case "-32700", "-32600", "-32602", "-32020", "-32021", "-32022":
		return http.StatusBadRequest
	}
	return http.StatusOK
}

func resultOf(id, result []byte) [][]byte {
	return [][]byte{[]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"result":`), result, []byte(`}`)}
}

// failure is an error answer; a nil id is written as null.
func failure(id, errorObject []byte) [][]byte {
	if id == nil {
		id = []byte("null")
	}
	return [][]byte{[]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"error":`), errorObject, []byte(`}`)}
}
