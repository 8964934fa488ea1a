package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// metaPrefix is of the keys that 2026-07-28 puts into a request's _meta.
const metaPrefix = "io.modelcontextprotocol/"

// dispatch serves one request of either generation and returns its result.
func (g *Gateway) dispatch(c *call) (json.RawMessage, error) {
	switch c.method {
	case "tools/call":
		return g.callTool(c)
	case "tools/list":
		return g.listTools(c)
	case "prompts/list":
		return g.listPrompts(c)
	case "prompts/get":
		return g.getPrompt(c)
	case "resources/list":
		return g.listResources(c)
	case "resources/templates/list":
		return g.listTemplates(c)
	case "resources/read":
		return g.readResource(c)
	case "completion/complete":
		return g.complete(c)
	}
	if c.modern {
		switch c.method {
		case "server/discover":
			return g.discover(c)
		case "subscriptions/listen":
			return g.listen(c)
		}
		return nil, noMethod(c.method)
	}
	switch c.method {
	case "ping":
		return json.RawMessage("{}"), nil
	case "initialize":
		return g.initialize(c)
	case "logging/setLevel":
		return g.setLevel(c)
	case "resources/subscribe":
		return g.subscribeResource(c)
	case "resources/unsubscribe":
		return g.unsubscribeResource(c)
	}
	return nil, noMethod(c.method)
}

func noMethod(method string) error {
	return refuse(codeMethodNotFound, "Method not found: "+method, nil)
}

func badParams(format string, args ...any) error {
	return refuse(codeInvalidParams, fmt.Sprintf(format, args...), nil)
}

// request forwards a request other than tools/call.
func (g *Gateway) request(c *call, to *Exposed, params json.RawMessage) (json.RawMessage, error) {
	return g.forward(c, to, params, g.whileSeen(c.client, to.ID, "", func(ctx context.Context, params json.RawMessage, up Upstream) (json.RawMessage, error) {
		return g.backend.Request(ctx, c.client.name, to.ID, c.method, params, up)
	}))
}

type send func(context.Context, json.RawMessage, Upstream) (json.RawMessage, error)

// forward sends a request down in the generation of its agent.
func (g *Gateway) forward(c *call, to *Exposed, params json.RawMessage, send send) (json.RawMessage, error) {
	switch {
	case !c.modern && to.Modern:
		return g.bridge(c, params, send)
	case !c.modern:
		return send(c.ctx, params, c)
	case !to.Modern:
		params = withoutModernMeta(params)
	}
	result, err := g.converse(c, func(ctx context.Context, up Upstream) (json.RawMessage, error) {
		return send(ctx, params, up)
	})
	if err != nil {
		return nil, err
	}
	return completed(c.method, result), nil
}

// withoutModernMeta takes out of _meta what a server of the older generation does
// not know.
func withoutModernMeta(params json.RawMessage) json.RawMessage {
	for walk := members(params); ; {
		f, ok := walk.next()
		if !ok {
			return params
		}
		if !f.named("_meta") {
			continue
		}
		meta := without(f.value(params), func(m field) bool {
			return strings.HasPrefix(unquote(m.key), metaPrefix)
		})
		if len(meta) == f.end-f.start {
			return params
		}
		return splice(params, f.start, f.end, meta)
	}
}

// completed adds to a result what 2026-07-28 requires and an older server did not
// send. The server's own bytes stay together behind it.
func completed(method string, result json.RawMessage) json.RawMessage {
	var kind, asks, ttl, scope bool
	for walk := members(result); ; {
		f, ok := walk.next()
		if !ok {
			break
		}
		kind = kind || f.named("resultType")
		asks = asks || f.named("inputRequests")
		ttl = ttl || f.named("ttlMs")
		scope = scope || f.named("cacheScope")
	}
	var add []string
	switch {
	case kind:
	case asks && asksInput(method):
		add = append(add, `"resultType":"input_required"`)
	default:
		add = append(add, `"resultType":"complete"`)
	}
	if method == "resources/read" && !asks {
		if !ttl {
			add = append(add, `"ttlMs":0`)
		}
		if !scope {
			add = append(add, `"cacheScope":"private"`)
		}
	}
	if len(add) == 0 {
		return result
	}
	return prepend(result, strings.Join(add, ","))
}
