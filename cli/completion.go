package cli

import "github.com/spf13/cobra"

// addCompletion adds cobra's own commands now instead of when the command line
// is read, so that they have examples and refuse as the others do.
func addCompletion(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Example = "  sallyport help approve"
		case "completion":
			cmd.RunE, cmd.Args = onlyHolds, cobra.ArbitraryArgs
			cmd.Example = "  sallyport completion bash > /etc/bash_completion.d/sallyport"
			for _, shell := range cmd.Commands() {
				shell.Example = "  sallyport completion " + shell.Name()
			}
		}
	}
}
