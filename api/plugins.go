package api

import (
	"context"
	"net/http"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/plugins"
)

// Connector is one line of the list: one server of one plugin, and how it stands.
// A plugin that is rejected whole is a line too, with its name alone as the id.
type Connector struct {
	ID        string `json:"id"`
	Plugin    string `json:"plugin"`
	Server    string `json:"server,omitempty"`
	Title     string `json:"title,omitempty"`
	State     string `json:"state"`
	Reason    string `json:"reason"`             // a code; empty when enabled
	Sentence  string `json:"sentence,omitempty"` // the reason in words
	Next      string `json:"next,omitempty"`     // what to do about it
	Version   string `json:"version"`
	Digest    string `json:"digest"`
	Source    string `json:"source,omitempty"`
	Format    string `json:"format,omitempty"`
	Transport string `json:"transport,omitempty"`
	Decision  string `json:"decision,omitempty"` // the open one
	Tools     int    `json:"tools"`              // how many may be called
	Running   bool   `json:"running"`
}

// PluginList is everything on disk, and everything that was approved and is gone.
type PluginList struct {
	Connectors []Connector `json:"connectors"`
	Problems   []Problem   `json:"problems"`
}

// Problem is something that a plugin or a folder does wrong.
type Problem struct {
	Code     string `json:"code"`
	Path     string `json:"path,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Sentence string `json:"sentence"`
}

// ConnectorDetail answers the five questions of spec/approval.md 7: what it
// declares, what it may touch, what it did, who approved it and when, and what it
// provides right now.
type ConnectorDetail struct {
	Connector
	Declares Declares     `json:"declares"`
	MayTouch MayTouch     `json:"mayTouch"`
	Did      Did          `json:"did"`
	Approved *Approval    `json:"approved"`
	Provides Provides     `json:"provides"`
	Changes  []FieldPair  `json:"changes"`
	Problems []Problem    `json:"problems"`
	Run      *RunningInfo `json:"run,omitempty"`
}

// Declares is what the manifest says, as it says it, but for what looks like a
// credential: that is "(hidden)".
type Declares struct {
	Description string   `json:"description,omitempty"`
	Author      string   `json:"author,omitempty"`
	Homepage    string   `json:"homepage,omitempty"`
	Repository  string   `json:"repository,omitempty"`
	License     string   `json:"license,omitempty"`
	Command     string   `json:"command,omitempty"`
	Args        []string `json:"args"`
	Cwd         string   `json:"cwd,omitempty"`
	Env         []string `json:"env"`
	Inherit     []string `json:"inherit"`
	URL         string   `json:"url,omitempty"`
	Headers     []string `json:"headers"`
	// Publisher is who signed the package that was installed.
	Publisher string `json:"publisher,omitempty"`
	// Tools and Prompts are what an MCP bundle's manifest says that the server has,
	// MoreTools and MorePrompts that it makes further ones. Nobody has asked the server
	// for that; what it really has is under provides.
	Tools       []Skill `json:"tools"`
	Prompts     []Skill `json:"prompts"`
	MoreTools   bool    `json:"moreTools,omitempty"`
	MorePrompts bool    `json:"morePrompts,omitempty"`
	// Runtimes are what it needs on the computer: "node >=16".
	Runtimes []string `json:"runtimes"`
}

// MayTouch is the permissions in words, each with whether the system enforces it.
type MayTouch struct {
	Tools   []string `json:"tools"`
	Net     []string `json:"net"`
	Secrets []string `json:"secrets"`
	FS      []string `json:"fs"`
	Words   []string `json:"words"`
}

// Did is where the record of what it did is, and its newest lines.
type Did struct {
	Audit  string         `json:"audit"` // path and query of the whole record
	Recent []audit.Record `json:"recent"`
}

// Approval is who approved what, and when.
type Approval struct {
	Identity string    `json:"identity"`
	Digest   string    `json:"digest"`
	Version  string    `json:"version"`
	By       string    `json:"by"`
	Via      string    `json:"via"`
	At       time.Time `json:"at"`
	Tools    []string  `json:"tools"`
	ToolsBy  string    `json:"toolsBy,omitempty"`
}

// Provides is what there is to use, and what is declared for other clients only.
type Provides struct {
	Tools       []Tool      `json:"tools"`
	Prompts     []string    `json:"prompts"`
	Templates   []string    `json:"resourceTemplates"`
	Skills      []SkillFile `json:"skills"`
	Diagnostics []string    `json:"diagnostics"` // the end of stderr: untrusted text
}

// Skill is a text for agents, which they get as a prompt once the plugin is approved.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// SkillFile is a skill with its file's path in the bundle.
type SkillFile struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Path        string `json:"path"`
}

// FieldPair is one field of the identity that differs from what was approved.
type FieldPair struct {
	Code  string `json:"code"`
	Field string `json:"field"`
	Old   string `json:"old"`
	New   string `json:"new"`
}

// RunningInfo is the process, while there is one.
type RunningInfo struct {
	PID      int       `json:"pid,omitempty"`
	Since    time.Time `json:"since"`
	InFlight int       `json:"inFlight"`
}

const connectorPath = "/v1/plugins/{plugin}/{server}"

var pluginRoutes = []Route{{
	Method: http.MethodGet, Path: "/v1/plugins", Access: Watcher,
	Summary: "Every connector and how it stands.", Answer: PluginList{}, Serve: (*Server).listPlugins,
}, {
	Method: http.MethodPost, Path: "/v1/plugins/scan", Access: Operator,
	Summary: "Looks at all folders now, and lists.", Answer: PluginList{}, Serve: (*Server).scanPlugins,
}, {
	Method: http.MethodGet, Path: "/v1/plugins/{plugin}", Access: Watcher,
	Summary: "The one connector of a plugin, by the plugin's name.", Answer: ConnectorDetail{}, Serve: (*Server).showConnector,
}, {
	Method: http.MethodGet, Path: connectorPath, Access: Watcher,
	Summary: "One connector: declares, may touch, did, approved by whom, provides.", Answer: ConnectorDetail{}, Serve: (*Server).showConnector,
}, {
	Method: http.MethodGet, Path: connectorPath + "/review", Access: Operator,
	Summary: "Everything that a person sees before saying yes.", Answer: approvals.Review{}, Serve: (*Server).reviewConnector,
}, {
	Method: http.MethodGet, Path: connectorPath + "/diff", Access: Operator,
	Summary: "What changed since the approval: files with text, launch fields, tools.", Answer: approvals.Diff{}, Serve: (*Server).diffConnector,
}, {
	Method: http.MethodGet, Path: connectorPath + "/env", Access: Operator,
	Summary: "The environment that it gets: names, where each comes from, values masked.", Answer: EnvView{}, Serve: (*Server).connectorEnv,
}, {
	Method: http.MethodPost, Path: connectorPath + "/ask", Access: Operator,
	Summary: "Asks whether it may run: opens a decision.", Answer: Decision{}, Serve: (*Server).askConnector,
}, {
	Method: http.MethodPost, Path: connectorPath + "/ask-tools", Access: Operator,
	Summary: "Asks anew which tools of an enabled connector may be used: opens a decision.", Answer: Decision{}, Serve: (*Server).askTools,
}, {
	Method: http.MethodPost, Path: connectorPath + "/deny", Access: Operator,
	Summary: "Says no: to the open decision, or to what is there now.", Answer: Decision{}, Serve: (*Server).denyConnector,
}, {
	Method: http.MethodPost, Path: connectorPath + "/revoke", Access: Operator,
	Summary: "Ends its approval.", Answer: Connector{}, Serve: operate((*approvals.Gate).Revoke),
}, {
	Method: http.MethodPost, Path: connectorPath + "/disable", Access: Operator,
	Summary: "Keeps it from running; the approval stays.", Answer: Connector{}, Serve: operate((*approvals.Gate).Disable),
}, {
	Method: http.MethodPost, Path: connectorPath + "/enable", Access: Operator,
	Summary: "Lets an unchanged approval run again.", Answer: Connector{}, Serve: operate((*approvals.Gate).Enable),
}, {
	Method: http.MethodPost, Path: connectorPath + "/call", Access: Operator,
	Summary: "Calls one tool through the same gate as agents.", Body: ToolCall{}, Answer: ToolResult{}, Serve: (*Server).callTool,
}, {
	Method: http.MethodPost, Path: connectorPath + "/call/cancel", Access: Operator,
	Summary: "Ends a call of the operator's by the name that it was given.", Body: CancelCall{}, Answer: Done{}, Serve: (*Server).cancelCall,
}, {
	Method: http.MethodGet, Path: "/v1/tools", Access: Watcher,
	Summary: "Every tool that may be called, with the name agents see.", Answer: ToolList{}, Serve: (*Server).listTools,
}}

func (s *Server) listPlugins(_ Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	return s.pluginList(r.Context())
}

func (s *Server) scanPlugins(_ Caller, r *http.Request) (any, error) {
	if err := s.host.Fault(); err != nil {
		return nil, err
	}
	if err := s.host.Rescan(r.Context()); err != nil {
		return nil, err
	}
	s.host.RecheckAll(r.Context())
	return s.pluginList(r.Context())
}

func (s *Server) pluginList(ctx context.Context) (any, error) {
	found, err := s.host.Listing(ctx)
	if err != nil {
		return nil, err
	}
	list := PluginList{Connectors: []Connector{}, Problems: problemsOf(found.Problems)}
	running := s.host.RunningIDs()
	for _, status := range s.host.Gate.Statuses(ctx) {
		declared, _ := found.Connector(status.ID)
		list.Connectors = append(list.Connectors, connectorLine(status, declared, running[status.ID]))
	}
	for _, p := range found.Plugins {
		switch {
		case p.Invalid != nil:
			list.Connectors = append(list.Connectors, rejectedLine(p))
		case len(p.Connectors) == 0:
			list.Problems = append(list.Problems, problemsOf(p.WithoutServers())...)
		}
	}
	return list, nil
}

func connectorLine(status approvals.Status, declared plugins.Connector, running bool) Connector {
	line := Connector{
		ID: status.ID.String(), Plugin: status.ID.Plugin, Server: status.ID.Server, Title: declared.Title,
		State: string(status.State), Reason: status.Reason, Sentence: status.Sentence, Next: status.Next,
		Version: status.Version, Digest: string(status.Digest), Source: declared.Source, Format: declared.Format,
		Transport: string(declared.Transport), Decision: status.Decision, Running: running,
	}
	if status.Approved != nil {
		line.Tools = len(status.Approved.Tools)
		if line.Version == "" {
			line.Version = status.Approved.Version
		}
	}
	return line
}

func rejectedLine(p plugins.Plugin) Connector {
	return Connector{ID: p.Name, Plugin: p.Name, Title: p.Description, State: string(approvals.Invalid),
		Reason: p.Invalid.Code, Sentence: p.Invalid.Error(), Next: p.Invalid.Next, Version: p.Version,
		Source: p.Source, Format: p.Format}
}

func problemsOf(list []plugins.Problem) []Problem {
	out := make([]Problem, len(list))
	for i, p := range list {
		out[i] = Problem(p)
	}
	return out
}

// subject reads which connector an address is about.
func (s *Server) subject(r *http.Request) (plugins.ID, error) {
	if err := s.host.Fault(); err != nil {
		return plugins.ID{}, err
	}
	name := r.PathValue("plugin")
	if server := r.PathValue("server"); server != "" {
		name += "/" + server
	}
	return s.host.Find(r.Context(), name)
}

// by is who answers: the operating-system user, and the way in of the token.
func (s *Server) by(c Caller) approvals.By {
	return approvals.By{User: s.host.User, Via: c.Via}
}

// operate makes a handler of what the gate does to one connector.
func operate(act func(*approvals.Gate, context.Context, plugins.ID, approvals.By) error) func(*Server, Caller, *http.Request) (any, error) {
	return func(s *Server, c Caller, r *http.Request) (any, error) {
		id, err := s.subject(r)
		if err != nil {
			return nil, err
		}
		if err := act(s.host.Gate, r.Context(), id, s.by(c)); err != nil {
			return nil, err
		}
		return s.line(r.Context(), id), nil
	}
}

func (s *Server) line(ctx context.Context, id plugins.ID) Connector {
	var declared plugins.Connector
	if found, err := s.host.Listing(ctx); err == nil {
		declared, _ = found.Connector(id)
	}
	return connectorLine(s.host.Gate.Status(ctx, id), declared, s.host.RunningIDs()[id])
}

func (s *Server) reviewConnector(_ Caller, r *http.Request) (any, error) {
	id, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	return s.host.Gate.Review(r.Context(), id)
}

func (s *Server) diffConnector(_ Caller, r *http.Request) (any, error) {
	id, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	return s.host.Gate.Diff(r.Context(), id)
}

func (s *Server) showConnector(_ Caller, r *http.Request) (any, error) {
	id, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	found, err := s.host.Listing(r.Context())
	if err != nil {
		return nil, err
	}
	declared, onDisk := found.Connector(id)
	status := s.host.Gate.Status(r.Context(), id)
	if !onDisk && status.Approved == nil {
		return nil, &coded.Error{Code: "plugin-unknown", Sentence: "there is no connector of that name",
			Next: "see what there is: sallyport plugins list"}
	}
	return s.detail(r.Context(), status, declared)
}
