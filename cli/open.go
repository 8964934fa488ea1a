package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/frontend"
	"sallyport/internal/browser"
	"sallyport/internal/coded"
)

func (c *command) openCommand() *cobra.Command {
	var printOnly bool
	cmd := &cobra.Command{
		Use: "open", Short: "Open Sallyport's pages in the browser", Args: exactly(),
		Long: `Open Sallyport's pages in the browser of this system, by a one-time address that
holds for two minutes and signs that browser in. With --print the address is printed
instead. A sidecar is started where none runs.`,
		Example: "  sallyport open\n  sallyport open --print",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !frontend.Built() {
				return &coded.Error{Code: "pages-not-built", Sentence: "this program was built without its pages",
					Next: "build it with: make build; or use the commands (sallyport --help)"}
			}
			if _, err := c.sidecarOrStart(cmd.Context()); err != nil {
				return err
			}
			var link api.PageLink
			err := c.withSidecar(cmd.Context(), func(h *client.Client) error {
				return h.Post(cmd.Context(), "/v1/pages/link", nil, &link)
			})
			if err != nil {
				return err
			}
			if !printOnly && !c.json {
				if err := (browser.Opener{}).Open(cmd.Context(), link.URL); err == nil {
					_, err = fmt.Fprintln(c.Out, "the browser shows Sallyport; if it does not: sallyport open --print")
					return err
				}
			}
			return c.print(link, func(w io.Writer) error {
				_, err := fmt.Fprintln(w, link.URL)
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&printOnly, "print", false, "print the address and open nothing")
	return cmd
}
