package gateway

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"sallyport/internal/coded"
	"sallyport/runtime/plugins"
)

// maxPages bounds how many pages of servers one request is made of.
const maxPages = 64

// listResources merges the servers' own lists: what they have changes while they
// run, so no record holds it. A cursor names the connector and its cursor.
func (g *Gateway) listResources(c *call) (json.RawMessage, error) {
	v, err := g.look(c.ctx, c.client)
	if err != nil {
		return nil, err
	}
	offering := v.offering()
	at, theirs, err := resume(c.params, offering)
	if err != nil {
		return nil, err
	}
	var items []json.RawMessage
	for pages := 0; at < len(offering); pages++ {
		if len(items) >= g.limits.Page || pages == maxPages {
			return list(c.modern, "resources", items, cursor("resources", offering[at].ID.String()+"\x00"+theirs)), nil
		}
		some, next, err := g.resourcePage(c, v, offering[at], theirs)
		if err != nil && len(offering) == 1 {
			return nil, err
		}
		if err != nil { // one bad entry never hides its neighbours
			g.log.Info("cannot list resources", "connector", offering[at].ID.String(), "error", err)
		}
		items = append(items, some...)
		if theirs = next; theirs == "" {
			at++
		}
	}
	return list(c.modern, "resources", items, ""), nil
}

// offering returns the connectors that have resources, by id.
func (v *view) offering() []*Exposed {
	var out []*Exposed
	for _, connector := range v.order {
		if connector.Resources {
			out = append(out, connector)
		}
	}
	return out
}

func resume(params []byte, offering []*Exposed) (at int, theirs string, err error) {
	position, ok, err := cursorOf(params, "resources")
	if err != nil || !ok {
		return 0, "", err
	}
	id, theirs, _ := strings.Cut(position, "\x00")
	for i, connector := range offering {
		if connector.ID.String() == id {
			return i, theirs, nil
		}
	}
	return 0, "", badCursor()
}

// resourcePage asks one server for one page and notes whose the resources are.
func (g *Gateway) resourcePage(c *call, v *view, of *Exposed, theirs string) (items []json.RawMessage, next string, err error) {
	params := json.RawMessage("{}")
	if theirs != "" {
		params = append(append(json.RawMessage(`{"cursor":`), quote(theirs)...), '}')
	}
	if of.Modern {
		params = c.withMeta(params)
	}
	result, err := g.backend.Request(c.ctx, c.client.name, of.ID, "resources/list", params, nil)
	if err != nil {
		return nil, "", err
	}
	array, _ := lookup(result, "resources")
	items = elements(array)
	uris := make([]string, len(items))
	for i, item := range items {
		uris[i] = text(item, "uri")
	}
	next = text(result, "nextCursor")
	c.client.learn(v, of.ID, uris, next == "")
	return items, next, nil
}

func (g *Gateway) readResource(c *call) (json.RawMessage, error) {
	to, err := g.routeParameter(c)
	if err != nil {
		return nil, err
	}
	return g.request(c, to, c.params)
}

func (g *Gateway) routeParameter(c *call) (*Exposed, error) {
	_, uri, err := parameter(c.params, "uri")
	if err != nil {
		return nil, err
	}
	v, err := g.look(c.ctx, c.client)
	if err != nil {
		return nil, err
	}
	return g.route(c, v, uri)
}

// route finds the one connector that a URI belongs to: the only one with
// resources; else the only one that lists it; else the only one with a template
// that fits.
func (g *Gateway) route(c *call, v *view, uri string) (*Exposed, error) {
	offering := v.offering()
	if len(offering) == 1 {
		return offering[0], nil
	}
	owners, all := c.client.ownersOf(v, uri, offering)
	if !all && len(offering) > 0 {
		g.learnAll(c, v, offering)
		owners, _ = c.client.ownersOf(v, uri, offering)
	}
	if len(owners) == 0 {
		owners = v.fitting(uri)
	}
	switch len(owners) {
	case 0:
		return nil, notFound(c.modern, uri)
	case 1:
		return v.connectors[owners[0]], nil
	}
	names := make([]string, len(owners))
	for i, id := range owners {
		names[i] = id.String()
	}
	return nil, &coded.Error{
		Code:     "resource-ambiguous",
		Sentence: fmt.Sprintf("the resource is offered by more than one connector: %s", strings.Join(names, " and ")),
		Next:     "give this client only one of them",
	}
}

// learnAll asks every connector for its whole list once.
func (g *Gateway) learnAll(c *call, v *view, offering []*Exposed) {
	for _, connector := range offering {
		theirs := ""
		for range maxPages {
			_, next, err := g.resourcePage(c, v, connector, theirs)
			if err != nil {
				g.log.Info("cannot list resources", "connector", connector.ID.String(), "error", err)
			}
			if theirs = next; err != nil || theirs == "" {
				break
			}
		}
	}
}

// fitting returns the connectors with a template that the URI is an instance of.
func (v *view) fitting(uri string) []plugins.ID {
	var out []plugins.ID
	for _, template := range v.templates {
		id := template.connector.ID
		if (template.original == uri || fits(template.original, uri)) && !contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// fits reports whether a URI can come from an RFC 6570 template. Each expression
// stands for any text; a simple one for text without '/'. It only has to tell
// connectors apart: the server looks again. The template is a plugin's text, so it
// is matched in linear time.
func fits(template, uri string) bool {
	var pattern strings.Builder
	pattern.WriteString(`(?s)\A`)
	for {
		open := strings.IndexByte(template, '{')
		if open < 0 {
			break
		}
		end := strings.IndexByte(template[open:], '}')
		if end < 0 {
			return false
		}
		pattern.WriteString(regexp.QuoteMeta(template[:open]))
		expression := template[open+1 : open+end]
		if expression != "" && strings.ContainsRune("+#./;?&", rune(expression[0])) {
			pattern.WriteString(".*")
		} else {
			pattern.WriteString("[^/]*")
		}
		template = template[open+end+1:]
	}
	pattern.WriteString(regexp.QuoteMeta(template) + `\z`)
	compiled, err := regexp.Compile(pattern.String())
	return err == nil && compiled.MatchString(uri)
}

func notFound(modern bool, uri string) error {
	code := codeResourceNotFound
	if modern {
		code = codeInvalidParams
	}
	return refuse(code, "Resource not found", append(append([]byte(`{"uri":`), quote(uri)...), '}'))
}

// watch is a resource subscription at a server, shared by every session that has
// one for the same resource.
type watch struct {
	id  plugins.ID
	uri string
}

// One session, or one listener, watches no more than this: the gateway keeps every
// URI, and what an agent makes it keep is bounded.
const (
	maxWatches    = 1024
	maxWatchedURI = 8 << 10 // bytes
)

var errWatches = coded.New("too-many-subscriptions", "too many resources are subscribed to, or their addresses are too long")

func mayWatch(watches map[string]plugins.ID, uri string) bool {
	_, had := watches[uri]
	return had || len(watches) < maxWatches && len(uri) <= maxWatchedURI
}

func (g *Gateway) subscribeResource(c *call) (json.RawMessage, error) {
	to, err := g.routeParameter(c)
	if err != nil {
		return nil, err
	}
	uri := text(c.params, "uri")
	c.session.mu.Lock()
	room := mayWatch(c.session.watches, uri)
	c.session.mu.Unlock()
	if !room {
		return nil, errWatches
	}
	result, err := g.backend.Request(c.ctx, c.client.name, to.ID, c.method, c.params, c)
	if err != nil {
		return nil, err
	}
	c.session.mu.Lock()
	_, had := c.session.watches[uri]
	c.session.watches[uri] = to.ID
	c.session.mu.Unlock()
	if !had {
		g.mu.Lock()
		g.watched[watch{to.ID, uri}]++
		g.mu.Unlock()
	}
	return result, nil
}

func (g *Gateway) unsubscribeResource(c *call) (json.RawMessage, error) {
	_, uri, err := parameter(c.params, "uri")
	if err != nil {
		return nil, err
	}
	c.session.mu.Lock()
	id, had := c.session.watches[uri]
	delete(c.session.watches, uri)
	c.session.mu.Unlock()
	if had {
		g.unwatch(c.client.name, watch{id, uri})
	}
	return json.RawMessage("{}"), nil
}

// unwatch ends one session's subscription, and the server's with the last one.
func (g *Gateway) unwatch(client string, w watch) {
	g.mu.Lock()
	g.watched[w]--
	last := g.watched[w] <= 0
	if last {
		delete(g.watched, w)
	}
	g.mu.Unlock()
	if !last {
		return
	}
	g.spawn(func() {
		params := append(append(json.RawMessage(`{"uri":`), quote(w.uri)...), '}')
		if _, err := g.backend.Request(g.ctx, client, w.id, "resources/unsubscribe", params, nil); err != nil {
			g.log.Debug("cannot unsubscribe", "connector", w.id.String(), "error", err)
		}
	})
}
