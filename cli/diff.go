package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/runtime/approvals"
)

func (c *command) diffCommand() *cobra.Command {
	return &cobra.Command{
		Use: "diff ID", Short: "Show what changed since the approval: files, launch fields, tools", Args: exactly("an ID"),
		ValidArgsFunction: c.completeID,
		Example:           "  sallyport diff notes/main",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withConnector(cmd.Context(), args[0], func(h *client.Client, one api.Connector) error {
				var diff approvals.Diff
				if err := h.Get(cmd.Context(), pathOf(one, "/diff"), nil, &diff); err != nil {
					return err
				}
				return c.print(diff, func(w io.Writer) error {
					p := &page{w: w}
					p.line("%s", diff.Sentence)
					printDiff(p, diff)
					return p.err
				})
			})
		},
	}
}

// printDiff writes the difference as a person reads it: counts, then files with
// their text, then what else. What is the same is not there.
func printDiff(p *page, d approvals.Diff) {
	for _, f := range d.Files {
		p.line("")
		p.line("%s  %s  %s", f.Kind, shown(f.Path), sizeWords(f))
		for line := range lines(f.Text) {
			p.line("  %s", shown(line))
		}
	}
	if d.FilesLeftOut > 0 {
		p.line("\nand %s more", count(d.FilesLeftOut, "file", "files"))
	}
	for _, change := range d.Launch {
		p.line("\n%s (%s)\n  - %s\n  + %s", change.Field, change.Code, shown(change.Old), shown(change.New))
	}
	for _, tool := range d.Tools {
		if tool.Kind == "same" {
			continue
		}
		p.line("\ntool %s  %s", tool.Kind, shown(tool.Name))
		for line := range lines(tool.Text) {
			p.line("  %s", shown(line))
		}
	}
	if d.Note != "" {
		p.line("\nnote: %s", d.Note)
	}
}

func sizeWords(f approvals.FileChange) string {
	switch {
	case f.Text != "":
		return fmt.Sprintf("+%d −%d", f.Added, f.Removed)
	case f.Kind == "added":
		return count(int(f.NewSize), "byte", "bytes")
	case f.Kind == "removed":
		return count(int(f.OldSize), "byte", "bytes")
	case f.OldSize == f.NewSize:
		return fmt.Sprintf("%d bytes %s", f.NewSize, f.Left)
	}
	return fmt.Sprintf("%d → %d bytes %s", f.OldSize, f.NewSize, f.Left)
}
