package gateway

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// levelTime bounds how long an agent waits for servers to take a logging level.
const levelTime = 2 * time.Second

func (g *Gateway) setLevel(c *call) (json.RawMessage, error) {
	wanted := levelOf(text(c.params, "level"))
	if wanted == 0 {
		return nil, badParams("Unknown logging level")
	}
	c.session.level.Store(int32(wanted))
	v, err := g.look(c.ctx, c.client)
	if err != nil {
		return nil, err
	}
	// The servers are shared: they log for the most curious session, and the
	// gateway leaves out what the others did not ask for.
	params := json.RawMessage(`{"level":"` + levels[g.lowestLevel()] + `"}`)
	ctx, cancel := context.WithTimeout(c.ctx, levelTime)
	defer cancel()
	var all sync.WaitGroup
	for _, connector := range v.order {
		if !connector.has("logging") {
			continue
		}
		all.Go(func() {
			if _, err := g.backend.Request(ctx, c.client.name, connector.ID, "logging/setLevel", params, nil); err != nil {
				g.log.Debug("cannot set the logging level", "connector", connector.ID.String(), "error", err)
			}
		})
	}
	all.Wait()
	return json.RawMessage("{}"), nil
}

func (g *Gateway) lowestLevel() level {
	lowest := level(len(levels) - 1)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.sessions {
		lowest = min(lowest, level(s.level.Load()))
	}
	for s := range g.streams {
		lowest = min(lowest, level(s.level.Load()))
	}
	return max(lowest, 1)
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
