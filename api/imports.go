package api

import (
	"net/http"

	"sallyport/runtime/clients"
	"sallyport/runtime/env"
	"sallyport/runtime/host"
)

// ImportList is what other programs' files hold.
type ImportList struct {
	Files []ImportFile `json:"files"`
}

// ImportFile is a file of an agent program, with its servers.
type ImportFile struct {
	Client  string `json:"client"`
	Title   string `json:"title"`
	Scope   string `json:"scope"` // "user", "profile" or "project"
	Project string `json:"project,omitempty"`
	File    string `json:"file"`
	// Recognised says what the file was read as; empty where it was read as nothing.
	Recognised string         `json:"recognised,omitempty"`
	Problem    *Error         `json:"problem,omitempty"` // of the whole file
	Servers    []ImportServer `json:"servers"`
	// Inputs are what the program asks its person for.
	Inputs []ImportInput `json:"inputs"`
}

// ImportInput is something that a program asks for, under the name that it would have
// in the keyring.
type ImportInput struct {
	Secret      string `json:"secret"`
	Description string `json:"description,omitempty"`
}

// ImportServer is one entry of a file. It holds no value of a variable or header.
type ImportServer struct {
	Name      string   `json:"name"`
	Line      int      `json:"line"`
	Column    int      `json:"column"`
	Transport string   `json:"transport,omitempty"`
	Command   string   `json:"command,omitempty"`
	Args      []string `json:"args"` // what looks like a credential is hidden
	URL       string   `json:"url,omitempty"`
	Env       []string `json:"env"`
	Headers   []string `json:"headers"`
	Disabled  bool     `json:"disabled,omitempty"`
	// Literals are credentials that are written out in it, by name.
	Literals []env.Literal `json:"literals"`
	// Fetches is the code that it downloads at every start.
	Fetches []string `json:"fetches"`
	// Needs are secrets that would have to be set.
	Needs []string `json:"needs"`
	// Connector is what it was imported as already, SameAs the first entry that says
	// the same, and Own true for Sallyport's own.
	Connector string `json:"connector,omitempty"`
	SameAs    string `json:"sameAs,omitempty"`
	Own       bool   `json:"own,omitempty"`
	Problem   *Error `json:"problem,omitempty"`
}

// ImportText is a configuration as text, for a look at it or to import from it.
type ImportText struct {
	Name string `json:"name"` // of the file: its ending says how it is written
	Text []byte `json:"text"` // in standard base64, so that every byte arrives
}

// Importing asks to import entries.
type Importing struct {
	// Picks name entries; none means all that can be.
	Picks []ImportPick `json:"picks,omitempty"`
	// Project is a folder below the home folder whose files are looked at too.
	Project string      `json:"project,omitempty"`
	Text    *ImportText `json:"text,omitempty"`
	// LeaveSecrets keeps no value: a connector that needs one is blocked until it is
	// set.
	LeaveSecrets bool `json:"leaveSecrets,omitempty"`
	DryRun       bool `json:"dryRun,omitempty"`
}

// ImportPick names entries: all of a client, those of one file, or one by name.
type ImportPick struct {
	Client string `json:"client"`
	File   string `json:"file,omitempty"`
	Name   string `json:"name,omitempty"`
}

// ImportDone says what became of each entry.
type ImportDone struct {
	Results []ImportResult `json:"results"`
}

// ImportResult is one entry's.
type ImportResult struct {
	Client    string   `json:"client"`
	File      string   `json:"file"`
	Name      string   `json:"name"`
	Connector string   `json:"connector,omitempty"`
	Renamed   bool     `json:"renamed,omitempty"` // its name was taken, or could be none
	Already   bool     `json:"already,omitempty"`
	SameAs    string   `json:"sameAs,omitempty"`
	Kept      []string `json:"kept"`  // secrets whose values went to the keyring
	Needs     []string `json:"needs"` // secrets that have to be set
	Problem   *Error   `json:"problem,omitempty"`
}

var importRoutes = []Route{{
	Method: http.MethodGet, Path: "/v1/import", Access: Operator, Query: []string{"project"},
	Summary: "The MCP servers in other programs' configurations. Reads, writes and runs nothing.", Answer: ImportList{}, Serve: (*Server).listImportable,
}, {
	Method: http.MethodPost, Path: "/v1/import/look", Access: Operator,
	Summary: "The MCP servers in a configuration that is handed over as text.", Body: ImportText{}, Answer: ImportList{}, Serve: (*Server).lookAtText,
}, {
	Method: http.MethodPost, Path: "/v1/import", Access: Operator,
	Summary: "Imports entries as connectors that nobody has approved; credentials go to the keyring.", Body: Importing{}, Answer: ImportDone{}, Serve: (*Server).importServers,
}}

func (s *Server) listImportable(_ Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	return s.importable(r.URL.Query().Get("project"), nil)
}

func (s *Server) lookAtText(_ Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	var text ImportText
	if err := read(r, &text); err != nil {
		return nil, err
	}
	return s.importable("", &host.ImportText{Name: text.Name, Raw: text.Text})
}

func (s *Server) importable(project string, text *host.ImportText) (any, error) {
	files, err := s.host.Importable(project, text)
	if err != nil {
		return nil, err
	}
	list := ImportList{Files: []ImportFile{}}
	for _, f := range files {
		list.Files = append(list.Files, importFileOf(f))
	}
	return list, nil
}

func importFileOf(f host.ImportFile) ImportFile {
	out := ImportFile{Client: f.Client, Title: f.Title, Scope: string(f.Scope), Project: f.Project, File: f.File,
		Recognised: f.Recognised, Problem: problemOf(f.Problem), Servers: []ImportServer{}, Inputs: []ImportInput{}}
	for _, input := range f.Inputs {
		out.Inputs = append(out.Inputs, ImportInput{input.Secret, input.Description})
	}
	for _, s := range f.Servers {
		out.Servers = append(out.Servers, importServerOf(s))
	}
	return out
}

func importServerOf(s host.ImportServer) ImportServer {
	var none env.Exempt
	out := ImportServer{Name: s.Name, Line: s.Place.Line, Column: s.Place.Column, Transport: string(s.Transport), Command: s.Command,
		Args: present(none.ShowArguments(s.Args)), URL: none.ShowAddress(s.URL), Env: namesOf(s.Env), Headers: namesOf(s.Headers), Disabled: s.Disabled,
		Literals: s.Literals, Fetches: []string{}, Needs: present(s.Import.Secrets), Connector: s.Connector, SameAs: s.SameAs, Own: s.Own, Problem: problemOf(s.Refused)}
	if out.Literals == nil {
		out.Literals = []env.Literal{}
	}
	for _, fetch := range s.Fetches {
		if !fetch.Fixed() {
			out.Fetches = append(out.Fetches, fetch.String())
		}
	}
	return out
}

func namesOf(pairs []clients.Pair) []string {
	names := []string{}
	for _, p := range pairs {
		names = append(names, p.Name)
	}
	return names
}

func (s *Server) importServers(c Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	var asked Importing
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	what := host.Importing{Project: asked.Project, LeaveSecrets: asked.LeaveSecrets, DryRun: asked.DryRun}
	if asked.Text != nil {
		what.Text = &host.ImportText{Name: asked.Text.Name, Raw: asked.Text.Text}
	}
	for _, p := range asked.Picks {
		what.Picks = append(what.Picks, host.Pick{Client: p.Client, File: p.File, Name: p.Name})
	}
	results, err := s.host.Import(r.Context(), what, s.by(c))
	if err != nil {
		return nil, err
	}
	done := ImportDone{Results: []ImportResult{}}
	for _, one := range results {
		done.Results = append(done.Results, ImportResult{Client: one.Client, File: one.File, Name: one.Name, Connector: one.Connector, Renamed: one.Renamed,
			Already: one.Already, SameAs: one.SameAs, Kept: present(one.Kept), Needs: present(one.Needs), Problem: problemOf(one.Refused)})
	}
	return done, nil
}
