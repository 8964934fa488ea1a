package gateway

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"sallyport/runtime/plugins"
)

// levelTime bounds how long an agent waits for servers to take a logging level,
// and the gateway for each.
const levelTime = 2 * time.Second

// defaultLevel is what a session is shown that asked for nothing else.
const defaultLevel = "info"

// setLevel notes what one session wants to be shown. The servers are shared: each
// logs at the level of the most curious session that can see it, and the gateway
// leaves out for every other what it did not ask for.
func (g *Gateway) setLevel(c *call) (json.RawMessage, error) {
	wanted := levelOf(text(c.params, "level"))
	if wanted == 0 {
		return nil, badParams("Unknown logging level")
	}
	v, err := g.look(c.ctx, c.client)
	if err != nil {
		return nil, err
	}
	c.session.asked.Store(int32(wanted))
	late := time.NewTimer(levelTime)
	defer late.Stop()
	for _, settled := range g.relevel(v) {
		select {
		case <-settled:
		case <-late.C:
			return json.RawMessage("{}"), nil
		case <-c.ctx.Done():
			return nil, context.Cause(c.ctx)
		}
	}
	return json.RawMessage("{}"), nil
}

// leveling is how one server comes to its level: by one request at a time, so that
// the one sent last is the one that holds.
type leveling struct {
	sent    level         // what the server took last; 0 is none
	again   bool          // something changed while a request was under way
	settled chan struct{} // closed when no request is under way; nil meanwhile
}

// relevel brings the servers that a view shows to their levels. Each channel is
// closed when one of them is there, or would not have it.
func (g *Gateway) relevel(v *view) (settled []<-chan struct{}) {
	for _, connector := range v.order {
		if connector.has("logging") {
			settled = append(settled, g.relevelOne(connector.ID))
		}
	}
	return settled
}

// relevelAll is relevel for every server that was ever told a level.
func (g *Gateway) relevelAll() {
	g.mu.Lock()
	ids := slices.Collect(maps.Keys(g.levels))
	g.mu.Unlock()
	for _, id := range ids {
		g.relevelOne(id)
	}
}

func (g *Gateway) relevelOne(id plugins.ID) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.levels[id]
	if l == nil {
		l = &leveling{}
		g.levels[id] = l
	}
	if l.settled != nil {
		l.again = true
		return l.settled
	}
	settled := make(chan struct{})
	if g.ctx.Err() != nil {
		close(settled)
		return settled
	}
	l.settled = settled
	g.running.Go(func() { g.sendLevels(id, l) })
	return settled
}

// sendLevels tells a server its level until that is the one that is wanted.
func (g *Gateway) sendLevels(id plugins.ID, l *leveling) {
	for {
		g.mu.Lock()
		wanted, client := g.effective(id, l.sent)
		l.again = false
		g.mu.Unlock()
		err := g.sendLevel(id, client, wanted, l.sent)
		g.mu.Lock()
		if err == nil && wanted != 0 {
			l.sent = wanted
		}
		if !l.again || g.ctx.Err() != nil {
			close(l.settled)
			l.settled = nil
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
	}
}

func (g *Gateway) sendLevel(id plugins.ID, client string, wanted, sent level) error {
	if wanted == 0 || wanted == sent {
		return nil
	}
	ctx, cancel := context.WithTimeout(g.ctx, levelTime)
	defer cancel()
	params := json.RawMessage(`{"level":"` + levels[wanted] + `"}`)
	_, err := g.backend.Request(ctx, client, id, "logging/setLevel", params, nil)
	if err != nil {
		g.log.Debug("cannot set the logging level", "connector", id.String(), "error", err)
	}
	return err
}

// effective is the most verbose level that a live session asked for of those that
// can see the connector, and in whose name it is sent. Once the last of them is
// gone it is the default again. 0 is nothing to say. It needs the mutex.
func (g *Gateway) effective(id plugins.ID, sent level) (wanted level, client string) {
	onlooker := ""
	see := func(s *session) {
		if !s.client.view.Load().shows(id) {
			return
		}
		onlooker = s.client.name
		if asked := level(s.asked.Load()); asked != 0 && (wanted == 0 || asked < wanted) {
			wanted, client = asked, s.client.name
		}
	}
	for _, s := range g.sessions {
		see(s)
	}
	for s := range g.streams {
		see(s)
	}
	if wanted == 0 && sent != 0 && onlooker != "" {
		return levelOf(defaultLevel), onlooker
	}
	return wanted, client
}

// shown is the level of the messages that a session gets.
func (s *session) shown() level {
	if asked := level(s.asked.Load()); asked != 0 {
		return asked
	}
	return levelOf(defaultLevel)
}

// level is a logging severity (RFC 5424), 0 where nothing is wanted.
type level int32

var levels = [...]string{"", "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

func levelOf(name string) level {
	for i, one := range levels {
		if one == name {
			return level(i)
		}
	}
	return 0
}

// admits reports whether a log message is at the level or above. One of an
// unknown severity is.
func (l level) admits(params []byte) bool {
	if l == 0 {
		return false
	}
	at := levelOf(text(params, "level"))
	return at == 0 || at >= l
}
