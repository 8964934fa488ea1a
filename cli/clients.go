package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/internal/loopback"
)

func (c *command) clientsCommand() *cobra.Command {
	cmd := group("clients", "The agents that may use Sallyport", c.clientsAdd(), c.clientsList(), c.clientsShow(),
		c.clientsGrant(), c.clientsRevoke(), c.clientsRotate(), c.clientsRemove())
	cmd.Aliases = []string{"agents"} // as the pages call them
	return cmd
}

func (c *command) clientsAdd() *cobra.Command {
	var only []string
	var original bool
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Add an agent and print its token, this once", Args: exactly("a name"),
		Long: `Add an agent and print its token. The token is shown this once; Sallyport keeps
only its hash. Without --only the agent sees every tool that is enabled.`,
		Example: "  sallyport clients add claude\n  sallyport clients add cursor --only notes/main,files/main:read_file",
		RunE: func(cmd *cobra.Command, args []string) error {
			asked := api.NewClient{Name: args[0]}
			if len(only) > 0 || original {
				asked.Scope = &api.Scope{All: len(only) == 0, Only: only, OriginalNames: original}
			}
			var token api.ClientToken
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				if err := h.Post(cmd.Context(), "/v1/clients", asked, &token); err != nil {
					return err
				}
				return c.print(token, func(w io.Writer) error { return c.sayToken(cmd.Context(), w, token) })
			})
		},
	}
	cmd.Flags().StringSliceVar(&only, "only", nil, "see only these: `ID` or ID:TOOL, separated by commas")
	cmd.Flags().BoolVar(&original, "original-names", false, "expose the server's own tool names (with --only and one server)")
	return cmd
}

func (c *command) sayToken(ctx context.Context, w io.Writer, token api.ClientToken) error {
	byHTTP := "once a sidecar has run, which chooses the port; then see sallyport status"
	if address := c.address(ctx); address != "" {
		byHTTP = address + `/mcp with the header "Authorization: Bearer <token>"`
	}
	_, err := fmt.Fprintf(w, `%s may now use Sallyport. Its token, shown this once:

  %s

  by HTTP:   %s
  by stdio:  the command %s (needs no token)
`, token.Name, token.Token, byHTTP, commandOf(token))
	return err
}

// commandOf is what an agent that starts commands is to start: by its whole path, on
// these folders.
func commandOf(token api.ClientToken) string {
	if token.Connects == nil || token.Connects.Command == "" {
		return "sallyport mcp --client " + token.Name
	}
	words := []string{typed(token.Connects.Command)}
	for _, arg := range token.Connects.Args {
		words = append(words, typed(arg))
	}
	return strings.Join(words, " ")
}

// address is where the sidecar is, or will be when it is started; "" is not known.
func (c *command) address(ctx context.Context) string {
	if found, _, err := c.findSidecar(ctx); err == nil {
		return found.URL
	}
	if port, ok := loopback.SavedPort(c.places().State); ok {
		return loopback.URL(port)
	}
	return ""
}

func (c *command) clientsList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the agents", Args: exactly(), Example: "  sallyport clients list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list api.ClientList
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				if err := h.Get(cmd.Context(), "/v1/clients", nil, &list); err != nil {
					return err
				}
				return c.print(list.Clients, func(w io.Writer) error { return printClients(w, list.Clients) })
			})
		},
	}
}

func printClients(w io.Writer, clients []api.Client) error {
	if len(clients) == 0 {
		_, err := fmt.Fprintln(w, "no agents yet; add one: sallyport clients add NAME")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSEES\tSINCE")
	for _, one := range clients {
		fmt.Fprintf(table, "%s\t%s\t%s\n", one.Name, sees(one.Scope), one.CreatedAt.Local().Format("2 Jan 2006"))
	}
	return table.Flush()
}

func sees(s api.Scope) string {
	switch {
	case s.All:
		return "all that is enabled"
	case len(s.Only) == 0:
		return "nothing"
	}
	return strings.Join(s.Only, ", ")
}

func (c *command) clientsShow() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show what an agent sees and when it was seen", Args: exactly("a name"),
		Example: "  sallyport clients show cursor",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				var one api.Client
				if err := h.Get(cmd.Context(), "/v1/clients/"+url.PathEscape(args[0]), nil, &one); err != nil {
					return err
				}
				return c.print(one, func(w io.Writer) error { return printClient(w, one) })
			})
		},
	}
}

func printClient(w io.Writer, one api.Client) error {
	p := &page{w: w}
	p.line("%s", one.Name)
	p.field("added", one.CreatedAt.Local().Format(time.DateTime))
	if one.RotatedAt != nil {
		p.field("new token", one.RotatedAt.Local().Format(time.DateTime))
	}
	seen := "not since Sallyport was started"
	if one.SeenAt != nil {
		seen = one.SeenAt.Local().Format(time.DateTime)
	}
	p.field("last seen", seen)
	p.field("connected", fmt.Sprintf("%d open", one.OpenSessions))
	if one.Scope.All || len(one.Scope.Only) == 0 {
		p.field("sees", sees(one.Scope))
		return p.err
	}
	p.line("sees")
	for _, line := range one.Scope.Only {
		p.line("  %s", line)
	}
	return p.err
}

func (c *command) clientsGrant() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "grant NAME ID[:TOOL]...", Short: "Let an agent see more, at once",
		Long: `Let an agent see a connector, or single tools of it. A connector as a whole comes
with its prompts and resources; single tools come without. Agents that are
connected are told at once.`,
		Example: "  sallyport clients grant cursor notes/main files/main:read_file\n  sallyport clients grant cursor --all",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || all == (len(args) > 1) {
				return usage("grant needs a name, and what to grant or --all; see sallyport clients grant --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.changeScope(cmd.Context(), "grant", args[0], api.ScopeChange{Only: args[1:], All: all})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "everything that is enabled, now and later")
	return cmd
}

func (c *command) clientsRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME ID[:TOOL]...", Short: "Let an agent see less, at once",
		Long: `Take a connector, or single tools of it, from an agent. It is told at once, and its
calls of them that are running are cancelled. An agent that sees all that is enabled
keeps what is enabled now, and sees what is enabled later only when it is granted.`,
		Example: "  sallyport clients revoke cursor files/main:write_file",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage("revoke needs a name, and what to revoke; see sallyport clients revoke --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.changeScope(cmd.Context(), "revoke", args[0], api.ScopeChange{Only: args[1:]})
		},
	}
}

func (c *command) changeScope(ctx context.Context, what, name string, change api.ScopeChange) error {
	return c.withHost(ctx, func(h *client.Client) error {
		var now api.Client
		if err := h.Post(ctx, "/v1/clients/"+url.PathEscape(name)+"/"+what, change, &now); err != nil {
			return err
		}
		return c.print(now, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s now sees %s\n", now.Name, sees(now.Scope))
			return err
		})
	})
}

func (c *command) clientsRotate() *cobra.Command {
	return &cobra.Command{
		Use: "rotate NAME", Short: "Give an agent another token; the old one ends at once", Args: exactly("a name"),
		Long: `Give an agent another token and print it, this once. The old token and everything
that was opened with it end at once. What the agent sees stays as it is.`,
		Example: "  sallyport clients rotate cursor",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				var token api.ClientToken
				if err := h.Post(cmd.Context(), "/v1/clients/"+url.PathEscape(args[0])+"/rotate", nil, &token); err != nil {
					return err
				}
				return c.print(token, func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "%s has another token, shown this once; the old one no longer works:\n\n  %s\n", token.Name, token.Token)
					return err
				})
			})
		},
	}
}

func (c *command) clientsRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Remove an agent: its token ends at once", Args: exactly("a name"),
		Example: "  sallyport clients remove cursor",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				var done api.Done
				if err := h.Delete(cmd.Context(), "/v1/clients/"+url.PathEscape(args[0]), &done); err != nil {
					return err
				}
				return c.print(done, func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "%s is removed; its token no longer works\n", args[0])
					return err
				})
			})
		},
	}
}
