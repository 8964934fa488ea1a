package api

import (
	"context"
	"net/http"

	"sallyport/runtime/host"
)

// Probe is the first try of a connector that was allowed to run. It is kept for a while
// after its end.
type Probe struct {
	Decision string `json:"decision"`
	State    string `json:"state"` // running, done, failed
	Revision int    `json:"revision"`
	// Steps are "checking", "starting", "handshake", "listing" and "stopping", as far as
	// it has come; the last is under way while State is running.
	Steps []ProbeStep `json:"steps"`
	Ms    int64       `json:"ms"` // since the beginning
	// Stderr is the end of what it wrote there, secrets masked: untrusted text. LeftOut
	// says that there was more.
	Stderr  []string `json:"stderr"`
	LeftOut bool     `json:"leftOut,omitempty"`
	Error   *Error   `json:"error,omitempty"` // where it failed or was cancelled
}

// ProbeStep is one step and how long it took, or has taken so far.
type ProbeStep struct {
	Doing string `json:"doing"`
	Ms    int64  `json:"ms"`
}

func (s *Server) showProbe(_ Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	after, wait, err := revisionPoll(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	now, err := s.host.Probe(ctx, r.PathValue("id"), after)
	if err != nil {
		return nil, err
	}
	return probe(now), nil
}

func (s *Server) cancelProbe(c Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	d, err := s.host.CancelProbe(r.Context(), r.PathValue("id"), s.by(c))
	if err != nil {
		return nil, err
	}
	return s.decision(r, d), nil
}

func probe(t host.Try) Probe {
	out := Probe{Decision: t.Decision, State: "running", Revision: t.Revision, Ms: t.Ms, Stderr: present(t.Stderr), LeftOut: t.LeftOut}
	for _, step := range t.Steps {
		out.Steps = append(out.Steps, ProbeStep(step))
	}
	if t.Over {
		out.State = "done"
	}
	if t.Err != nil {
		_, body := errorBody(t.Err)
		out.State, out.Error = "failed", &body
	}
	return out
}
