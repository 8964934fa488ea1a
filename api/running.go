package api

import (
	"context"
	"net/http"

	"sallyport/runtime/approvals"
	"sallyport/runtime/host"
	"sallyport/runtime/plugins"
)

// Log is the end of what a server wrote to its error output: untrusted text. It is
// that of the last one that ran, too, until another one starts.
type Log struct {
	ID    string       `json:"id"`
	Run   *RunningInfo `json:"run,omitempty"` // while it runs
	Lines []string     `json:"lines"`
}

var runningRoutes = []Route{{
	Method: http.MethodPost, Path: connectorPath + "/start", Access: Operator,
	Summary: "Starts its server through the gate, as a call would.", Answer: Connector{}, Serve: run((*host.Host).StartServer),
}, {
	Method: http.MethodPost, Path: connectorPath + "/stop", Access: Operator,
	Summary: "Ends its server; the approval stays, and the next call starts it again.", Answer: Connector{}, Serve: run((*host.Host).StopServer),
}, {
	Method: http.MethodPost, Path: connectorPath + "/restart", Access: Operator,
	Summary: "Ends its server and starts it again.", Answer: Connector{}, Serve: run((*host.Host).RestartServer),
}, {
	Method: http.MethodGet, Path: connectorPath + "/log", Access: Operator,
	Summary: "The end of what its server wrote to its error output: untrusted text.", Answer: Log{}, Serve: (*Server).connectorLog,
}, {
	Method: http.MethodGet, Path: connectorPath + "/files", Access: Operator,
	Summary: "Its files on disk, with what changed since the approval.", Answer: approvals.Tree{}, Serve: (*Server).connectorFiles,
}, {
	Method: http.MethodGet, Path: connectorPath + "/file", Access: Operator, Query: []string{"path", "copy"},
	Summary: "One file of that list, by its exact path; ?copy=now|approved. Text up to 256 KiB, otherwise size and hash.",
	Answer:  approvals.TreeFile{}, Serve: (*Server).connectorFile,
}}

// run makes a handler of what is done to one connector's server.
func run(act func(*host.Host, context.Context, plugins.ID, approvals.By) error) func(*Server, Caller, *http.Request) (any, error) {
	return func(s *Server, c Caller, r *http.Request) (any, error) {
		id, err := s.subject(r)
		if err != nil {
			return nil, err
		}
		if err := act(s.host, r.Context(), id, s.by(c)); err != nil {
			return nil, err
		}
		return s.line(r.Context(), id), nil
	}
}

func (s *Server) connectorLog(_ Caller, r *http.Request) (any, error) {
	id, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	run, _ := s.running(id)
	return Log{ID: id.String(), Run: run, Lines: present(s.host.Pool.Tail(id))}, nil
}

func (s *Server) connectorFiles(_ Caller, r *http.Request) (any, error) {
	id, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	return s.host.Gate.Tree(r.Context(), id)
}

func (s *Server) connectorFile(_ Caller, r *http.Request) (any, error) {
	id, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	which := r.FormValue("copy")
	if which == "" {
		which = approvals.CopyNow
	}
	return s.host.Gate.TreeFile(r.Context(), id, r.FormValue("path"), which)
}
