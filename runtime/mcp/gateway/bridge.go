package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"sallyport/internal/coded"
)

// maxRounds bounds how often a server may ask for input within one call of an
// agent that cannot be given the question to come back with.
const maxRounds = 16

var errRounds = coded.New("too-many-rounds", "the server asked for input too often during one call")

// bridge serves an agent of the older generation in front of a server of the
// newer one: the request gets what such a server needs in _meta, and a result
// that asks for input becomes questions to the agent and another try.
func (g *Gateway) bridge(c *call, params json.RawMessage, send send) (json.RawMessage, error) {
	params = c.withMeta(params)
	next := params
	for range maxRounds {
		result, err := send(c.ctx, next, c)
		if err != nil || text(result, "resultType") != "input_required" {
			return result, err
		}
		requests, _ := lookup(result, "inputRequests")
		responses, err := c.fulfil(requests)
		if err != nil {
			return nil, err
		}
		add := `"inputResponses":` + string(responses)
		if state, ok := lookup(result, "requestState"); ok {
			add += `,"requestState":` + string(state)
		}
		next = prepend(params, add)
	}
	return nil, errRounds
}

// withMeta adds to the request's _meta what a server of 2026-07-28 requires there,
// in the place of anything that the agent wrote under those keys.
func (c *call) withMeta(params json.RawMessage) json.RawMessage {
	caps := "{}"
	if len(c.caps) > 0 {
		caps = string(c.caps)
	}
	add := `"` + metaPrefix + `protocolVersion":"` + modernVersion + `","` + metaPrefix + `clientCapabilities":` + caps
	least := c.level
	if !c.modern {
		least = c.session.shown()
	}
	if least > 0 {
		add += `,"` + metaPrefix + `logLevel":"` + levels[least] + `"`
	}
	params = withoutModernMeta(params)
	for walk := members(params); ; {
		f, ok := walk.next()
		if !ok {
			break
		}
		if f.named("_meta") && params[f.start] == '{' {
			return splice(params, f.start, f.end, prepend(f.value(params), add))
		}
	}
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	return prepend(params, `"_meta":{`+add+`}`)
}

// fulfil asks the agent everything in a map of input requests, at once, and
// returns the map of answers.
func (c *call) fulfil(requests []byte) ([]byte, error) {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	parts := make([][]byte, 0, maxRounds) // never grows: its slots are written from beside
	for walk := members(requests); ; {
		f, ok := walk.next()
		if !ok {
			break
		}
		if len(parts) == maxRounds {
			failed = errRounds
			break
		}
		parts = append(parts, nil)
		slot := &parts[len(parts)-1]
		request := f.value(requests)
		all.Go(func() {
			params, _ := lookup(request, "params")
			answer, err := c.Request(ctx, text(request, "method"), params)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				if failed == nil {
					failed = err
				}
				cancel()
				return
			}
			*slot = append(append(slices.Clone(f.key), ':'), answer...)
		})
	}
	all.Wait()
	if failed != nil {
		return nil, failed
	}
	out := []byte{'{'}
	for i, part := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, part...)
	}
	return append(out, '}'), nil
}
