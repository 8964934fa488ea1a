package approvals

import (
	"context"
	"fmt"
	"slices"

	"sallyport/runtime/env"
	"sallyport/runtime/permissions"
	"sallyport/runtime/plugins"
)

// Review is everything that a person sees before saying yes (spec/approval.md 6).
// All text from the plugin is made visible; it is never markup.
type Review struct {
	ID       string `json:"id"`
	Sentence string `json:"sentence"`
	State    State  `json:"state"`
	Reason   string `json:"reason,omitempty"`
	Decision string `json:"decision,omitempty"` // the open one
	// Stale says that the open decision is about something else by now: an allow
	// would be refused and asked anew.
	Stale   bool   `json:"stale"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
	Source  string `json:"source"`
	// Publisher is whose valid signature the installed package carried, "" for none. It
	// decides nothing.
	Publisher string   `json:"publisher,omitempty"`
	Digest    string   `json:"digest"`
	Identity  Identity `json:"identity"`
	// Facts are what a careful friend would point at, most serious first.
	Facts []Fact `json:"facts"`
	Runs  *Runs  `json:"runs,omitempty"`
	Dials *Dials `json:"dials,omitempty"`
	// Env has every name that the process gets and where each comes from.
	Env []env.Shown `json:"env"`
	// Literals are the values that the connector itself declares.
	Literals  []Entry         `json:"literals"`
	May       []string        `json:"may"` // permissions in words
	Requested permissions.Set `json:"requested"`
	Options   []string        `json:"options"` // loosened defaults
	Files     Files           `json:"files"`
	// Skills are texts for agents, approved with the tree.
	Skills  []SkillLine   `json:"skills"`
	Changed *Diff         `json:"changed,omitempty"` // nil the first time
	Tools   []OfferedTool `json:"tools,omitempty"`   // where they are to be chosen
}

// SkillLine is one skill: a text that agents are given as it is.
type SkillLine struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

func skillLines(skills []plugins.Skill) []SkillLine {
	lines := make([]SkillLine, len(skills))
	for i, skill := range skills {
		lines[i] = SkillLine{Visible(skill.Name), Visible(skill.Description)}
	}
	return lines
}

// Runs is a command line in full, one argument an element.
type Runs struct {
	Command    string   `json:"command"`
	Args       []string `json:"args"`
	Cwd        string   `json:"cwd"`
	Executable string   `json:"executable"`
}

// Dials is an address in full, and the names of the headers sent there.
type Dials struct {
	URL     string   `json:"url"`
	Headers []string `json:"headers"`
}

// Files is a bundle in numbers.
type Files struct {
	Count       int      `json:"count"`
	Bytes       int64    `json:"bytes"`
	Folders     int      `json:"folders"`
	Links       int      `json:"links"`
	Executables []string `json:"executables"`
	Warnings    []string `json:"warnings"`
}

// Review reads the connector in full and puts together what there is to see.
func (g *Gate) Review(ctx context.Context, id plugins.ID) (Review, error) {
	g.mu.Lock()
	var path string
	open := g.openDecision(id)
	if open != nil {
		path = open.Path
	}
	g.mu.Unlock()
	if path == "" {
		var err error
		if path, err = g.userPath(ctx); err != nil {
			return Review{}, err
		}
	}
	now, err := g.resolve(ctx, id, Full, path)
	if err != nil {
		return Review{}, err
	}
	changed := g.diff(ctx, now)
	g.mu.Lock()
	status := g.statusOf(id, now, nil)
	g.mu.Unlock()
	c := now.Connector
	r := Review{
		ID: id.String(), Sentence: changed.Sentence, State: status.State, Reason: status.Reason, Decision: status.Decision,
		Stale: open != nil && open.Identity != now.Identity,
		Title: Visible(c.Title), Version: Visible(c.Version), Source: Visible(c.Source), Publisher: Visible(now.Fields.Publisher),
		Digest: now.Fields.Artifact, Identity: now.Identity,
		Facts: factsOf(now, changed), Env: []env.Shown{}, Literals: literals(now.Fields),
		May: c.Words(), Requested: c.Requested, Options: optionWords(c.Options), Files: filesOf(now), Skills: skillLines(c.Skills),
	}
	switch c.Transport {
	case plugins.Stdio:
		r.Runs = runsOf(now)
		r.Env = now.plan.Masked()
	case plugins.Skills:
	default:
		r.Dials = dialsOf(now)
	}
	if changed.Since != nil {
		r.Changed = &changed
	}
	if open != nil && open.Stage == StageTools {
		r.Tools = g.Offered(*open)
	}
	return r, nil
}

func runsOf(now Resolved) *Runs {
	r := &Runs{Command: Visible(now.Fields.Command.Expanded), Args: []string{}, Cwd: Visible(now.Fields.Cwd.Expanded)}
	for _, arg := range now.Fields.shownArgs(expanded) {
		r.Args = append(r.Args, Visible(arg))
	}
	if now.Fields.Executable != nil {
		r.Executable = visibleText(now.Fields.Executable.String())
	}
	return r
}

func dialsOf(now Resolved) *Dials {
	d := &Dials{URL: Visible(now.Fields.shownURL().Expanded), Headers: []string{}}
	for _, h := range now.Fields.Headers {
		d.Headers = append(d.Headers, Visible(h.Name))
	}
	return d
}

// literals are the declared values: on disk for everybody to read, and refused
// where they look like a credential.
func literals(f Fields) []Entry {
	out := []Entry{}
	for i, e := range slices.Concat(f.Env, f.Headers) {
		where := env.InHeader
		if i < len(f.Env) {
			where = env.InEnv
		}
		e = f.shownEntry(where, e)
		out = append(out, Entry{Visible(e.Name), Visible(e.Value), e.Operator, Visible(e.Expanded)})
	}
	return out
}

func filesOf(now Resolved) Files {
	f := Files{Executables: []string{}, Warnings: []string{}}
	if now.Tree == nil {
		return f
	}
	f.Count, f.Bytes, f.Folders, f.Links = now.Tree.Files, now.Tree.Bytes, now.Tree.Dirs, now.Tree.Links
	for _, path := range now.Tree.Executables() {
		f.Executables = append(f.Executables, Visible(path))
	}
	for _, w := range now.Tree.Warnings {
		f.Warnings = append(f.Warnings, fmt.Sprintf("%s and %s differ only in letter case", Visible(w.Path), Visible(w.Other)))
	}
	return f
}

func optionWords(o plugins.Options) []string {
	words := []string{}
	if o.MaxFrame != 0 {
		words = append(words, fmt.Sprintf("messages of up to %d bytes", o.MaxFrame))
	}
	if o.StdoutNoise != "" {
		words = append(words, "lines on its output that are no messages are skipped")
	}
	return append(words, budgetWords(o.Budget)...)
}

// budgetWords says what was asked for that is not what everybody has.
func budgetWords(b plugins.Budget) (words []string) {
	for _, one := range []struct {
		n    int64
		text string
	}{
		{b.MemoryBytes >> 20, "up to %d MiB of memory"}, {b.CPUSeconds, "up to %d seconds of processor time in an hour"},
		{b.OpenFiles, "up to %d open files in each process"}, {b.Processes, "up to %d processes"},
		{b.Calls, "up to %d calls at a time"}, {b.ResultBytes, "results of up to %d bytes"},
	} {
		if one.n > 0 {
			words = append(words, fmt.Sprintf(one.text, one.n))
		}
	}
	return words
}

// factsOf ranks what is worth pointing at: red before the rest.
func factsOf(now Resolved, changed Diff) []Fact {
	facts := slices.Clone(now.Warnings)
	if changed.Since != nil && len(changed.Files) == 0 && changed.Note == "" {
		for _, tool := range changed.Tools {
			if tool.Kind == "changed" {
				facts = append(facts, Fact{"tool-changed-alone", "a tool's definition changed but its code did not", true})
				break
			}
		}
	}
	for _, f := range changed.Files {
		if f.Executable && (f.Kind == "added" || f.Kind == "mode-changed") {
			facts = append(facts, Fact{"executable-added", "a file became executable or was added as one: " + f.Path, false})
			break
		}
	}
	if now.Tree != nil && len(now.Tree.Warnings) > 0 {
		facts = append(facts, Fact{"case-collision", "two files differ only in letter case; one of them is lost on other systems", false})
	}
	if facts == nil {
		return []Fact{}
	}
	slices.SortStableFunc(facts, func(a, b Fact) int {
		switch {
		case a.Red == b.Red:
			return 0
		case a.Red:
			return -1
		}
		return 1
	})
	return facts
}
