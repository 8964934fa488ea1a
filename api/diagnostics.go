package api

import (
	"net/http"

	"sallyport/runtime/host"
)

// DiagnosticsSaved says where the file is.
type DiagnosticsSaved struct {
	Where string `json:"where"` // as people write it
}

var diagnosticsRoutes = []Route{{
	Method: http.MethodGet, Path: "/v1/diagnostics", Access: Operator,
	Summary: "What somebody who helps needs to know: versions, codes, states, digests, the log without paths. No secret, no path, no argument of a tool.",
	Answer:  host.Diagnostics{}, Serve: (*Server).showDiagnostics,
}, {
	Method: http.MethodPost, Path: "/v1/diagnostics/save", Access: Operator,
	Summary: "Writes the same into a new file among the user's downloads, or in the state folder.", Answer: DiagnosticsSaved{}, Serve: (*Server).saveDiagnostics,
}}

func (s *Server) showDiagnostics(c Caller, r *http.Request) (any, error) {
	if err := s.host.RecordDiagnostics(r.Context(), s.by(c)); err != nil {
		return nil, err
	}
	return s.host.Diagnose(r.Context()), nil
}

func (s *Server) saveDiagnostics(c Caller, r *http.Request) (any, error) {
	where, err := s.host.SaveDiagnostics(r.Context(), s.by(c))
	if err != nil {
		return nil, err
	}
	return DiagnosticsSaved{where}, nil
}
