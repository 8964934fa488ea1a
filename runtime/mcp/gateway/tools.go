package gateway

import (
	"context"
	"encoding/json"
	"fmt"

	"sallyport/internal/coded"
)

// callTool is the hot path: params pass as they are but for the name, the result
// passes as it is.
func (g *Gateway) callTool(c *call) (json.RawMessage, error) {
	at, name, err := parameter(c.params, "name")
	if err != nil {
		return nil, err
	}
	v, err := g.look(c.ctx, c.client)
	if err != nil {
		return nil, err
	}
	tool := v.toolBy[name]
	if tool == nil {
		if !v.clashing("tool", name) {
			g.backend.Unknown(c.client.name)
		}
		return nil, v.missing("tool", name)
	}
	params := c.params
	if tool.original != name {
		params = splice(params, at.start, at.end, quote(tool.original))
	}
	return g.forward(c, tool.connector, params, func(ctx context.Context, params json.RawMessage, up Upstream) (json.RawMessage, error) {
		return g.backend.Call(ctx, c.client.name, tool.connector.ID, tool.original, params, up)
	})
}

func (g *Gateway) getPrompt(c *call) (json.RawMessage, error) {
	at, name, err := parameter(c.params, "name")
	if err != nil {
		return nil, err
	}
	v, err := g.look(c.ctx, c.client)
	if err != nil {
		return nil, err
	}
	prompt := v.promptBy[name]
	if prompt == nil {
		return nil, v.missing("prompt", name)
	}
	params := c.params
	if prompt.original != name {
		params = splice(params, at.start, at.end, quote(prompt.original))
	}
	return g.request(c, prompt.connector, params)
}

func (v *view) clashing(noun, name string) bool { return v.clashes[noun+" "+name] != "" }

// missing is the refusal for a name that is not shown. It is the same whether the
// name exists for somebody else or for nobody.
func (v *view) missing(noun, name string) error {
	if sentence, ok := v.clashes[noun+" "+name]; ok {
		return &coded.Error{Code: "name-clash", Sentence: sentence, Next: "rename one of them, or give this client only one of the connectors"}
	}
	return refuse(codeInvalidParams, fmt.Sprintf("Unknown %s: %s", noun, name), []byte(`{"code":"permission-denied"}`))
}

// parameter finds the one string parameter that a request is routed by. Two of
// the name, or one in other letters besides, are refused: the server might read
// another one than the gateway did.
func parameter(params []byte, name string) (field, string, error) {
	var at field
	found := 0
	for walk := members(params); ; {
		f, ok := walk.next()
		if !ok {
			break
		}
		switch {
		case f.named(name):
			at = f
			found++
		case f.resembles(name):
			found += 2
		}
	}
	if found == 0 {
		return at, "", badParams("The parameter %q is missing", name)
	}
	if found > 1 || params[at.start] != '"' {
		return at, "", badParams("The parameter %q must be there once and be a string", name)
	}
	return at, unquote(params[at.start:at.end]), nil
}

// complete routes completion/complete by what it refers to.
func (g *Gateway) complete(c *call) (json.RawMessage, error) {
	v, err := g.look(c.ctx, c.client)
	if err != nil {
		return nil, err
	}
	var ref field
	for walk := members(c.params); ; {
		f, ok := walk.next()
		if !ok {
			return nil, badParams("The parameter \"ref\" is missing")
		}
		if f.named("ref") {
			ref = f
			break
		}
	}
	inner := ref.value(c.params)
	switch text(inner, "type") {
	case "ref/prompt":
		at, name, err := parameter(inner, "name")
		if err != nil {
			return nil, err
		}
		prompt := v.promptBy[name]
		if prompt == nil {
			return nil, v.missing("prompt", name)
		}
		params := c.params
		if prompt.original != name {
			params = splice(params, ref.start+at.start, ref.start+at.end, quote(prompt.original))
		}
		return g.request(c, prompt.connector, params)
	case "ref/resource":
		_, uri, err := parameter(inner, "uri")
		if err != nil {
			return nil, err
		}
		to, err := g.route(c, v, uri)
		if err != nil {
			return nil, err
		}
		return g.request(c, to, c.params)
	}
	return nil, badParams("The reference must be a ref/prompt or a ref/resource")
}
