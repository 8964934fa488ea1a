package gateway

import (
	"encoding/json"
	"slices"
	"strings"
)

// The protocol versions that are served, newest first.
const modernVersion = "2026-07-28"

var versions = [...]string{modernVersion, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

const latestLegacy = "2025-11-25"

func legacyVersion(version string) bool {
	return version != modernVersion && slices.Contains(versions[:], version)
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
