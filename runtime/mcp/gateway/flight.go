package gateway

import (
	"context"
	"encoding/json"

	"sallyport/runtime/plugins"
)

// flight is a request that a server is working on for a client.
type flight struct {
	connector plugins.ID
	tool      string // "" for what is no tool call
	cancel    context.CancelCauseFunc
	why       error // it was ended; under clientState.mu
}

// whileSeen makes a request end with a reason when its client loses what it is about
// (spec/permissions.md 6).
func (g *Gateway) whileSeen(client *clientState, connector plugins.ID, tool string, send send) send {
	return func(ctx context.Context, params json.RawMessage, up Upstream) (json.RawMessage, error) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		f := &flight{connector: connector, tool: tool, cancel: cancel}
		client.begin(f)
		result, err := send(ctx, params, up)
		if why := client.finish(f); why != nil {
			return nil, why
		}
		return result, err
	}
}

func (c *clientState) begin(f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flights == nil {
		c.flights = map[*flight]struct{}{}
	}
	c.flights[f] = struct{}{}
}

func (c *clientState) finish(f *flight) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.flights, f)
	return f.why
}

// ground ends the flights that keep refuses.
func (c *clientState) ground(why error, keep func(*flight) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.flights {
		if f.why == nil && !keep(f) {
			f.why = why
			f.cancel(why)
		}
	}
}

// Narrowed ends what a client has in flight and no longer sees, with why. The host
// calls it as soon as a scope has changed; requests that come later find the new one
// by themselves.
func (g *Gateway) Narrowed(client string, why error) {
	g.mu.Lock()
	state := g.clients[client]
	g.mu.Unlock()
	if state == nil {
		return
	}
	v, err := g.look(g.ctx, state)
	state.ground(why, func(f *flight) bool { return err == nil && v.serves(f.connector, f.tool) })
}

// serves reports whether the client may still use what a flight is about.
func (v *view) serves(id plugins.ID, tool string) bool {
	connector := v.connectors[id]
	if connector == nil || tool == "" {
		return v.whole(id)
	}
	for _, one := range connector.Tools {
		if one.Name == tool {
			return true
		}
	}
	return false
}

// whole reports whether a connector is the client's with its prompts and resources.
func (v *view) whole(id plugins.ID) bool { return v.shows(id) && !v.connectors[id].Partial }
