package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"sallyport/runtime/health"
)

func (c *command) healthCommand() *cobra.Command {
	var wait time.Duration
	var version string
	cmd := &cobra.Command{
		Use: "health", Short: "Prove that the sidecar is running and healthy", Args: exactly(),
		Long: `Find the sidecar's port, make it prove that it is this installation's, and say
how it is.

Exit codes: 0 healthy, 1 unhealthy, 2 wrong usage, 3 not running, 4 another
program is on the port, 5 another version answers.`,
		Example: "  sallyport health --wait 30s --expect-version 1.4.0",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wait < 0 {
				return usage("--wait is a length of time such as 30s")
			}
			found := health.Ask(cmd.Context(), health.Question{StateDir: c.places().State, ExpectVersion: version, Wait: wait})
			err := c.print(found, func(w io.Writer) error {
				text := found.Sentence
				if found.URL != "" {
					text += " at " + found.URL
				}
				_, err := fmt.Fprintln(w, text)
				return err
			})
			if err != nil || found.Outcome == health.Healthy {
				return err
			}
			return &exitError{code: found.Outcome.ExitCode()}
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "ask again until it is healthy, for at most this `TIME`")
	cmd.Flags().StringVar(&version, "expect-version", "", "the `VERSION` that must answer")
	return cmd
}
