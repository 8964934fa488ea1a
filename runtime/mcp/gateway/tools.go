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
	v, err := g.look(c.ctx, c.client)
	if err != nil {
		return nil, err
	}
	tool, params, err := g.pick(c, v, "tool", v.toolBy, 0, c.params)
	if err != nil {
		return nil, err
	}
	id := tool.connector.ID
	return g.forward(c, tool.connector, params, g.whileSeen(c.client, id, tool.original, func(ctx context.Context, params json.RawMessage, up Upstream) (json.RawMessage, error) {
		return g.backend.Call(ctx, c.client.name, id, tool.original, params, up)
	}))
}

func (g *Gateway) getPrompt(c *call) (json.RawMessage, error) {
	v, err := g.look(c.ctx, c.client)
	if err != nil {
		return nil, err
	}
	prompt, params, err := g.pick(c, v, "prompt", v.promptBy, 0, c.params)
	if err != nil {
		return nil, err
	}
	return g.request(c, prompt.connector, params)
}

// pick finds what an object names, which is the part of the call's params that
// begins at offset, and returns the params with the server's own name in it.
func (g *Gateway) pick(c *call, v *view, noun string, by map[string]*listed, offset int, object []byte) (*listed, json.RawMessage, error) {
	at, name, err := parameter(object, "name")
	if err != nil {
		return nil, nil, err
	}
	one := by[name]
	if one == nil {
		if noun == "tool" && !v.clashing(noun, name) {
			g.backend.Unknown(c.client.name)
		}
		return nil, nil, v.missing(noun, name)
	}
	if one.original == name {
		return one, c.params, nil
	}
	return one, splice(c.params, offset+at.start, offset+at.end, quote(one.original)), nil
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
		prompt, params, err := g.pick(c, v, "prompt", v.promptBy, ref.start, inner)
		if err != nil {
			return nil, err
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
