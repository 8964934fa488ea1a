package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
)

func (c *command) revokeCommand() *cobra.Command {
	return c.operation("revoke", "End an approval: it stops, and has to be asked for again", "its approval is revoked; it does not run until: sallyport approve ID")
}

func (c *command) enableCommand() *cobra.Command {
	return c.operation("enable", "Let a disabled or parked connector run again, if it is unchanged", "it may run again")
}

func (c *command) disableCommand() *cobra.Command {
	return c.operation("disable", "Keep a connector from running; its approval stays", "it does not run until you enable it: sallyport enable ID")
}

func (c *command) startCommand() *cobra.Command {
	return c.operation("start", "Start an approved server now, and not at the next call", "it runs")
}

func (c *command) stopCommand() *cobra.Command {
	return c.operation("stop", "Stop a server; its approval stays, and the next call starts it again", "it is stopped; the next call starts it again. To keep it stopped: sallyport disable ID")
}

func (c *command) restartCommand() *cobra.Command {
	return c.operation("restart", "Stop a server and start it again", "it was started again")
}

// operation is a command that does one thing to one connector.
func (c *command) operation(name, short, done string) *cobra.Command {
	return &cobra.Command{
		Use: name + " ID", Short: short, Args: exactly("an ID"), ValidArgsFunction: c.completeID,
		Example: "  sallyport " + name + " notes/main",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withConnector(cmd.Context(), args[0], func(h *client.Client, one api.Connector) error {
				var now api.Connector
				if err := h.Post(cmd.Context(), pathOf(one, "/"+name), nil, &now); err != nil {
					return err
				}
				return c.print(now, func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "%s: %s\n", shown(now.ID), strings.ReplaceAll(done, " ID", " "+typed(now.ID)))
					return err
				})
			})
		},
	}
}

func (c *command) denyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "deny ID", Short: "Say no to a connector as it is now", Args: exactly("an ID"), ValidArgsFunction: c.completeID,
		Long: `Say no: to the question that is open about it, or, where none is, to what is on
disk now. A no is recorded, and holds until the connector changes or you ask again.`,
		Example: "  sallyport deny notes/main",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withConnector(cmd.Context(), args[0], func(h *client.Client, one api.Connector) error {
				var d api.Decision
				if err := h.Post(cmd.Context(), pathOf(one, "/deny"), nil, &d); err != nil {
					return err
				}
				return c.print(d, func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "%s: denied; nothing of it runs\n", shown(one.ID))
					return err
				})
			})
		},
	}
}
