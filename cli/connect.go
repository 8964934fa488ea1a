package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/internal/coded"
	"sallyport/runtime/clients"
)

// connectHow is how an agent program is connected.
type connectHow struct {
	project        string
	removeImported bool
	dryRun, undo   bool
	yes            bool
}

func (c *command) connectCommand() *cobra.Command {
	var how connectHow
	cmd := &cobra.Command{
		Use: "connect [PROGRAM]", Short: "Make an agent program on this computer use Sallyport",
		Args: cobra.MaximumNArgs(1), ValidArgs: programNames(),
		Long: `Without an argument: list the agent programs that are known here, and which use
Sallyport.

With one: put one entry, sallyport, into its configuration. The exact difference is
shown first, and nothing is written without a yes. Comments, order and everything
else in the file stay as they are; the original is kept in the folder backups of
the data folder. --undo puts it back byte for byte, or, where the file was edited
since, takes only Sallyport's entry out.

Programs: ` + strings.Join(programNames(), ", ") + `.`,
		Example: "  sallyport connect\n  sallyport connect cursor --dry-run\n  sallyport connect claude-code --remove-imported --yes\n  sallyport connect cursor --undo",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.listPrograms(cmd.Context())
			}
			return c.withHost(cmd.Context(), func(h *client.Client) error { return c.connect(cmd.Context(), h, args[0], how) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&how.project, "project", "", "write the configuration of this one project, a `DIR` in your home folder")
	flags.BoolVar(&how.removeImported, "remove-imported", false, "take out the entries that were imported, so that they run under Sallyport only")
	flags.BoolVar(&how.dryRun, "dry-run", false, "show the difference and write nothing")
	flags.BoolVar(&how.undo, "undo", false, "put the file back as it was")
	flags.BoolVar(&how.yes, "yes", false, "write without asking")
	cmd.MarkFlagsMutuallyExclusive("undo", "remove-imported")
	return cmd
}

func programNames() (names []string) {
	for _, one := range clients.Clients() {
		names = append(names, one.Name)
	}
	return names
}

func (c *command) listPrograms(ctx context.Context) error {
	var list api.ProgramList
	return c.withHost(ctx, func(h *client.Client) error {
		if err := h.Get(ctx, "/v1/connect", nil, &list); err != nil {
			return err
		}
		return c.print(list, func(w io.Writer) error { return printPrograms(w, list.Programs) })
	})
}

func printPrograms(w io.Writer, programs []api.Program) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PROGRAM\tFOUND\tSERVERS\tUSES SALLYPORT")
	found := false
	for _, p := range programs {
		file, servers, uses := "no", "", "no"
		if len(p.Files) > 0 {
			found = true
			file, servers = p.Files[0].File, fmt.Sprint(serversOf(p.Files))
			if more := len(p.Files) - 1; more > 0 {
				file += fmt.Sprintf(" and %d more", more)
			}
		}
		for i, one := range p.Connections {
			if i == 0 {
				uses = ""
			} else {
				uses += "; "
			}
			uses += connectionWords(one.State)
			if one.Project != "" {
				uses += ", in " + shown(one.Project)
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", p.Name, shown(file), servers, uses)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	next := "next: sallyport import, then sallyport connect PROGRAM --dry-run"
	if !found {
		next = "none of them has a configuration here; any other program is set up by hand: sallyport clients add NAME"
	}
	_, err := fmt.Fprintln(w, next)
	return err
}

func serversOf(files []api.ProgramFile) (n int) {
	for _, f := range files {
		n += f.Servers
	}
	return n
}

// connectionWords says what has become of an entry.
func connectionWords(state string) string {
	switch clients.State(state) {
	case clients.Unchanged:
		return "yes"
	case clients.FileEdited:
		return "yes (the file was edited since)"
	case clients.EntryEdited:
		return "NO: its entry was changed"
	case clients.EntryMissing:
		return "NO: its entry was taken out"
	}
	return "NO: its file cannot be understood"
}

func (c *command) connect(ctx context.Context, h *client.Client, program string, how connectHow) error {
	asked := api.Connecting{RemoveImported: how.removeImported}
	if how.project != "" {
		project, err := filepath.Abs(how.project)
		if err != nil {
			return err
		}
		asked.Project = project
	}
	path := "/v1/connect/" + url.PathEscape(program)
	if how.undo {
		path += "/undo"
	}
	var plan api.ConnectPlan
	err := h.Post(ctx, path+"/plan", asked, &plan)
	if how.undo && coded.Of(err) == "client-file-gone" && !how.dryRun {
		return c.writeConnection(ctx, h, path, asked, how, plan)
	}
	if err != nil {
		return err
	}
	if how.dryRun || plan.Nothing {
		return c.print(plan, func(w io.Writer) error { return printPlan(w, plan, how.undo) })
	}
	if err := c.agree(plan, how); err != nil {
		return err
	}
	asked.Plan = plan.Plan
	return c.writeConnection(ctx, h, path, asked, how, plan)
}

// agree shows the difference and asks, unless --yes answers.
func (c *command) agree(plan api.ConnectPlan, how connectHow) error {
	if how.yes {
		return nil
	}
	in := c.asker()
	if in == nil || c.json {
		return &coded.Error{Code: "answer-needed", Sentence: "nobody can be asked here, so nothing was written",
			Next: "look with --dry-run, then answer with --yes"}
	}
	if err := printPlan(terminal{c.Err}, plan, how.undo); err != nil {
		return err
	}
	yes, err := askYes(c.Err, in, "Write this? [y/N] ")
	if err == nil && !yes {
		err = &coded.Error{Code: "answer-needed", Sentence: "nothing was written"}
	}
	return err
}

func printPlan(w io.Writer, plan api.ConnectPlan, undo bool) error {
	p := &page{w: w}
	if plan.Nothing {
		p.line("%s is as it should be: %s uses Sallyport already", shown(plan.File), plan.Program)
		return p.err
	}
	switch {
	case plan.Deletes:
		p.line("%s was made by Sallyport and is taken away:", shown(plan.File))
	case undo && plan.Exact:
		p.line("%s is put back byte for byte as it was:", shown(plan.File))
	case undo:
		p.line("%s was edited since, so only Sallyport's entry is taken out, and what it had removed put back:", shown(plan.File))
	default:
		p.line("%s would be changed in this way (it may hold credentials of yours):", shown(plan.File))
	}
	p.line("")
	for line := range lines(plan.Diff) {
		p.line("%s", line)
	}
	p.line("")
	if plan.Note != "" {
		p.line("note: %s", plan.Note)
	}
	return p.err
}

func (c *command) writeConnection(ctx context.Context, h *client.Client, path string, asked api.Connecting, how connectHow, plan api.ConnectPlan) error {
	var done api.Connected
	if err := h.Post(ctx, path, asked, &done); err != nil {
		return err
	}
	return c.print(done, func(w io.Writer) error {
		p := &page{w: w}
		if how.undo {
			what := "no longer has Sallyport's entry"
			if plan.Deletes {
				what = "is taken away, as it was before"
			} else if plan.Exact {
				what = "is as it was, byte for byte"
			}
			p.line("%s no longer uses Sallyport: %s %s", done.Program, shown(done.File), what)
			return p.err
		}
		p.line("%s uses Sallyport from its next start: %s", done.Program, shown(done.File))
		if plan.Note != "" {
			p.line("note: %s", plan.Note)
		}
		undo := "sallyport connect " + done.Program + " --undo"
		if how.project != "" {
			undo += " --project " + quote(how.project)
		}
		p.line("undo: %s", undo)
		return p.err
	})
}
