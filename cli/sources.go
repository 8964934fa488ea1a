package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
)

func (c *command) sourcesCommand() *cobra.Command {
	return group("sources", "The folders that plugins are looked for in", c.sourcesList(), c.sourcesAdd(), c.sourcesRemove())
}

func (c *command) sourcesList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the folders that plugins are looked for in", Args: exactly(), Example: "  sallyport sources list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				var now api.Settings
				if err := h.Get(cmd.Context(), "/v1/settings", nil, &now); err != nil {
					return err
				}
				return c.print(now.Sources, func(w io.Writer) error { return printSources(w, now.Sources) })
			})
		},
	}
}

func (c *command) sourcesAdd() *cobra.Command {
	return &cobra.Command{
		Use: "add DIR", Short: "Look for plugins in one more folder", Args: exactly("a folder"),
		Long: `Look for plugins in one more folder: a plugin itself, or a folder of plugins. What is
found there is listed, and nothing of it runs before you approved it. Of two plugins with
one name the one in the earlier folder counts.`,
		Example: "  sallyport sources add ~/work/plugins",
		RunE: func(cmd *cobra.Command, args []string) error {
			folder, err := wholeFolder(args[0])
			if err != nil {
				return err
			}
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				var now api.Settings
				if err := h.Post(cmd.Context(), "/v1/sources", api.SourceChange{Folder: folder}, &now); err != nil {
					return err
				}
				return c.print(now.Sources, func(w io.Writer) error { return printSources(w, now.Sources) })
			})
		},
	}
}

func (c *command) sourcesRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove DIR", Short: "Look for plugins in a folder no longer", Args: exactly("a folder"),
		Long: `Look for plugins in a folder no longer. Servers from there stop; what you approved keeps
its approval for when the folder is added again. Nothing is deleted.`,
		Example: "  sallyport sources remove ~/work/plugins",
		RunE: func(cmd *cobra.Command, args []string) error {
			folder, err := wholeFolder(args[0])
			if err != nil {
				return err
			}
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				// Whoever wrote config.json by hand may have named it in another way.
				var now api.Settings
				if err := h.Get(cmd.Context(), "/v1/settings", nil, &now); err != nil {
					return err
				}
				for _, one := range now.Sources {
					if whole, err := wholeFolder(one.Folder); one.Folder != "" && err == nil && whole == folder || one.Folder == args[0] && args[0] != "" {
						folder = one.Folder
					}
				}
				var removed api.SourceRemoved
				if err := h.Post(cmd.Context(), "/v1/sources/remove", api.SourceChange{Folder: folder}, &removed); err != nil {
					return err
				}
				return c.print(removed.Sources, func(w io.Writer) error { return printSources(w, removed.Sources) })
			})
		},
	}
}

// wholeFolder is a folder as config.json names it: from the root, or from ~/ where it is in
// the home folder.
func wholeFolder(folder string) (string, error) {
	home, _ := os.UserHomeDir()
	if rest, ok := strings.CutPrefix(folder, "~/"); ok && home != "" {
		folder = filepath.Join(home, rest)
	}
	whole, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("cannot tell where the folder is: %w", err)
	}
	if rest, ok := strings.CutPrefix(whole, home+string(filepath.Separator)); ok && home != "" {
		return "~/" + filepath.ToSlash(rest), nil
	}
	return whole, nil
}

func printSources(w io.Writer, sources []api.Source) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "FOLDER\tADDED BY")
	for _, one := range sources {
		by := "Sallyport"
		if one.Folder != "" {
			by = "you"
		}
		fmt.Fprintf(table, "%s\t%s\n", shown(one.Label), by)
	}
	return table.Flush()
}
