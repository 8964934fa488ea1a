package mcp

import (
	"bytes"
	"encoding/json"
)

// handle routes one message by its envelope. It never waits for anybody.
func (c *Conn) handle(e Envelope) {
	c.stats.messages.Add(1)
	switch e.Kind {
	case Response:
		c.answered(e)
	case Orphan:
		c.stats.orphans.Add(1)
	case Notification:
		c.notified(e)
	case Request:
		c.asked(e)
	}
}

func (c *Conn) answered(e Envelope) {
	id, exact, ok := idNumber(e.ID)
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending[id]
	switch {
	case !ok || p == nil && (id < 1 || id > c.lastID):
		c.stats.unknownAnswers.Add(1)
		return
	case p == nil:
		c.stats.lateAnswers.Add(1)
		return
	case !exact:
		c.stats.respelledIDs.Add(1)
	}
	delete(c.pending, id)
	c.dropAsks(p)
	if e.Error != nil {
		p.finish(nil, readRPCError(e.Error))
	} else {
		p.finish(bytes.Clone(e.Result), nil)
	}
}

// reject fails one call whose answer can no longer come.
func (c *Conn) reject(id int64, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.pending[id]; p != nil {
		delete(c.pending, id)
		c.dropAsks(p)
		p.finish(nil, cause)
	}
}

func (c *Conn) notified(e Envelope) {
	switch method := string(e.Method); method {
	case "notifications/progress":
		c.progressed(e.Params)
	case "notifications/cancelled":
		c.cancelAsk(e.Params)
	case "notifications/message", "notifications/elicitation/complete":
		c.said(method, e.Params)
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		if c.change != nil {
			c.change()
		}
		c.event(method, e.Params)
	case "notifications/resources/updated":
		c.event(method, e.Params)
	default:
		c.stats.unknownNotifications.Add(1)
	}
}

// said passes on what a server says during a call and without a link to it: to the
// one client whose call is in flight. With none or several, which of them it is
// about cannot be known, and it may tell of one client's data: nobody hears it.
func (c *Conn) said(method string, params []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, _ := c.sole()
	if p == nil {
		c.stats.droppedNotifications.Add(1)
		return
	}
	c.hold(p, method, bytes.Clone(params))
}

func (c *Conn) event(method string, params []byte) {
	if c.notify == nil || !c.events.add(method, params) {
		c.stats.droppedNotifications.Add(1)
	}
}

func (c *Conn) progressed(params []byte) {
	id, from, to, ok := tokenOf(params)
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending[id]
	if !ok || p == nil || p.up == nil || len(p.token) == 0 {
		c.stats.droppedNotifications.Add(1)
		return
	}
	c.hold(p, "notifications/progress", splice(params, from, to, p.token))
}

type note struct {
	method string
	params json.RawMessage
}

// hold queues a notification for a call's client; a client that is slower than
// the bound allows loses some, never its result. It needs the mutex.
func (c *Conn) hold(p *call, method string, params []byte) {
	if len(p.notes) >= maxNotes || p.noteBytes+len(params) > maxNoteBytes {
		c.stats.droppedNotifications.Add(1)
		return
	}
	p.notes = append(p.notes, note{method, params})
	p.noteBytes += len(params)
	p.rouse()
}

// sole returns the one call of an agent's in flight; n is how many there are. It
// needs the mutex.
func (c *Conn) sole() (p *call, n int) {
	for _, candidate := range c.pending {
		if candidate.up != nil {
			p = candidate
			n++
		}
	}
	if n != 1 {
		p = nil
	}
	return p, n
}
