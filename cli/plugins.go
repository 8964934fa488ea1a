package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
)

func (c *command) pluginsCommand() *cobra.Command {
	return group("plugins", "What is on disk, and how each stands", c.pluginsList(), c.pluginsShow(), c.pluginsScan(), c.pluginsNotSecret())
}

func (c *command) pluginsList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List every connector and how it stands", Args: exactly(),
		Long: `List every connector (one server of one plugin), its state, and what to do next.

With --json: an array, one object a connector, with id, state, reason, version,
digest and more.`,
		Example: "  sallyport plugins list\n  sallyport plugins list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				var list api.PluginList
				if err := h.Get(cmd.Context(), "/v1/plugins", nil, &list); err != nil {
					return err
				}
				return c.print(list.Connectors, func(w io.Writer) error { return printPlugins(w, list) })
			})
		},
	}
}

func (c *command) pluginsScan() *cobra.Command {
	return &cobra.Command{
		Use: "scan", Short: "Look at all folders now, and list", Args: exactly(),
		Example: "  sallyport plugins scan",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				var list api.PluginList
				if err := h.Post(cmd.Context(), "/v1/plugins/scan", nil, &list); err != nil {
					return err
				}
				return c.print(list.Connectors, func(w io.Writer) error { return printPlugins(w, list) })
			})
		},
	}
}

func printPlugins(w io.Writer, list api.PluginList) error {
	if len(list.Connectors) == 0 {
		_, err := fmt.Fprintln(w, "no plugins; put one into ~/.agents/plugins and run: sallyport plugins scan")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tSTATE\tVERSION\tTOOLS\tREASON")
	for _, one := range list.Connectors {
		state := one.State
		if one.Running {
			state += " (running)"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", shown(one.ID), state, oneLine(one.Version, 20), one.Tools, one.Reason)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return printNext(w, list)
}

// printNext says the one thing to do next, and what could not be read.
func printNext(w io.Writer, list api.PluginList) error {
	p := &page{w: w}
	for _, problem := range list.Problems {
		p.line("problem: %s: %s [%s]", shown(problem.Path), problem.Sentence, problem.Code)
	}
	for _, one := range list.Connectors {
		if one.State == "approval_required" || one.State == "pending" || one.State == "tools_required" {
			p.line("\nnext: sallyport approve %s", typed(one.ID))
			break
		}
	}
	return p.err
}

func (c *command) pluginsShow() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show one connector: declares, may touch, did, approved by whom, provides",
		Args: exactly("an ID"), ValidArgsFunction: c.completeID,
		Example: "  sallyport plugins show notes/main",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withConnector(cmd.Context(), args[0], func(h *client.Client, one api.Connector) error {
				var detail api.ConnectorDetail
				if err := h.Get(cmd.Context(), pathOf(one, ""), nil, &detail); err != nil {
					return err
				}
				return c.print(detail, func(w io.Writer) error { return printDetail(w, detail) })
			})
		},
	}
}

// signer puts the key before the name: the key is what is known, the name is what the
// key's holder says.
func signer(publisher string) string {
	key, name, ok := strings.Cut(publisher, " ")
	if !ok {
		return shown(publisher)
	}
	return "the key " + shown(key) + ", which calls itself " + shown(name)
}

// declaredNames lists what a manifest says that the server has.
func declaredNames(items []api.Skill, more bool) string {
	names := make([]string, 0, len(items)+1)
	for _, item := range items {
		names = append(names, oneLine(item.Name, 60))
	}
	if more && len(names) > 0 {
		names = append(names, "and more")
	}
	return strings.Join(names, ", ")
}

func printDetail(w io.Writer, d api.ConnectorDetail) error {
	p := &page{w: w}
	p.line("%s  %s", shown(d.ID), d.State)
	p.field("why", d.Sentence)
	p.field("next", d.Next)
	p.field("version", oneLine(d.Version, 40))
	p.field("digest", d.Digest)
	p.field("from", shown(d.Source))
	p.line("declares")
	p.field("what", oneLine(d.Declares.Description, 100))
	p.field("command", shown(d.Declares.Command))
	for _, arg := range d.Declares.Args {
		p.field("argument", shown(arg))
	}
	p.field("folder", shown(d.Declares.Cwd))
	p.field("address", shown(d.Declares.URL))
	p.field("environment", shown(strings.Join(d.Declares.Env, " ")))
	p.field("headers", shown(strings.Join(d.Declares.Headers, " ")))
	p.field("signed by", signer(d.Declares.Publisher))
	p.field("needs", shown(strings.Join(d.Declares.Runtimes, ", ")))
	p.field("tools", declaredNames(d.Declares.Tools, d.Declares.MoreTools))
	p.field("prompts", declaredNames(d.Declares.Prompts, d.Declares.MorePrompts))
	p.heading("may touch", len(d.MayTouch.Words))
	for _, words := range d.MayTouch.Words {
		p.line("  %s", shown(words))
	}
	printApproval(p, d)
	p.heading("provides", len(d.Provides.Tools)+len(d.Provides.Skills))
	for _, tool := range d.Provides.Tools {
		p.line("  %-24s %-12s %s", shown(tool.Name), tool.Class, oneLine(tool.Description, 70))
	}
	for _, skill := range d.Provides.Skills {
		p.line("  skill %-18s %s", shown(skill.Name), oneLine(skill.Description, 70))
	}
	p.heading("did lately", len(d.Did.Recent))
	for _, r := range d.Did.Recent {
		p.line("  %s  %s %s %s", r.At.Local().Format("2 Jan 15:04:05"), r.Action, shown(r.Target), strings.TrimSpace(r.Result+" "+r.Reason))
	}
	for _, problem := range d.Problems {
		p.line("problem: %s: %s [%s]", shown(problem.Path), problem.Sentence, problem.Code)
	}
	return p.err
}

func printApproval(p *page, d api.ConnectorDetail) {
	p.line("approved")
	if d.Approved == nil {
		p.line("  not")
		return
	}
	p.line("  by %s (%s) on %s", shown(d.Approved.By), d.Approved.Via, d.Approved.At.Local().Format(time.DateTime))
	p.field("version", oneLine(d.Approved.Version, 40))
	p.field("digest", d.Approved.Digest)
	for _, change := range d.Changes {
		p.line("  changed since: %s (%s)", change.Field, change.Code)
	}
}
