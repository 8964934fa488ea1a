package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/runtime/permissions"
	"sallyport/runtime/plugins"
)

func (c *command) connectorsCommand() *cobra.Command {
	return group("connectors", "Servers of your own, without a plugin (connectors.json)",
		c.connectorsAdd(), c.connectorsList(), c.connectorsShow(), c.connectorsRename(), c.connectorsRemove())
}

// newConnector is what the flags of connectors add say.
type newConnector struct {
	env, headers        []string
	inherit             []string
	cwd, url            string
	net, secrets, tools []string
}

func (c *command) connectorsAdd() *cobra.Command {
	var given newConnector
	cmd := &cobra.Command{
		Use: "add NAME [--url URL | -- COMMAND [ARGUMENT…]]", Short: "Write down a server of your own; nothing starts",
		Long: `Write a server into connectors.json: a command with its arguments after --, or an
address. Nothing starts: it is shown, asked about and approved like any plugin.

A value may refer to a secret (secret:NAME, see sallyport secrets set) or to a
variable of yours (env:NAME); a credential that is written out is refused. The
server runs in a folder of its own unless --cwd names another one, so an argument
that names a file in the present folder is written with its whole path.`,
		Example: `  sallyport connectors add notes -- node ~/src/notes/server.js
  sallyport connectors add github --env GITHUB_TOKEN=secret:GITHUB_TOKEN -- /usr/local/bin/github-mcp stdio
  sallyport connectors add search --url https://mcp.example.com/mcp --header Authorization='Bearer ${secret:SEARCH}'`,
		Args: func(cmd *cobra.Command, args []string) error {
			named := args
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				named = args[:dash]
			} else if len(args) > 1 {
				return usage("put -- before the command: sallyport connectors add %s -- %s …", args[0], args[1])
			}
			return exactly("a name")(cmd, named)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			asked := api.NewConnector{Name: args[0]}
			var err error
			if asked.HandEntry, err = given.entry(args[1:]); err != nil {
				return err
			}
			c.wholePaths(&asked.HandEntry)
			var added api.Connector
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				if err := h.Post(cmd.Context(), "/v1/connectors", asked, &added); err != nil {
					return err
				}
				return c.print(added, func(w io.Writer) error { return sayWritten(w, added) })
			})
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&given.env, "env", nil, "a variable for it: `NAME=VALUE`, NAME=secret:NAME or NAME=env:NAME")
	flags.StringVar(&given.cwd, "cwd", "", "the `FOLDER` it runs in; without one, a folder of its own")
	flags.StringSliceVar(&given.inherit, "inherit", nil, "variables of yours that it gets: `NAME`,… or the group network")
	flags.StringVar(&given.url, "url", "", "the `URL` of a server that is reached by HTTP")
	flags.StringArrayVar(&given.headers, "header", nil, "a header for it: `NAME=VALUE`")
	flags.StringSliceVar(&given.net, "net", nil, "hosts it may reach: `HOST`,…")
	flags.StringSliceVar(&given.secrets, "secret", nil, "secrets it may be given, besides those its values name: `NAME`,…")
	flags.StringSliceVar(&given.tools, "tools", nil, "tools that it may offer: `NAME`,… or read_*; without, all are for you to choose from")
	return cmd
}

// entry puts the flags and the words of the command together.
func (n newConnector) entry(words []string) (e plugins.HandEntry, err error) {
	e = plugins.HandEntry{Cwd: n.cwd, URL: n.url, Inherit: n.inherit}
	if len(words) > 0 {
		e.Command, e.Args = words[0], words[1:]
	}
	if e.Command == "" && e.URL == "" {
		return e, usage("name the command after --, or an address with --url; see sallyport connectors add --help")
	}
	if e.Env, err = pairs("--env", n.env); err != nil {
		return e, err
	}
	if e.Headers, err = pairs("--header", n.headers); err != nil {
		return e, err
	}
	if len(n.net)+len(n.secrets)+len(n.tools) > 0 {
		e.Permissions = &permissions.Set{Net: n.net, Secrets: n.secrets, Tools: n.tools}
	}
	return e, nil
}

func pairs(flag string, given []string) (map[string]string, error) {
	if len(given) == 0 {
		return nil, nil
	}
	values := map[string]string{}
	for _, text := range given {
		name, value, ok := strings.Cut(text, "=")
		if _, twice := values[name]; !ok || name == "" || twice {
			return nil, usage("%s takes NAME=VALUE, each name once", flag)
		}
		values[name] = value
	}
	return values, nil
}

// wholePaths writes what names something in the present folder with its whole path:
// the server runs elsewhere. An argument is taken for a file only if it looks like
// one and is one, and that is said.
func (c *command) wholePaths(e *plugins.HandEntry) {
	relative := func(text string) bool {
		return text != "" && !filepath.IsAbs(text) && !strings.HasPrefix(text, "~") && !strings.HasPrefix(text, "${")
	}
	whole := func(text string) string {
		if path, err := filepath.Abs(text); err == nil {
			return path
		}
		return text
	}
	if relative(e.Command) && strings.ContainsAny(e.Command, `/\`) {
		e.Command = whole(e.Command)
	}
	if relative(e.Cwd) {
		e.Cwd = whole(e.Cwd)
	}
	if e.Cwd != "" {
		return
	}
	for i, arg := range e.Args {
		info, err := os.Stat(arg)
		if !relative(arg) || !strings.ContainsAny(arg, `./\`) || err != nil || !info.Mode().IsRegular() {
			continue
		}
		e.Args[i] = whole(arg)
		c.say("%s is written as %s", arg, e.Args[i])
	}
}

func sayWritten(w io.Writer, one api.Connector) error {
	p := &page{w: w}
	p.line("%s is written down in connectors.json; nothing of it runs yet", shown(one.ID))
	if one.State == "invalid" {
		p.line("it cannot be approved as it is: %s", one.Sentence)
		p.field("next", one.Next)
		return p.err
	}
	p.line("next: sallyport approve %s", typed(one.ID))
	return p.err
}

func (c *command) connectorsList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List them", Args: exactly(), Example: "  sallyport connectors list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				var list api.ConnectorList
				if err := h.Get(cmd.Context(), "/v1/connectors", nil, &list); err != nil {
					return err
				}
				return c.print(list, func(w io.Writer) error { return printHand(w, list) })
			})
		},
	}
}

func printHand(w io.Writer, list api.ConnectorList) error {
	p := &page{w: w}
	for _, problem := range list.Problems {
		where := problem.Path
		if problem.Line > 0 {
			where = fmt.Sprintf("%s:%d:%d", problem.Path, problem.Line, problem.Column)
		}
		p.line("problem: %s: %s [%s]", where, problem.Sentence, problem.Code)
	}
	if len(list.Connectors) == 0 {
		if len(list.Problems) == 0 {
			p.line("none yet; add one: sallyport connectors add NAME -- COMMAND")
		}
		return p.err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSTATE\tWHAT\tREASON")
	for _, one := range list.Connectors {
		what := one.Declares.URL
		if what == "" {
			what = strings.Join(append([]string{one.Declares.Command}, one.Declares.Args...), " ")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", shown(one.Server), one.State, oneLine(what, 60), one.Reason)
	}
	return table.Flush()
}

func (c *command) connectorsShow() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show one: declares, may touch, did, approved by whom, provides",
		Args: exactly("a name"), ValidArgsFunction: c.completeHand,
		Example: "  sallyport connectors show notes",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				var detail api.ConnectorDetail
				one := api.Connector{Plugin: plugins.ByHand, Server: args[0]}
				if err := h.Get(cmd.Context(), pathOf(one, ""), nil, &detail); err != nil {
					return err
				}
				return c.print(detail, func(w io.Writer) error { return printDetail(w, detail) })
			})
		},
	}
}

func (c *command) connectorsRename() *cobra.Command {
	return &cobra.Command{
		Use: "rename NAME NEW", Short: "Give one another name; it is then approved anew", Args: exactly("a name", "its new name"),
		ValidArgsFunction: c.completeHand,
		Long: `Give a server another name. Agents see its tools under the new one, and it has to be
approved again; what it has stored goes with it.`,
		Example: "  sallyport connectors rename notes my-notes",
		RunE: func(cmd *cobra.Command, args []string) error {
			var renamed api.Connector
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				if err := h.Post(cmd.Context(), handPath(args[0])+"/rename", api.ConnectorName{Name: args[1]}, &renamed); err != nil {
					return err
				}
				return c.print(renamed, func(w io.Writer) error { return sayWritten(w, renamed) })
			})
		},
	}
}

func (c *command) connectorsRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Take one out of connectors.json; if it runs it is stopped", Args: exactly("a name"),
		ValidArgsFunction: c.completeHand,
		Long: `Take a server out of connectors.json, and leave the comments and the others there as
they are. What it has stored stays on disk.`,
		Example: "  sallyport connectors remove notes",
		RunE: func(cmd *cobra.Command, args []string) error {
			var done api.Done
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				if err := h.Delete(cmd.Context(), handPath(args[0]), &done); err != nil {
					return err
				}
				return c.print(done, func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "%s is no longer in connectors.json\n", shown(args[0]))
					return err
				})
			})
		},
	}
}

func handPath(name string) string { return "/v1/connectors/" + url.PathEscape(name) }

// completeHand offers the names in connectors.json to the shell.
func (c *command) completeHand(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	err := c.withHost(cmd.Context(), func(h *client.Client) error { return offerHand(cmd.Context(), h, begun, &names) })
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func offerHand(ctx context.Context, h *client.Client, begun string, names *[]string) error {
	var list api.ConnectorList
	if err := h.Get(ctx, "/v1/connectors", nil, &list); err != nil {
		return err
	}
	for _, one := range list.Connectors {
		if strings.HasPrefix(one.Server, begun) {
			*names = append(*names, one.Server+"\t"+one.State)
		}
	}
	return nil
}
