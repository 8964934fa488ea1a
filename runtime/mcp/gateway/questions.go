package gateway

import (
	"context"
	"encoding/json"
	"strconv"
)

// answer is an agent's to a question.
type answer struct {
	result json.RawMessage
	err    error
}

// ask puts a question to the agent on a stream and waits for the answer.
func (s *session) ask(ctx context.Context, out sink, gone <-chan struct{}, method string, params json.RawMessage) (json.RawMessage, error) {
	reply := make(chan answer, 1)
	s.mu.Lock()
	s.lastAsk++
	id := strconv.FormatInt(s.lastAsk, 10)
	s.asks[id] = reply
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.asks, id)
		s.mu.Unlock()
	}()
	message := append([]byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`"`), paramsMember(params)...)
	if !out.post(append(message, '}')) {
		return nil, errGone
	}
	select {
	case got := <-reply:
		return got.result, got.err
	case <-gone:
		return nil, errGone
	case <-ctx.Done():
		out.post(notification("notifications/cancelled", []byte(`{"requestId":`+id+`}`)))
		return nil, context.Cause(ctx)
	case <-s.ctx.Done():
		return nil, errGone
	}
}

func paramsMember(params []byte) []byte {
	if len(params) == 0 {
		return nil
	}
	return append([]byte(`,"params":`), params...)
}

// answered passes an agent's answer to whoever asked. One that nobody waits for,
// or a second one, is dropped.
func (s *session) answered(id []byte, got answer) {
	s.mu.Lock()
	reply := s.asks[string(id)]
	delete(s.asks, string(id))
	s.mu.Unlock()
	if reply != nil {
		reply <- got
	}
}
