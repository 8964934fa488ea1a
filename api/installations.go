package api

import (
	"context"
	"net/http"

	"sallyport/runtime/approvals"
	"sallyport/runtime/host"
	"sallyport/runtime/install"
)

// NewInstallation names where a plugin is to be installed from.
type NewInstallation struct {
	// Source is npm:NAME@VERSION, git+file:///PATH#COMMIT, or the absolute path of a
	// folder, of an archive, or of a git repository with #COMMIT; ~/ is the home folder.
	Source string `json:"source"`
}

// Installation is a bundle on its way to the question whether it may be installed.
type Installation struct {
	ID       string `json:"id"`
	State    string `json:"state"` // staging, asked, failed, cancelled
	Revision int    `json:"revision"`
	// Doing is "reading", "unpacking", "resolving", "fetching", "checking" or
	// "digesting"; Entries and Bytes are how far that has come.
	Doing    string            `json:"doing,omitempty"`
	Entries  int               `json:"entries"`
	Bytes    int64             `json:"bytes"`
	Decision string            `json:"decision,omitempty"` // once it is asked
	Error    *Error            `json:"error,omitempty"`    // where it failed
	Warnings []install.Warning `json:"warnings"`
}

// BundleQuestion is what a decision of the stage "bundle" is about.
type BundleQuestion struct {
	Sentence string           `json:"sentence"`
	Facts    []approvals.Fact `json:"facts"`
	approvals.BundleQuestion
}

// Uninstall says what goes with the plugin.
type Uninstall struct {
	Purge bool `json:"purge,omitempty"` // what it has stored, too
}

// Vendoring chooses the version of the npm package; "" is the one that the command line
// names, or the one that it means now.
type Vendoring struct {
	Version string `json:"version,omitempty"`
}

// Update says where the next version comes from; empty means the place that the
// installed one came from.
type Update struct {
	Source  string `json:"source,omitempty"`  // as in NewInstallation
	Version string `json:"version,omitempty"` // of the same npm package
}

var installationRoutes = []Route{{
	Method: http.MethodPost, Path: "/v1/installations", Access: Operator,
	Summary: "Begins to stage a plugin from a source; a decision then asks whether it may be installed.",
	Body:    NewInstallation{}, Answer: Installation{}, Serve: (*Server).beginInstallation,
}, {
	Method: http.MethodGet, Path: "/v1/installations/{installation}", Access: Operator,
	Summary: "How far it has come: at once, or with ?wait=30s as soon as its revision is above ?after.",
	Query:   []string{"after", "wait"}, Answer: Installation{}, Serve: (*Server).showInstallation,
}, {
	Method: http.MethodPost, Path: "/v1/installations/{installation}/cancel", Access: Operator,
	Summary: "Ends one that is being staged; nothing of it stays on disk.", Answer: Installation{}, Serve: (*Server).cancelInstallation,
}, {
	Method: http.MethodPost, Path: "/v1/plugins/{plugin}/update", Access: Operator,
	Summary: "Begins to stage the next version of an installed plugin.", Body: Update{}, Answer: Installation{}, Serve: (*Server).updatePlugin,
}, {
	Method: http.MethodPost, Path: connectorPath + "/vendor", Access: Operator,
	Summary: "Begins to make an installed plugin of a connector that fetches an npm package at every start.",
	Body:    Vendoring{}, Answer: Installation{}, Serve: (*Server).vendorConnector,
}, {
	Method: http.MethodPost, Path: "/v1/plugins/{plugin}/uninstall", Access: Operator,
	Summary: "Asks whether an installed plugin may be removed: opens a decision.", Body: Uninstall{}, Answer: Decision{}, Serve: (*Server).uninstallPlugin,
}, {
	Method: http.MethodPost, Path: "/v1/plugins/{plugin}/undo", Access: Operator,
	Summary: "Asks whether the version before may take its place again: opens a decision.", Answer: Decision{}, Serve: (*Server).undoPlugin,
}}

func (s *Server) beginInstallation(c Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	var asked NewInstallation
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	source, err := s.host.Source(asked.Source)
	if err != nil {
		return nil, err
	}
	return installation(s.host.Install(source, s.by(c))), nil
}

func (s *Server) showInstallation(_ Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	after, wait, err := revisionPoll(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	now, err := s.host.Installation(ctx, r.PathValue("installation"), after)
	if err != nil {
		return nil, err
	}
	return installation(now), nil
}

func (s *Server) cancelInstallation(_ Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	now, err := s.host.CancelInstallation(r.PathValue("installation"))
	if err != nil {
		return nil, err
	}
	return installation(now), nil
}

func (s *Server) updatePlugin(c Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	var asked Update
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	begun, err := s.host.Update(r.Context(), r.PathValue("plugin"), asked.Source, asked.Version, s.by(c))
	if err != nil {
		return nil, err
	}
	return installation(begun), nil
}

func (s *Server) vendorConnector(c Caller, r *http.Request) (any, error) {
	id, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	var asked Vendoring
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	begun, err := s.host.Vendor(r.Context(), id, asked.Version, s.by(c))
	if err != nil {
		return nil, err
	}
	return installation(begun), nil
}

func (s *Server) uninstallPlugin(c Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	var asked Uninstall
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	d, err := s.host.AskUninstall(r.Context(), r.PathValue("plugin"), asked.Purge, s.by(c))
	if err != nil {
		return nil, err
	}
	return s.decision(r, d), nil
}

func (s *Server) undoPlugin(c Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	d, err := s.host.AskUndo(r.Context(), r.PathValue("plugin"), s.by(c))
	if err != nil {
		return nil, err
	}
	return s.decision(r, d), nil
}

func installation(now host.Installation) Installation {
	out := Installation{
		ID: now.ID, State: string(now.State), Revision: now.Revision, Doing: now.Step.Doing, Entries: now.Step.Entries,
		Bytes: now.Step.Bytes, Decision: now.Decision, Warnings: present(now.Warnings),
	}
	if now.Err != nil {
		_, body := errorBody(now.Err)
		out.Error = &body
	}
	return out
}

func bundleQuestion(d approvals.Decision) *BundleQuestion {
	if d.Bundle == nil {
		return nil
	}
	return &BundleQuestion{Sentence: d.Bundle.Sentence(d.Action), Facts: d.Bundle.BundleFacts(), BundleQuestion: *d.Bundle}
}
