package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/internal/coded"
)

// The protocol versions that are served, newest first.
const modernVersion = "2026-07-28"

var versions = [...]string{modernVersion, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

const latestLegacy = "2025-11-25"

func legacyVersion(version string) bool {
	return version != modernVersion && slices.Contains(versions[:], version)
}

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

// capabilities are the same for everybody and at any time: they tell nothing
// about what else there is, and what a client may use can change under way.
const capabilities = `{"completions":{},"logging":{},"prompts":{"listChanged":true},` +
	`"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true}}`

func (g *Gateway) serverInfo() string {
	return `{"name":"sallyport","title":"Sallyport","version":` + string(quote(g.version)) + `}`
}

func (g *Gateway) initialize(c *call) (json.RawMessage, error) {
	version := text(c.params, "protocolVersion")
	if version == "" {
		return nil, badParams("initialize needs a protocolVersion")
	}
	if !legacyVersion(version) {
		version = latestLegacy
	}
	v, err := g.look(c.ctx, c.client)
	if err != nil {
		return nil, err
	}
	caps, _ := lookup(c.params, "capabilities")
	c.session.mu.Lock()
	again := c.session.version != ""
	if !again {
		c.session.version, c.session.caps = version, slices.Clone(caps)
	}
	c.session.mu.Unlock()
	if again {
		return nil, refuse(codeInvalidRequest, "The session is initialized already", nil)
	}
	out := `{"protocolVersion":"` + version + `","capabilities":` + capabilities + `,"serverInfo":` + g.serverInfo()
	if v.text != "" {
		out += `,"instructions":` + string(quote(v.text))
	}
	return json.RawMessage(out + "}"), nil
}

func (g *Gateway) discover(c *call) (json.RawMessage, error) {
	v, err := g.look(c.ctx, c.client)
	if err != nil {
		return nil, err
	}
	out := `{"resultType":"complete","supportedVersions":` + supportedVersions() + `,"capabilities":` + capabilities
	if v.text != "" {
		out += `,"instructions":` + string(quote(v.text))
	}
	return json.RawMessage(out + `,` + noCache + `,"_meta":{"` + metaPrefix + `serverInfo":` + g.serverInfo() + `}}`), nil
}

func supportedVersions() string { return `["` + strings.Join(versions[:], `","`) + `"]` }

// noCache is what 2026-07-28 wants said about a result that may change at any
// time and is for one client.
const noCache = `"ttlMs":0,"cacheScope":"private"`

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

// missing is the refusal for a name that is not shown. It is the same whether the
// name exists for somebody else or for nobody.
func (v *view) missing(noun, name string) error {
	if sentence, ok := v.clashes[noun+" "+name]; ok {
		return &coded.Error{Code: "name-clash", Sentence: sentence, Next: "Rename one of them, or give this client only one of the connectors"}
	}
	return badParams("Unknown %s: %s", noun, name)
}

// request forwards a request other than tools/call.
func (g *Gateway) request(c *call, to *Exposed, params json.RawMessage) (json.RawMessage, error) {
	return g.forward(c, to, params, func(ctx context.Context, params json.RawMessage, up Upstream) (json.RawMessage, error) {
		return g.backend.Request(ctx, c.client.name, to.ID, c.method, params, up)
	})
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

// levelTime bounds how long an agent waits for servers to take a logging level.
const levelTime = 2 * time.Second

func (g *Gateway) setLevel(c *call) (json.RawMessage, error) {
	wanted := levelOf(text(c.params, "level"))
	if wanted == 0 {
		return nil, badParams("Unknown logging level")
	}
	c.session.level.Store(int32(wanted))
	v, err := g.look(c.ctx, c.client)
	if err != nil {
		return nil, err
	}
	// The servers are shared: they log for the most curious session, and the
	// gateway leaves out what the others did not ask for.
	params := json.RawMessage(`{"level":"` + levels[g.lowestLevel()] + `"}`)
	ctx, cancel := context.WithTimeout(c.ctx, levelTime)
	defer cancel()
	var all sync.WaitGroup
	for _, connector := range v.order {
		if !connector.has("logging") {
			continue
		}
		all.Go(func() {
			if _, err := g.backend.Request(ctx, c.client.name, connector.ID, "logging/setLevel", params, nil); err != nil {
				g.log.Debug("cannot set the logging level", "connector", connector.ID.String(), "error", err)
			}
		})
	}
	all.Wait()
	return json.RawMessage("{}"), nil
}

func (g *Gateway) lowestLevel() level {
	lowest := level(len(levels) - 1)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.sessions {
		lowest = min(lowest, level(s.level.Load()))
	}
	for s := range g.streams {
		lowest = min(lowest, level(s.level.Load()))
	}
	return max(lowest, 1)
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
