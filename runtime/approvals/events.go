package approvals

import "sallyport/runtime/plugins"

// Event tells a watcher that something changed, not what it is now.
type Event struct {
	Kind string // "connector", "decision", "tools", "clients", "settings"
	ID   plugins.ID
	Code string // why, where there is a reason code
}

// eventBuffer is how many events a slow subscriber may be behind. One that is
// further behind loses events, not the gate its time: it asks for everything
// when it sees the kind "missed".
const eventBuffer = 256

// Subscribe returns events from now on. The channel is closed by cancel and by
// Close. A subscriber that does not read misses events.
func (g *Gate) Subscribe() (events <-chan Event, cancel func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	sub := make(chan Event, eventBuffer)
	if g.closed {
		close(sub)
		return sub, func() {}
	}
	n := g.nextSub
	g.nextSub++
	g.subs[n] = sub
	return sub, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.subs[n] == sub {
			delete(g.subs, n)
			close(sub)
		}
	}
}

// tell sends an event to every subscriber. g.mu is held.
func (g *Gate) tell(e Event) {
	for _, sub := range g.subs {
		if len(sub) == eventBuffer-1 {
			e = Event{Kind: "missed"} // the last place is kept for this word
		}
		select {
		case sub <- e:
		default:
		}
	}
}
