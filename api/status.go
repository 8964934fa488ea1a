package api

import (
	"net/http"
	"time"

	"sallyport/runtime/approvals"
	"sallyport/runtime/health"
)

// Status is the whole at a glance.
type Status struct {
	Version    string           `json:"version"`
	Commit     string           `json:"commit,omitempty"` // what Version was built from
	Date       string           `json:"date,omitempty"`   // of the commit, RFC 3339
	Instance   string           `json:"instance"`
	StartedAt  time.Time        `json:"startedAt"`
	OK         bool             `json:"ok"`
	Problems   []health.Problem `json:"problems"`
	Connectors map[string]int   `json:"connectors"` // how many in each state
	Running    int              `json:"running"`
	Waiting    int              `json:"waiting"` // open decisions
	Clients    int              `json:"clients"`
}

var statusRoutes = []Route{{
	Method: http.MethodGet, Path: "/v1/status", Access: Watcher,
	Summary: "The whole at a glance: problems, connectors by state, what waits for an answer.",
	Answer:  Status{}, Serve: (*Server).status,
}}

func (s *Server) status(_ Caller, r *http.Request) (any, error) {
	answer := Status{Version: s.host.Version, Commit: s.host.Commit, Date: s.host.Date, Instance: s.host.Instance, StartedAt: s.host.StartedAt,
		OK: len(s.host.Health.Failing()) == 0, Problems: s.host.Health.Problems(), Connectors: map[string]int{}}
	if s.host.Fault() != nil {
		return answer, nil
	}
	for _, status := range s.host.Gate.Statuses(r.Context()) {
		answer.Connectors[string(status.State)]++
		if status.State == approvals.Pending || status.State == approvals.ToolsRequired {
			answer.Waiting++
		}
	}
	answer.Running = len(s.host.Pool.Running())
	answer.Clients = len(s.host.Gate.Clients())
	return answer, nil
}
