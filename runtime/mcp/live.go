package mcp

import (
	"encoding/json"
	"sort"
	"time"

	"sallyport/runtime/plugins"
)

// Info is a running session, for people.
type Info struct {
	ID         plugins.ID      `json:"id"`
	PID        int             `json:"pid,omitempty"`
	Since      time.Time       `json:"since"`
	InFlight   int             `json:"inFlight"`
	ServerInfo json.RawMessage `json:"serverInfo,omitempty"`
	Stats      Stats           `json:"stats"`
	// Stderr is the end of what the server wrote there: untrusted text.
	Stderr []string `json:"stderr,omitempty"`
}

// Running lists the sessions that can be used, by connector.
func (p *Pool) Running() []Info {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Info
	for _, slot := range p.slots {
		if s := slot.session; s != nil && s.Err() == nil {
			all = append(all, Info{s.id, s.pid, s.since, s.conn.InFlight(), s.server.Info, s.conn.Stats(), s.Tail()})
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].ID.String() < all[j].ID.String() })
	return all
}

// Live returns the session of a connector if one can be used now. It starts
// nothing.
func (p *Pool) Live(id plugins.ID) (*Session, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.slots[id]
	if s == nil || s.session == nil || s.session.Err() != nil {
		return nil, false
	}
	return s.session, true
}

// Tail returns the end of the server's stderr: untrusted text, with known secret
// values masked. Nil for one that was dialled.
func (s *Session) Tail() []string {
	if pipes, ok := s.conn.wire.(*pipes); ok {
		return pipes.child.Tail()
	}
	return nil
}

// Tail returns the end of the stderr of a connector's last session, whether it is
// over or not: untrusted text, with known secret values masked.
func (p *Pool) Tail(id plugins.ID) []string {
	p.mu.Lock()
	var last *Session
	if s := p.slots[id]; s != nil {
		last = s.session
	}
	p.mu.Unlock()
	if last == nil {
		return nil
	}
	return last.Tail()
}
