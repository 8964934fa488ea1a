package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"sallyport/internal/coded"
	"sallyport/runtime/artifact"
)

func (c *command) digestCommand() *cobra.Command {
	return &cobra.Command{
		Use: "digest DIR", Short: "Print the artifact digest of a folder", Args: exactly("a folder"),
		Long: `Print the one name of this exact tree of files (spec/artifact-digest.md).

A tree that has no digest prints "error CODE PATH" to stderr and exits with 1.`,
		Example: "  sallyport digest ~/.agents/plugins/notes",
		RunE: func(cmd *cobra.Command, args []string) error {
			tree, err := artifact.Of(cmd.Context(), args[0], artifact.Options{})
			if err != nil {
				return c.digestRefused(err)
			}
			for _, warning := range tree.Warnings {
				fmt.Fprintf(c.Err, "warning %s %s\n", warning.Code, warning.Path)
			}
			return c.print(digestAnswer(tree), func(w io.Writer) error {
				_, err := fmt.Fprintln(w, tree.Digest)
				return err
			})
		},
	}
}

func digestAnswer(tree *artifact.Tree) any {
	return map[string]any{"digest": tree.Digest, "files": tree.Files, "folders": tree.Dirs,
		"links": tree.Links, "bytes": tree.Bytes, "warnings": tree.Warnings}
}

func (c *command) digestRefused(err error) error {
	var refused *coded.Error
	if !errors.As(err, &refused) {
		return err
	}
	fmt.Fprintf(c.Err, "error %s %s\n", refused.Code, refused.Path)
	if c.json {
		_ = c.printJSON(map[string]string{"error": refused.Code, "path": refused.Path})
	}
	return &exitError{code: exitRefused}
}
