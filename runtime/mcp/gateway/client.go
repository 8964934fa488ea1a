package gateway

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/runtime/plugins"
)

// clientState is what the gateway keeps of one client across its sessions.
type clientState struct {
	name     string
	view     atomic.Pointer[view]
	told     atomic.Pointer[view] // what its open ends were last told of
	seen     atomic.Int64         // unix nanoseconds of the last request
	inFlight atomic.Int64         // requests without a session
	waiting  int                  // parked works, under Gateway.mu

	mu     sync.Mutex
	owners map[string][]plugins.ID // resource URI → who lists it, learned with learnedAt
	known  map[plugins.ID]bool     // whose resources are in owners whole
	at     uint64                  // the revision that owners belongs to

	flights map[*flight]struct{}
}

// maxOwners bounds the URIs remembered for one client.
const maxOwners = 50_000

func (g *Gateway) state(client string) *clientState {
	g.mu.Lock()
	defer g.mu.Unlock()
	state := g.clients[client]
	if state == nil {
		state = &clientState{name: client}
		g.clients[client] = state
	}
	state.touch()
	return state
}

func (c *clientState) touch() { c.seen.Store(time.Now().UnixNano()) }

// Use is what a client is doing.
type Use struct {
	Open int       // sessions, streams and listeners
	Seen time.Time // the last request since the gateway started or forgot it; zero is none
}

// Use returns what a client is doing now.
func (g *Gateway) Use(client string) Use {
	g.mu.Lock()
	defer g.mu.Unlock()
	state := g.clients[client]
	if state == nil {
		return Use{}
	}
	u := Use{Seen: time.Unix(0, state.seen.Load()).UTC()}
	for _, s := range g.sessions {
		if s.client == state {
			u.Open++
		}
	}
	for s := range g.streams {
		if s.client == state {
			u.Open++
		}
	}
	for l := range g.listeners {
		if l.client == state && l.alone {
			u.Open++
		}
	}
	return u
}

// Forget ends what a client has open and in flight. It is for one that was removed,
// or got another token: the old one opens nothing any more, and what it opened before
// must not go on, or come back to life with another client of the name.
func (g *Gateway) Forget(client, reason string) {
	g.mu.Lock()
	state := g.clients[client]
	delete(g.clients, client)
	var open []*session
	for _, s := range g.sessions {
		if s.client == state {
			open = append(open, s)
		}
	}
	for s := range g.streams {
		if s.client == state {
			open = append(open, s)
		}
	}
	for l := range g.listeners {
		if l.client == state {
			l.end(errors.New(reason))
		}
	}
	var parked []string
	for id, w := range g.parked {
		if w.state == state {
			parked = append(parked, id)
		}
	}
	g.mu.Unlock()
	if state == nil {
		return
	}
	state.ground(ended(reason), func(*flight) bool { return false })
	for _, s := range open {
		g.end(s, reason)
	}
	for _, id := range parked {
		if w := g.unpark(id, state); w != nil {
			w.expiry.Stop()
			w.stop(errors.New(reason))
		}
	}
}

// look returns the client's view as it is now.
func (g *Gateway) look(ctx context.Context, state *clientState) (*view, error) {
	catalog, err := g.backend.Catalog(ctx, state.name)
	if err != nil {
		return nil, err
	}
	if v := state.view.Load(); v != nil && v.revision == catalog.Revision {
		return v, nil
	}
	v := newView(state.name, catalog)
	state.view.Store(v)
	state.told.CompareAndSwap(nil, v)
	return v, nil
}

// learn notes who lists a resource.
func (c *clientState) learn(v *view, id plugins.ID, uris []string, whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owners == nil || c.at != v.revision || len(c.owners) > maxOwners {
		c.owners, c.known, c.at = map[string][]plugins.ID{}, map[plugins.ID]bool{}, v.revision
	}
	for _, uri := range uris {
		if !contains(c.owners[uri], id) {
			c.owners[uri] = append(c.owners[uri], id)
		}
	}
	c.known[id] = c.known[id] || whole
}

// ownersOf returns who lists a resource and whether everybody was asked.
func (c *clientState) ownersOf(v *view, uri string, asked []*Exposed) (owners []plugins.ID, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at != v.revision {
		return nil, false
	}
	all = true
	for _, connector := range asked {
		all = all && c.known[connector.ID]
	}
	return c.owners[uri], all
}

// forget makes the next look for a resource ask the servers again.
func (c *clientState) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owners, c.known = nil, nil
	c.at = 0
}

func contains(ids []plugins.ID, id plugins.ID) bool {
	for _, one := range ids {
		if one == id {
			return true
		}
	}
	return false
}
