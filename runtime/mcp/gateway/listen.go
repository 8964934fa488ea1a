package gateway

import (
	"context"
	"encoding/json"
	"strings"

	"sallyport/runtime/plugins"
)

// listener is an open subscriptions/listen request (2026-07-28).
type listener struct {
	client  *clientState
	id      []byte // of the request: every notification carries it
	out     sink
	end     context.CancelCauseFunc
	alone   bool // over HTTP: not in a stream
	kinds   [len(listMethods)]bool
	watches map[string]plugins.ID
}

func (l *listener) tell(method string, params json.RawMessage) {
	l.out.post(notification(method, tagged(params, l.id)))
}

// tagged puts the subscription's id into a notification's _meta.
func tagged(params, id []byte) []byte {
	tag := `"` + metaPrefix + `subscriptionId":` + string(id)
	for walk := members(params); ; {
		f, ok := walk.next()
		if !ok {
			break
		}
		if f.named("_meta") {
			meta := without(f.value(params), func(m field) bool { return m.named(metaPrefix + "subscriptionId") })
			return splice(params, f.start, f.end, prepend(meta, tag))
		}
	}
	if len(params) == 0 {
		params = []byte("{}")
	}
	return prepend(params, `"_meta":{`+tag+`}`)
}

// listen serves subscriptions/listen until the request is over.
func (g *Gateway) listen(c *call) (json.RawMessage, error) {
	wanted, ok := lookup(c.params, "notifications")
	if !ok || wanted[0] != '{' {
		return nil, badParams("The parameter \"notifications\" is missing")
	}
	v, err := g.look(c.ctx, c.client)
	if err != nil {
		return nil, err
	}
	l := &listener{client: c.client, id: c.id, out: c.out, end: c.cancel, alone: c.session == nil, watches: map[string]plugins.ID{}}
	agreed := "{"
	for kind, name := range [...]string{"toolsListChanged", "promptsListChanged", "resourcesListChanged"} {
		if value, _ := lookup(wanted, name); string(value) == "true" {
			l.kinds[kind] = true
			agreed += `"` + name + `":true,`
		}
	}
	uris, _ := lookup(wanted, "resourceSubscriptions")
	var honoured []string
	for _, raw := range elements(uris) {
		if uri := unquote(raw); g.watchFor(c, v, l, uri) {
			honoured = append(honoured, string(quote(uri)))
		}
	}
	if len(honoured) > 0 {
		agreed += `"resourceSubscriptions":[` + strings.Join(honoured, ",") + `],`
	}
	agreed = trimComma(agreed) + "}"
	l.tell("notifications/subscriptions/acknowledged", []byte(`{"notifications":`+agreed+`}`))

	g.mu.Lock()
	g.listeners[l] = struct{}{}
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		delete(g.listeners, l)
		g.mu.Unlock()
		for uri, id := range l.watches {
			g.unwatch(c.client.name, watch{id, uri})
		}
	}()
	if agreed != "{}" {
		<-c.ctx.Done()
	}
	return json.RawMessage(`{"resultType":"complete","_meta":{"` + metaPrefix + `subscriptionId":` + string(c.id) + `}}`), nil
}

// watchFor subscribes to one resource for a listener, which is not registered yet.
func (g *Gateway) watchFor(c *call, v *view, l *listener, uri string) bool {
	if _, twice := l.watches[uri]; twice || uri == "" || !mayWatch(l.watches, uri) {
		return false
	}
	to, err := g.route(c, v, uri)
	if err != nil {
		return false
	}
	params := append(append(json.RawMessage(`{"uri":`), quote(uri)...), '}')
	if _, err := g.backend.Request(c.ctx, c.client.name, to.ID, "resources/subscribe", params, nil); err != nil {
		g.log.Info("cannot subscribe", "connector", to.ID.String(), "error", err)
		return false
	}
	l.watches[uri] = to.ID
	g.mu.Lock()
	g.watched[watch{to.ID, uri}]++
	g.mu.Unlock()
	return true
}

func trimComma(s string) string {
	if s[len(s)-1] == ',' {
		return s[:len(s)-1]
	}
	return s
}
