package cli

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
)

func (c *command) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: exactly(),
		Example: "  sallyport version --json",
		RunE: func(*cobra.Command, []string) error {
			answer := map[string]string{"version": c.version, "go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH}
			return c.print(answer, func(w io.Writer) error {
				_, err := fmt.Fprintln(w, "sallyport", c.version, answer["system"])
				return err
			})
		},
	}
}
