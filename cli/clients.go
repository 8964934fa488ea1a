package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
)

func (c *command) clientsCommand() *cobra.Command {
	return group("clients", "The agents that may use Sallyport", c.clientsAdd(), c.clientsList(), c.clientsRemove())
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
	url := "http://127.0.0.1:PORT"
	if found, _, err := c.findSidecar(ctx); err == nil {
		url = found.URL
	}
	_, err := fmt.Fprintf(w, `%s may now use Sallyport. Its token, shown this once:

  %s

  by HTTP:   %s/mcp with the header "Authorization: Bearer <token>"
  by stdio:  the command "sallyport mcp --client %s" (needs no token)
`, token.Name, token.Token, url, token.Name)
	return err
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
		sees := strings.Join(one.Scope.Only, ", ")
		if one.Scope.All {
			sees = "all that is enabled"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", one.Name, sees, one.CreatedAt.Local().Format("2 Jan 2006"))
	}
	return table.Flush()
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
