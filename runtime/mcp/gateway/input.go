package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"
)

// statePrefix tells the gateway's own requestState from a server's.
const statePrefix = "sallyport:"

type question struct {
	key, method string
	params      json.RawMessage
	reply       chan json.RawMessage
}

// asksInput reports whether a method may be answered with input_required.
func asksInput(method string) bool {
	return method == "tools/call" || method == "prompts/get" || method == "resources/read"
}

func inputRequired(questions []*question, state string) json.RawMessage {
	out := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, q := range questions {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, quote(q.key)...)
		out = append(out, `:{"method":"`...)
		out = append(out, q.method...)
		out = append(out, '"')
		out = append(out, paramsMember(q.params)...)
		out = append(out, '}')
	}
	out = append(out, `},"requestState":`...)
	out = append(out, quote(state)...)
	return append(out, '}')
}

// fingerprint is of what a retry must have in common with the first request: the
// method and every parameter but those that a retry adds or makes anew.
func fingerprint(method string, params []byte) [sha256.Size]byte {
	var parts [][]byte
	for walk := members(params); ; {
		f, ok := walk.next()
		if !ok {
			break
		}
		if f.named("_meta") || f.named("inputResponses") || f.named("requestState") {
			continue
		}
		var value bytes.Buffer
		value.Write(quote(unquote(f.key)))
		if json.Compact(&value, f.value(params)) != nil {
			value.Write(f.value(params))
		}
		parts = append(parts, value.Bytes())
	}
	slices.SortFunc(parts, bytes.Compare)
	sum := sha256.New()
	sum.Write([]byte(method))
	for _, part := range parts {
		sum.Write([]byte{0})
		sum.Write(part)
	}
	return [sha256.Size]byte(sum.Sum(nil))
}
