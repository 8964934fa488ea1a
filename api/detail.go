package api

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"sallyport/runtime/approvals"
	"sallyport/runtime/audit"
	"sallyport/runtime/env"
	"sallyport/runtime/plugins"
)

// recentRecords is how much of the audit a detail shows; the rest is a link.
const recentRecords = 20

func (s *Server) detail(ctx context.Context, status approvals.Status, declared plugins.Connector) (any, error) {
	id := status.ID
	did, err := s.did(ctx, id)
	if err != nil {
		return nil, err
	}
	run, diagnostics := s.running(id)
	detail := ConnectorDetail{
		Connector: connectorLine(status, declared, run != nil),
		Declares:  declares(declared),
		MayTouch: MayTouch{Tools: present(declared.Requested.Tools), Net: present(declared.Requested.Net),
			Secrets: present(declared.Requested.Secrets), FS: present(declared.Requested.FS), Words: present(declared.Words())},
		Did:      did,
		Approved: approval(status.Approved),
		Provides: Provides{Tools: []Tool{}, Prompts: []string{}, Templates: []string{}, Skills: []SkillFile{}, Diagnostics: present(diagnostics)},
		Changes:  []FieldPair{},
		Problems: []Problem{},
		Run:      run,
	}
	for _, change := range status.Changes {
		detail.Changes = append(detail.Changes, FieldPair(change))
	}
	s.provides(id, &detail.Provides)
	s.ofPlugin(ctx, id.Plugin, &detail)
	return detail, nil
}

func (s *Server) did(ctx context.Context, id plugins.ID) (Did, error) {
	s.settleAudit(ctx)
	filter := audit.Filter{Plugin: id.Plugin, Limit: recentRecords}
	if id.Plugin == plugins.ByHand {
		filter.Limit = 0 // the others in connectors.json are no part of this one
	}
	page, err := s.host.Audit.Query(ctx, filter)
	if err != nil {
		return Did{}, err
	}
	if id.Plugin == plugins.ByHand {
		page.Records = slices.DeleteFunc(page.Records, func(r audit.Record) bool { return r.Binding != id.Server })
		page.Records = page.Records[:min(len(page.Records), recentRecords)]
	}
	return Did{Audit: "/v1/plugins/audit?plugin=" + url.QueryEscape(id.Plugin), Recent: present(page.Records)}, nil
}

// declares hides what looks like a credential: a connector is listed before anybody
// looked at it, and to callers who may only watch.
func declares(c plugins.Connector) Declares {
	show := env.Exempt{NotSecret: c.Options.NotSecret}
	d := Declares{Command: c.Launch.Command, Args: present(show.ShowArguments(c.Launch.Args)), Cwd: c.Launch.Cwd, Env: []string{},
		Inherit: present(c.Launch.Inherit), URL: show.ShowAddress(c.Launch.URL), Headers: []string{},
		Publisher: c.Publisher, Tools: []Skill{}, Prompts: []Skill{}, Runtimes: []string{}}
	for _, v := range c.Launch.Env {
		d.Env = append(d.Env, v.Name)
	}
	for _, v := range c.Launch.Headers {
		d.Headers = append(d.Headers, v.Name)
	}
	return d
}

func approval(a *approvals.ApprovedView) *Approval {
	if a == nil {
		return nil
	}
	return &Approval{Identity: string(a.Identity), Digest: string(a.Digest), Version: a.Version,
		By: a.By.User, Via: a.By.Via, At: a.At, Tools: present(a.Tools), ToolsBy: a.ToolsBy.User}
}

// provides fills in what was pinned: what agents may use.
func (s *Server) provides(id plugins.ID, into *Provides) {
	approved, ok := s.host.Gate.Approved(id)
	if !ok {
		return
	}
	for _, tool := range approved.Tools {
		into.Tools = append(into.Tools, s.tool(id, tool))
	}
	for _, prompt := range approved.Prompts {
		into.Prompts = append(into.Prompts, prompt.Name)
	}
	for _, template := range approved.Templates {
		into.Templates = append(into.Templates, template.Name)
	}
}

// ofPlugin fills in what the plugin's manifest says about all of its servers.
func (s *Server) ofPlugin(ctx context.Context, name string, into *ConnectorDetail) {
	found, err := s.host.Listing(ctx)
	if err != nil {
		return
	}
	plugin, ok := found.Plugin(name)
	if !ok {
		return
	}
	into.Declares.Description, into.Declares.Author = plugin.Description, plugin.Author.Name
	into.Declares.Homepage, into.Declares.Repository, into.Declares.License = plugin.Homepage, plugin.Repository, plugin.License
	into.Declares.MoreTools, into.Declares.MorePrompts = plugin.Declared.MoreTools, plugin.Declared.MorePrompts
	into.Declares.Runtimes = present(plugin.Declared.Runtimes)
	for _, tool := range plugin.Declared.Tools {
		into.Declares.Tools = append(into.Declares.Tools, Skill(tool))
	}
	for _, prompt := range plugin.Declared.Prompts {
		into.Declares.Prompts = append(into.Declares.Prompts, Skill(prompt))
	}
	into.Problems = problemsOf(plugin.Problems)
	for _, skill := range plugin.Skills {
		into.Provides.Skills = append(into.Provides.Skills, SkillFile{skill.Name, skill.Description, skill.Path})
	}
}

func (s *Server) running(id plugins.ID) (*RunningInfo, []string) {
	session, ok := s.host.Pool.Live(id)
	if !ok {
		return nil, nil
	}
	for _, info := range s.host.Pool.Running() {
		if info.ID == id {
			return &RunningInfo{PID: info.PID, Since: info.Since, InFlight: info.InFlight}, session.Tail()
		}
	}
	return nil, nil
}

// EnvView is what a connector's process gets.
type EnvView struct {
	ID   string      `json:"id"`
	Vars []env.Shown `json:"vars"`
}

func (s *Server) connectorEnv(_ Caller, r *http.Request) (any, error) {
	id, err := s.subject(r)
	if err != nil {
		return nil, err
	}
	vars, err := s.host.Gate.Environment(r.Context(), id)
	if err != nil {
		return nil, err
	}
	return EnvView{ID: id.String(), Vars: present(vars)}, nil
}
