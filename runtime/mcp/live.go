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

// Tail returns the end of the server's stderr: untrusted text, with known secret
// values masked. Nil for one that was dialled.
func (s *Session) Tail() []string {
	if pipes, ok := s.conn.wire.(*pipes); ok {
		return pipes.child.Tail()
	}
	return nil
}
