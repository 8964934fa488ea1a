package mcp

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
)

const (
	maxEvents     = 256
	maxEventBytes = 1 << 20
)

// events is the bounded queue between the reader and whoever listens. A list
// change says only that something changed: a second one that finds the first
// still waiting adds nothing, so that none is ever lost.
type events struct {
	wake chan struct{}

	mu    sync.Mutex
	queue []note
	bytes int
}

func (q *events) add(method string, params []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if strings.HasSuffix(method, "/list_changed") {
		for _, waiting := range q.queue {
			if waiting.method == method {
				return true
			}
		}
	} else if len(q.queue) >= maxEvents || q.bytes+len(params) > maxEventBytes {
		return false
	}
	q.queue = append(q.queue, note{method, bytes.Clone(params)})
	q.bytes += len(params)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true
}

func (q *events) deliver(to func(string, json.RawMessage), dead <-chan struct{}) {
	for {
		select {
		case <-dead:
			return
		case <-q.wake:
		}
		q.mu.Lock()
		waiting := q.queue
		q.queue, q.bytes = nil, 0
		q.mu.Unlock()
		for _, n := range waiting {
			to(n.method, n.params)
		}
	}
}
