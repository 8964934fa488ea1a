package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"sallyport/runtime/approvals"
)

// maxFacts is how many warnings stand unfolded: one red thing is a warning, six
// are wallpaper.
const maxFacts = 3

// printReview writes everything that a person sees before saying yes
// (spec/approval.md 6). The difference leads; text of the plugin's is text.
func printReview(w io.Writer, r approvals.Review) error {
	p := &page{w: w}
	p.line("\n%s", r.Sentence)
	printFacts(p, r.Facts)
	if r.Changed != nil {
		printDiff(p, *r.Changed)
	}
	p.line("")
	printLaunch(p, r)
	p.line("  %-12s %s", "may", strings.Join(r.May, "; "))
	for _, option := range r.Options {
		p.line("  %-12s %s", "loosened", option)
	}
	for _, skill := range r.Skills {
		p.line("  %-12s %s: %s", "skill", skill.Name, oneLine(skill.Description, 70))
	}
	p.line("  %-12s %s, %d bytes", "files", count(r.Files.Count, "file", "files"), r.Files.Bytes)
	for _, path := range r.Files.Executables {
		p.line("  %-12s %s", "executable", path)
	}
	for _, warning := range r.Files.Warnings {
		p.line("  %-12s %s", "warning", warning)
	}
	p.line("  %-12s %s", "from", r.Source)
	if r.Files.Count > 0 {
		p.line("  %-12s %s", "signed by", cmp.Or(r.Publisher, "nobody"))
	}
	p.line("  %-12s %s", "digest", r.Digest)
	return p.err
}

func printFacts(p *page, facts []approvals.Fact) {
	for i, fact := range facts {
		if i == maxFacts {
			p.line("  and %d more", len(facts)-maxFacts)
			return
		}
		mark := "  -"
		if fact.Red {
			mark = "  !"
		}
		p.line("%s %s", mark, fact.Sentence)
	}
}

// printLaunch writes the whole command line, untruncated, one argument a line.
func printLaunch(p *page, r approvals.Review) {
	if r.Dials != nil {
		p.line("  %-12s %s", "connects to", r.Dials.URL)
		p.field("headers", strings.Join(r.Dials.Headers, " "))
	}
	if r.Runs != nil {
		p.line("  %-12s %s", "runs", r.Runs.Command)
		for _, arg := range r.Runs.Args {
			p.line("  %-12s %s", "", arg)
		}
		p.field("program", r.Runs.Executable)
		p.field("in", r.Runs.Cwd)
	}
	var names []string
	for _, v := range r.Env {
		names = append(names, fmt.Sprintf("%s (%s)", shown(v.Name), v.Source))
	}
	p.field("sees", strings.Join(names, ", "))
	for _, literal := range r.Literals {
		p.line("  %-12s %s=%s", "sets", literal.Name, literal.Value)
	}
}
