package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"sallyport/runtime/health"
)

func (c *command) healthCommand() *cobra.Command {
	var ask health.Question
	cmd := &cobra.Command{
		Use: "health", Short: "Prove that the sidecar is running and healthy", Args: exactly(),
		Long: `Find the sidecar's port, make it prove that it is this installation's, and say
how it is.

After a reinstallation, --expect-version with --expect-instance-not (the instance
that --json showed before) and --expect-within (the folder that the program was
put into) prove that the new program answers.

Exit codes: 0 healthy, 1 unhealthy, 2 wrong usage, 3 not running, 4 another
program is on the port, 5 another version answers, 6 the start from before or a
program from another folder answers.`,
		Example: "  sallyport health --wait 30s --expect-version 1.4.0\n  sallyport health --expect-within /Applications/Sallyport.app --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if ask.Wait < 0 {
				return usage("--wait is a length of time such as 30s")
			}
			ask.StateDir = c.places().State
			found := health.Ask(cmd.Context(), ask)
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
	cmd.Flags().DurationVar(&ask.Wait, "wait", 0, "ask again until it is healthy, for at most this `TIME`")
	cmd.Flags().StringVar(&ask.ExpectVersion, "expect-version", "", "the `VERSION` that must answer")
	cmd.Flags().StringVar(&ask.ExpectInstanceNot, "expect-instance-not", "", "the `INSTANCE` that must not answer any more")
	cmd.Flags().StringVar(&ask.ExpectWithin, "expect-within", "", "the `FOLDER` in which the program that answers must lie")
	return cmd
}
