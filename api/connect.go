package api

import (
	"net/http"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/clients"
	"sallyport/runtime/host"
)

// ProgramList holds the agent programs that are known.
type ProgramList struct {
	Programs []Program `json:"programs"`
}

// Program is an agent program, the files of it that were found, and the entries that
// Sallyport wrote into them.
type Program struct {
	Name        string              `json:"name"`
	Title       string              `json:"title"`
	Files       []ProgramFile       `json:"files"`
	Connections []ProgramConnection `json:"connections"`
	// Note is what to know before its file is written.
	Note string `json:"note,omitempty"`
}

// ProgramFile is a file of an agent program.
type ProgramFile struct {
	File       string `json:"file"`
	Scope      string `json:"scope"` // "user", "profile" or "project"
	Project    string `json:"project,omitempty"`
	Recognised string `json:"recognised,omitempty"`
	Servers    int    `json:"servers"`
	Problem    *Error `json:"problem,omitempty"`
}

// ProgramConnection is an entry that Sallyport wrote.
type ProgramConnection struct {
	File    string    `json:"file"`
	Project string    `json:"project,omitempty"`
	At      time.Time `json:"at"`
	// State is "unchanged", "file-edited", "entry-edited", "entry-missing" or
	// "unreadable".
	State string `json:"state"`
}

// Connecting asks to connect a program, or to undo that.
type Connecting struct {
	// Project is a folder below the home folder: its own file is written, where the
	// program has one. Without it the user's is.
	Project string `json:"project,omitempty"`
	// RemoveImported takes out the entries that were imported.
	RemoveImported bool `json:"removeImported,omitempty"`
	// Plan is what was shown and agreed to; not needed for a plan.
	Plan string `json:"plan,omitempty"`
}

// ConnectPlan is exactly what would be written.
type ConnectPlan struct {
	Program string `json:"program"`
	File    string `json:"file"`
	Project string `json:"project,omitempty"`
	// Diff is the unified difference; it may show what else is in the file.
	Diff    string   `json:"diff"`
	Removes []string `json:"removes"`
	// Nothing is true where the file is as it should be already, Exact where an undo
	// puts the original bytes back, Deletes where it takes the file away.
	Nothing bool   `json:"nothing,omitempty"`
	Exact   bool   `json:"exact,omitempty"`
	Deletes bool   `json:"deletes,omitempty"`
	Note    string `json:"note,omitempty"`
	Plan    string `json:"plan"`
}

// Connected says what was written.
type Connected struct {
	Program string `json:"program"`
	File    string `json:"file"`
}

var connectRoutes = []Route{{
	Method: http.MethodGet, Path: "/v1/connect", Access: Operator,
	Summary: "The agent programs of this computer, and which use Sallyport.", Answer: ProgramList{}, Serve: (*Server).listPrograms,
}, {
	Method: http.MethodPost, Path: "/v1/connect/{name}/plan", Access: Operator,
	Summary: "Exactly what connecting a program would write. Writes nothing.", Body: Connecting{}, Answer: ConnectPlan{}, Serve: (*Server).planConnect,
}, {
	Method: http.MethodPost, Path: "/v1/connect/{name}", Access: Operator,
	Summary: "Makes a program use Sallyport: writes what was planned.", Body: Connecting{}, Answer: Connected{}, Serve: (*Server).connect,
}, {
	Method: http.MethodPost, Path: "/v1/connect/{name}/undo/plan", Access: Operator,
	Summary: "Exactly what undoing a connection would write. Writes nothing.", Body: Connecting{}, Answer: ConnectPlan{}, Serve: (*Server).planDisconnect,
}, {
	Method: http.MethodPost, Path: "/v1/connect/{name}/undo", Access: Operator,
	Summary: "Undoes a connection: writes what was planned.", Body: Connecting{}, Answer: Connected{}, Serve: (*Server).disconnect,
}}

func (s *Server) listPrograms(_ Caller, _ *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	programs, err := s.host.Programs()
	if err != nil {
		return nil, err
	}
	list := ProgramList{Programs: []Program{}}
	for _, p := range programs {
		list.Programs = append(list.Programs, programOf(p))
	}
	return list, nil
}

func programOf(p host.Program) Program {
	out := Program{Name: p.Client.Name, Title: p.Client.Title, Note: p.Client.Keeps, Files: []ProgramFile{}, Connections: []ProgramConnection{}}
	for _, f := range p.Found {
		out.Files = append(out.Files, fileOf(f))
	}
	for _, c := range p.Connections {
		out.Connections = append(out.Connections, ProgramConnection{File: c.File, Project: c.Where, At: c.At, State: string(c.State)})
	}
	return out
}

func fileOf(f clients.Found) ProgramFile {
	return ProgramFile{File: f.File, Scope: string(f.Scope), Project: f.Project, Recognised: f.Recognised, Servers: len(f.Entries), Problem: problemOf(f.Problem)}
}

// problemOf is a refusal as part of an answer.
func problemOf(e *coded.Error) *Error {
	if e == nil {
		return nil
	}
	_, body := errorBody(e)
	return &body
}

// connecting reads what is asked for.
func (s *Server) connecting(r *http.Request) (host.Connecting, error) {
	var asked Connecting
	if err := s.host.Fault(); err != nil {
		return host.Connecting{}, err
	}
	err := read(r, &asked)
	return host.Connecting{Program: r.PathValue("name"), Project: asked.Project, RemoveImported: asked.RemoveImported, Plan: asked.Plan}, err
}

func (s *Server) planConnect(_ Caller, r *http.Request) (any, error) {
	what, err := s.connecting(r)
	if err != nil {
		return nil, err
	}
	change, err := s.host.PlanConnect(what)
	if err != nil {
		return nil, err
	}
	return ConnectPlan{Program: change.Client, File: change.File, Project: change.Project, Diff: change.Diff, Removes: present(change.Removed),
		Nothing: change.Nothing(), Note: change.Note, Plan: change.Plan()}, nil
}

func (s *Server) connect(c Caller, r *http.Request) (any, error) {
	what, err := s.connecting(r)
	if err != nil {
		return nil, err
	}
	record, err := s.host.Connect(r.Context(), what, s.by(c))
	if err != nil {
		return nil, err
	}
	return Connected{Program: record.Client, File: record.File}, nil
}

func (s *Server) planDisconnect(_ Caller, r *http.Request) (any, error) {
	what, err := s.connecting(r)
	if err != nil {
		return nil, err
	}
	undo, err := s.host.PlanDisconnect(what)
	if err != nil {
		return nil, err
	}
	return ConnectPlan{Program: undo.Record.Client, File: undo.Record.File, Diff: undo.Diff, Removes: []string{},
		Exact: undo.Exact, Deletes: undo.Delete, Plan: undo.Plan()}, nil
}

func (s *Server) disconnect(c Caller, r *http.Request) (any, error) {
	what, err := s.connecting(r)
	if err != nil {
		return nil, err
	}
	record, err := s.host.Disconnect(r.Context(), what, s.by(c))
	if err != nil {
		return nil, err
	}
	return Connected{Program: record.Client, File: record.File}, nil
}
