package gateway

import (
	"bytes"
	"slices"
	"time"

	"sallyport/runtime/plugins"
)

// sweepEvery is how often idle sessions are looked for.
const sweepEvery = time.Minute

// listMethods are the notifications for changed lists, by kind.
var listMethods = [...]string{
	ToolsChanged:     "notifications/tools/list_changed",
	PromptsChanged:   "notifications/prompts/list_changed",
	ResourcesChanged: "notifications/resources/list_changed",
}

// take is what the backend calls. An event that finds the queue full is dropped:
// agents ask again before they use anything.
func (g *Gateway) take(e Event) {
	select {
	case g.events <- e:
	default:
		g.log.Warn("event dropped", "kind", int(e.Kind), "connector", e.Connector.String())
	}
}

// change is a list change that waits to be told.
type change struct {
	kind      EventKind
	connector plugins.ID
}

// pump tells agents what happened. Changes of one list that come close together
// are told once.
func (g *Gateway) pump() {
	defer g.running.Done()
	pending := map[change]bool{}
	settle := time.NewTimer(0)
	<-settle.C
	sweep := time.NewTicker(min(sweepEvery, g.limits.Idle))
	defer sweep.Stop()
	defer settle.Stop()
	for {
		select {
		case <-g.ctx.Done():
			return
		case now := <-sweep.C:
			g.sweep(now)
		case e := <-g.events:
			switch e.Kind {
			case ResourceUpdated:
				g.tellUpdated(e)
			default:
				if len(pending) == 0 {
					settle.Reset(g.limits.ChangeTime)
				}
				pending[change{e.Kind, e.Connector}] = true
			}
		case <-settle.C:
			g.tellChanges(pending)
			clear(pending)
		}
	}
}

// audience is one client's open ends.
type audience struct {
	sessions  []*session
	listeners []*listener
}

func (g *Gateway) audiences() map[*clientState]*audience {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := map[*clientState]*audience{}
	of := func(c *clientState) *audience {
		if all[c] == nil {
			all[c] = &audience{}
		}
		return all[c]
	}
	for _, s := range g.sessions {
		of(s.client).sessions = append(of(s.client).sessions, s)
	}
	for s := range g.streams {
		of(s.client).sessions = append(of(s.client).sessions, s)
	}
	for l := range g.listeners {
		of(l.client).listeners = append(of(l.client).listeners, l)
	}
	return all
}

// tellChanges tells each client about changed lists that are its own: of a
// connector in its view, or, when access changed, of lists that differ from what
// they were told of last. A client never hears about anything else.
func (g *Gateway) tellChanges(pending map[change]bool) {
	for client, audience := range g.audiences() {
		after, err := g.look(g.ctx, client)
		if err != nil {
			continue
		}
		var kinds [len(listMethods)]bool
		before := client.told.Swap(after)
		differences(before, after, &kinds)
		for one := range pending {
			if one.kind != AccessChanged && (after.hears(one) || before.hears(one)) {
				kinds[one.kind] = true
			}
		}
		if kinds[ResourcesChanged] {
			client.forget()
		}
		for kind, changed := range kinds {
			if changed {
				audience.tellList(EventKind(kind))
			}
		}
	}
	for one := range pending {
		if one.kind == AccessChanged { // who sees a server decides for whom it logs
			g.relevelAll()
			return
		}
	}
}

func (v *view) shows(id plugins.ID) bool { return v != nil && v.connectors[id] != nil }

// hears reports whether a changed list is one of the client's own.
func (v *view) hears(c change) bool {
	return v.shows(c.connector) && (c.kind == ToolsChanged || v.whole(c.connector))
}

func differences(before, after *view, kinds *[len(listMethods)]bool) {
	if before == nil || before == after {
		return
	}
	same := func(a, b listed) bool { return a.exposed == b.exposed && bytes.Equal(a.definition, b.definition) }
	if !slices.EqualFunc(before.tools, after.tools, same) {
		kinds[ToolsChanged] = true
	}
	if !slices.EqualFunc(before.prompts, after.prompts, same) {
		kinds[PromptsChanged] = true
	}
	sameID := func(a, b *Exposed) bool { return a.ID == b.ID }
	if !slices.EqualFunc(before.templates, after.templates, same) ||
		!slices.EqualFunc(before.offering(), after.offering(), sameID) {
		kinds[ResourcesChanged] = true
	}
}

func (a *audience) tellList(kind EventKind) {
	for _, s := range a.sessions {
		if s.initialized() {
			s.tell(notification(listMethods[kind], nil))
		}
	}
	for _, l := range a.listeners {
		if l.kinds[kind] {
			l.tell(listMethods[kind], nil)
		}
	}
}

// wholeNow reports whether a client may hear of a connector's resources at this
// moment: its scope may have become narrower since it subscribed.
func (g *Gateway) wholeNow(client *clientState, id plugins.ID) bool {
	v, err := g.look(g.ctx, client)
	return err == nil && v.whole(id)
}

func (g *Gateway) tellUpdated(e Event) {
	uri := text(e.Params, "uri")
	for client, audience := range g.audiences() {
		if !g.wholeNow(client, e.Connector) {
			continue
		}
		for _, s := range audience.sessions {
			s.mu.Lock()
			id, watching := s.watches[uri]
			s.mu.Unlock()
			if watching && id == e.Connector {
				s.tell(notification("notifications/resources/updated", e.Params))
			}
		}
		for _, l := range audience.listeners {
			if id, watching := l.watches[uri]; watching && id == e.Connector {
				l.tell("notifications/resources/updated", e.Params)
			}
		}
	}
}

func (s *session) initialized() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version != ""
}
