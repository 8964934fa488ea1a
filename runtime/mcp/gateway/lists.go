package gateway

import (
	"encoding/base64"
	"encoding/json"
	"sort"
	"strconv"
	"strings"
)

func (g *Gateway) listTools(c *call) (json.RawMessage, error) {
	v, err := g.look(c.ctx, c.client)
	if err != nil {
		return nil, err
	}
	return g.page(c, "tools", v.tools)
}

func (g *Gateway) listPrompts(c *call) (json.RawMessage, error) {
	v, err := g.look(c.ctx, c.client)
	if err != nil {
		return nil, err
	}
	return g.page(c, "prompts", v.prompts)
}

func (g *Gateway) listTemplates(c *call) (json.RawMessage, error) {
	v, err := g.look(c.ctx, c.client)
	if err != nil {
		return nil, err
	}
	start := 0
	if after, ok, err := cursorOf(c.params, "resourceTemplates"); err != nil {
		return nil, err
	} else if ok {
		if start, err = strconv.Atoi(after); err != nil || start < 0 {
			return nil, badCursor()
		}
	}
	start = min(start, len(v.templates))
	end := min(start+g.limits.Page, len(v.templates))
	next := ""
	if end < len(v.templates) {
		next = cursor("resourceTemplates", strconv.Itoa(end))
	}
	return list(c.modern, "resourceTemplates", definitions(v.templates[start:end]), next), nil
}

// page returns the part of a list that follows the cursor. The cursor is the last
// name shown, so that a list that changes between pages neither repeats nor skips
// what stayed.
func (g *Gateway) page(c *call, key string, all []listed) (json.RawMessage, error) {
	after, ok, err := cursorOf(c.params, key)
	if err != nil {
		return nil, err
	}
	start := 0
	if ok {
		start = sort.Search(len(all), func(i int) bool { return all[i].exposed > after })
	}
	end := min(start+g.limits.Page, len(all))
	next := ""
	if end < len(all) {
		next = cursor(key, all[end-1].exposed)
	}
	return list(c.modern, key, definitions(all[start:end]), next), nil
}

func definitions(of []listed) []json.RawMessage {
	out := make([]json.RawMessage, len(of))
	for i := range of {
		out[i] = of[i].definition
	}
	return out
}

// list builds a list result out of definitions as they are.
func list(modern bool, key string, items []json.RawMessage, next string) json.RawMessage {
	size := 128 + len(next)
	for _, item := range items {
		size += len(item) + 1
	}
	out := make([]byte, 0, size)
	out = append(out, '{')
	if modern {
		out = append(out, `"resultType":"complete",`...)
	}
	out = append(out, '"')
	out = append(out, key...)
	out = append(out, `":[`...)
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	out = append(out, ']')
	if next != "" {
		out = append(out, `,"nextCursor":`...)
		out = append(out, quote(next)...)
	}
	if modern {
		out = append(out, ","+noCache...)
	}
	return append(out, '}')
}

// cursor hides where a list goes on. It is not a secret and not trusted.
func cursor(kind, position string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(kind + "\x00" + position))
}

func cursorOf(params []byte, kind string) (position string, ok bool, err error) {
	raw, there := lookup(params, "cursor")
	if !there || string(raw) == "null" || string(raw) == `""` {
		return "", false, nil
	}
	decoded, failed := base64.RawURLEncoding.DecodeString(unquote(raw))
	position, ok = strings.CutPrefix(string(decoded), kind+"\x00")
	if failed != nil || !ok {
		return "", false, badCursor()
	}
	return position, true, nil
}

func badCursor() error { return badParams("The cursor is not one of this list") }
