package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
)

func (c *command) envCommand() *cobra.Command {
	return &cobra.Command{
		Use: "env ID", Short: "Show the environment that a connector gets, values masked", Args: exactly("an ID"),
		ValidArgsFunction: c.completeID,
		Long: `Show every variable that the connector's process gets and where each comes from.
Values are masked but for fixed, harmless ones. What is not listed is not there.`,
		Example: "  sallyport env notes/main --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withConnector(cmd.Context(), args[0], func(h *client.Client, one api.Connector) error {
				var view api.EnvView
				if err := h.Get(cmd.Context(), pathOf(one, "/env"), nil, &view); err != nil {
					return err
				}
				return c.print(view.Vars, func(w io.Writer) error {
					table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
					fmt.Fprintln(table, "NAME\tFROM\tVALUE")
					for _, v := range view.Vars {
						fmt.Fprintf(table, "%s\t%s\t%s\n", shown(v.Name), v.Source, shown(v.Value))
					}
					return table.Flush()
				})
			})
		},
	}
}
