package mcp

import "sallyport/runtime/plugins"

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
