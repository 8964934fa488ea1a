package gateway

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// headerBinding is a tool's parameter that 2026-07-28 agents repeat in a header:
// a property with x-mcp-header, reached from the schema's root through
// "properties" alone.
type headerBinding struct {
	path   []string
	header string // the whole header name
}

const (
	maxHeaderDepth = 32
	maxSafeInteger = 1<<53 - 1
	encodedPrefix  = "=?base64?"
	encodedSuffix  = "?="
)

// headerBindings finds them in a definition. A tool without any costs one search.
func headerBindings(definition []byte) []headerBinding {
	if !bytes.Contains(definition, []byte("x-mcp-header")) {
		return nil
	}
	schema, ok := lookup(definition, "inputSchema")
	if !ok {
		return nil
	}
	return bindingsIn(schema, nil, nil)
}

func bindingsIn(schema []byte, path []string, out []headerBinding) []headerBinding {
	properties, ok := lookup(schema, "properties")
	if !ok || len(path) == maxHeaderDepth {
		return out
	}
	for walk := members(properties); ; {
		f, ok := walk.next()
		if !ok {
			return out
		}
		property := f.value(properties)
		here := append(path[:len(path):len(path)], unquote(f.key))
		if header := text(property, "x-mcp-header"); isToken(header) {
			out = append(out, headerBinding{path: here, header: "Mcp-Param-" + header})
		}
		out = bindingsIn(property, here, out)
	}
}

func isToken(s string) bool {
	for _, r := range s {
		if r > 0x7E || r <= ' ' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) {
			return false
		}
	}
	return s != ""
}

// checkHeaders compares the headers that repeat parts of a 2026-07-28 request
// with its body. It returns what is wrong, or "".
func (g *Gateway) checkHeaders(header http.Header, c *call) string {
	switch method := header.Get("Mcp-Method"); method {
	case c.method:
	case "":
		return "the header Mcp-Method is missing"
	default:
		return "the header Mcp-Method does not match the method in the body"
	}
	name := ""
	switch c.method {
	case "tools/call", "prompts/get":
		name = "name"
	case "resources/read":
		name = "uri"
	default:
		return ""
	}
	value := header.Get("Mcp-Name")
	if value == "" {
		return "the header Mcp-Name is missing"
	}
	decoded, ok := decodeHeader(value)
	if body := text(c.params, name); !ok || decoded != body && value != body {
		return "the header Mcp-Name does not match the body"
	}
	if c.method != "tools/call" {
		return ""
	}
	return g.checkParameters(header, c)
}

func (g *Gateway) checkParameters(header http.Header, c *call) string {
	v, err := g.look(c.ctx, c.client)
	if err != nil {
		return "" // the call itself says why
	}
	tool := v.toolBy[text(c.params, "name")]
	if tool == nil {
		return ""
	}
	for _, binding := range tool.headers {
		if wrong := binding.check(header, c.params); wrong != "" {
			return wrong
		}
	}
	return ""
}

func (b headerBinding) check(header http.Header, params []byte) string {
	value, present := lookup(params, "arguments")
	for _, key := range b.path {
		if present {
			value, present = lookup(value, key)
		}
	}
	sent := header.Get(b.header)
	if !present || string(value) == "null" {
		if sent != "" {
			return "the header " + b.header + " is there and its parameter is not"
		}
		return ""
	}
	if sent == "" {
		return "the header " + b.header + " is missing"
	}
	decoded, ok := decodeHeader(sent)
	if !ok || !equals(decoded, value) {
		return "the header " + b.header + " does not match its parameter"
	}
	return ""
}

// equals reports whether a header stands for a JSON value. Numbers compare as
// numbers, and only integers that a double holds exactly are allowed.
func equals(header string, value json.RawMessage) bool {
	switch value[0] {
	case '"':
		return unquote(value) == header
	case 't', 'f':
		return string(value) == header
	case '{', '[':
		return false
	}
	body, err := strconv.ParseFloat(string(value), 64)
	sent, failed := strconv.ParseFloat(header, 64)
	return err == nil && failed == nil && body == sent &&
		body == math.Trunc(body) && math.Abs(body) <= maxSafeInteger
}

// decodeHeader takes the wrapping off a value that no header can hold as it is.
func decodeHeader(value string) (string, bool) {
	inner, ok := strings.CutPrefix(value, encodedPrefix)
	if !ok {
		return value, true
	}
	if inner, ok = strings.CutSuffix(inner, encodedSuffix); !ok {
		return value, true
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(inner)
	return string(decoded), err == nil
}
