package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"sallyport/internal/coded"
)

// OverBudget reports whether an error is that a connector was over its budget
// (spec/child-environment.md 8).
func OverBudget(err error) (*coded.Error, bool) {
	for over := (*coded.Error)(nil); errors.As(err, &over); err = over.Err { // it may be why it is parked
		switch over.Code {
		case "budget-memory", "budget-processes", "budget-cpu", "budget-calls", "budget-result":
			return over, true
		}
	}
	return nil, false
}

// budgeted makes a call within the connector's budget of calls and results.
func (s *Session) budgeted(ctx context.Context, method string, params json.RawMessage, up Upstream) (json.RawMessage, error) {
	defer s.inFlight.Add(-1)
	if n := s.inFlight.Add(1); n > s.budget.Calls {
		return nil, s.exceeded(&coded.Error{Code: "budget-calls", Sentence: fmt.Sprintf("%s has %d calls to answer, and gets no more meanwhile", s.id, s.budget.Calls),
			Next: "try again when one of them is over"})
	}
	result, err := s.conn.Call(ctx, method, params, s.within(up))
	if size := int64(len(result)); err == nil && size > s.budget.ResultBytes {
		return nil, s.exceeded(&coded.Error{Code: "budget-result", Sentence: fmt.Sprintf("%s answered with %d bytes and may answer with %d", s.id, size, s.budget.ResultBytes),
			Next: "ask for less at a time, or raise its budget in config.json and approve it again"})
	}
	return result, err
}

func (s *Session) exceeded(over *coded.Error) error {
	s.pool.tell(Event{Kind: Exceeded, ID: s.id, PID: s.pid, Err: over})
	return over
}
