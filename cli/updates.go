package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/runtime/updates"
)

func (c *command) updatesCommand() *cobra.Command {
	return group("updates", "Ask whether there is a newer Sallyport", c.updatesCheck())
}

func (c *command) updatesCheck() *cobra.Command {
	var check api.UpdateCheck
	cmd := &cobra.Command{
		Use: "check", Short: "Ask once whether there is a newer Sallyport; nothing is installed", Args: exactly(),
		Long: `Ask once whether there is a newer Sallyport. This is the only time that Sallyport asks:
it does not look by itself, and the question says nothing about you or your version.

The answer is a signed file. What is signed by another key, is older than it may be, or
announces an older version is not an update. Nothing is downloaded and nothing is
installed: you get the addresses and hashes of the files for this system. Only public
addresses are asked, unless --manifest names another one, and no proxy is used.`,
		Example: "  sallyport updates check\n  sallyport updates check --manifest https://mirror.example.com/sallyport.json --key KEY",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				var found api.UpdateFound
				if err := h.Post(cmd.Context(), "/v1/updates/check", check, &found); err != nil {
					return err
				}
				return c.print(found, func(w io.Writer) error { return printUpdate(w, found) })
			})
		},
	}
	cmd.Flags().StringVar(&check.Manifest, "manifest", "", "ask at this `URL`, for a mirror of your own; with --key")
	cmd.Flags().StringVar(&check.Key, "key", "", "the public `KEY` that signs there: the base64 of 32 bytes")
	return cmd
}

func printUpdate(w io.Writer, u api.UpdateFound) error {
	p := &page{w: w}
	switch u.State {
	case updates.Newest:
		p.line("this is the newest version: %s", shown(u.Running))
		return p.err
	case updates.Newer:
		p.line("there is a newer version: %s of %s; this is %s", shown(u.Version), u.Date.Format(time.DateOnly), shown(u.Running))
	default:
		p.line("the newest version is %s of %s; this is a build without a version (%s)", shown(u.Version), u.Date.Format(time.DateOnly), shown(u.Running))
	}
	p.field("notes", shown(u.Notes))
	for _, f := range u.Files {
		p.line("  %s/%s %s, %.1f MB", shown(f.OS), shown(f.Arch), shown(f.Kind), float64(f.Size)/1e6)
		p.line("    %s", shown(f.URL))
		p.line("    sha256 %s", shown(f.SHA256))
	}
	if len(u.Files) == 0 {
		p.line("next: the notes say where it is; there is no file for this system")
	} else {
		p.line("next: read the notes, download one file, compare its sha256, and install it as the first time")
	}
	return p.err
}
