package cli

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
)

func (c *command) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version, and the commit it was built from", Args: exactly(),
		Example: "  sallyport version --json",
		RunE: func(*cobra.Command, []string) error {
			answer := map[string]string{"version": c.build.Version, "commit": c.build.Commit, "date": c.build.Date,
				"go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH}
			return c.print(answer, func(w io.Writer) error {
				line := fmt.Sprintf("sallyport %s %s", c.build.Version, answer["system"])
				if c.build.Commit != "" {
					line += fmt.Sprintf(" (commit %s of %s)", c.build.Short(), c.build.Date)
				}
				_, err := fmt.Fprintln(w, line)
				return err
			})
		},
	}
}
