package gateway

import (
	"bytes"
	"errors"
	"sync"

	"sallyport/runtime/mcp"
)

var parsers = sync.Pool{New: func() any { return new(mcp.Parser) }}

// parse cuts a message from an agent into its parts. The error is the answer to a
// message that is none; its id is the message's own where it has a usable one.
func parse(frame []byte) (e mcp.Envelope, id []byte, err error) {
	parser := parsers.Get().(*mcp.Parser)
	defer parsers.Put(parser)
	e, err = parser.Parse(frame)
	if err == nil {
		if e.Params != nil && e.Params[0] == 'n' { // null is nothing
			e.Params = nil
		}
		return e, e.ID, nil
	}
	var fault *mcp.ProtocolError
	if errors.As(err, &fault) && fault.Code == mcp.InvalidMessage {
		return e, usableID(frame), refuse(codeInvalidRequest, "Invalid request: "+wrongShape(frame), nil)
	}
	return e, nil, refuse(codeParse, "Parse error: the message is not JSON in UTF-8", nil)
}

// wrongShape says what is wrong in words that fit an agent.
func wrongShape(frame []byte) string {
	if at := skipSpace(frame, 0); at < len(frame) && frame[at] == '[' {
		return "batches are not supported"
	}
	return "not a JSON-RPC 2.0 message"
}

// usableID returns the id of a message that is JSON but not JSON-RPC.
func usableID(frame []byte) []byte {
	id, ok := lookup(frame, "id")
	if ok && len(id) <= 1024 && (id[0] == '"' || id[0] == '-' || '0' <= id[0] && id[0] <= '9') {
		return id
	}
	return nil
}

// oneLine makes the message fit for a line and for an event stream. Raw line
// breaks in valid JSON are white space, so nothing changes but those.
func oneLine(message []byte) {
	if bytes.IndexByte(message, '\n') < 0 && bytes.IndexByte(message, '\r') < 0 {
		return
	}
	for i, b := range message {
		if b == '\n' || b == '\r' {
			message[i] = ' '
		}
	}
}

// modernMeta reports whether a message says in its own _meta that it is of a
// version without sessions, and which.
func modernMeta(params []byte) (version string, there bool) {
	meta, ok := lookup(params, "_meta")
	if !ok {
		return "", false
	}
	raw, there := lookup(meta, metaPrefix+"protocolVersion")
	return unquote(raw), there
}

// readModern takes from a request's _meta what 2026-07-28 puts there, and returns
// what is wrong with it.
func (c *call) readModern(version string) error {
	meta, _ := lookup(c.params, "_meta")
	var stated, caps, logLevel []byte
	for walk := members(meta); ; {
		f, ok := walk.next()
		if !ok {
			break
		}
		switch {
		case f.named(metaPrefix + "protocolVersion"):
			stated = f.value(meta)
		case f.named(metaPrefix + "clientCapabilities"):
			caps = f.value(meta)
		case f.named(metaPrefix + "logLevel"):
			logLevel = f.value(meta)
		case f.named(metaPrefix + "clientInfo"):
			if info := f.value(meta); info[0] != '{' {
				return badParams("Invalid _meta field %q", metaPrefix+"clientInfo")
			}
		}
	}
	switch {
	case unquote(stated) == "":
		return badParams("Missing or invalid _meta field %q", metaPrefix+"protocolVersion")
	case version != "" && unquote(stated) != version:
		return refuse(codeHeaderMismatch, "Header mismatch: MCP-Protocol-Version does not match the version in the body", nil)
	case unquote(stated) != modernVersion:
		return unsupportedVersion(unquote(stated))
	case len(caps) == 0 || caps[0] != '{':
		return badParams("Missing or invalid _meta field %q", metaPrefix+"clientCapabilities")
	}
	c.caps, c.level = caps, levelOf(unquote(logLevel))
	return nil
}

func unsupportedVersion(requested string) error {
	return refuse(codeUnsupportedVersion, "Unsupported protocol version",
		[]byte(`{"supported":`+supportedVersions()+`,"requested":`+string(quote(requested))+`}`))
}
