package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/frontend"
	"sallyport/internal/browser"
	"sallyport/internal/coded"
)

func (c *command) openCommand() *cobra.Command {
	var printOnly, noStart bool
	var review string
	cmd := &cobra.Command{
		Use: "open", Short: "Open Sallyport's pages in the browser", Args: exactly(),
		Long: `Open Sallyport's pages in the browser of this system, by a one-time address that
holds for two minutes and signs that browser in. With --print the address is printed
instead. A sidecar is started where none runs, unless --no-start is given.`,
		Example: "  sallyport open\n  sallyport open --print\n  sallyport open --review d-abc…",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ask := c.pageLink
			if noStart {
				ask = c.pageLinkOfRunning
			}
			link, err := ask(cmd.Context(), review)
			if err != nil {
				return err
			}
			if !printOnly && !c.json {
				err := (browser.Opener{}).Open(cmd.Context(), link.URL)
				if err == nil {
					_, err = fmt.Fprintln(c.Out, "the browser shows Sallyport; if it does not: sallyport open --print")
					return err
				}
				if noStart {
					return err // another program asked: it has to know, and shows nobody the address
				}
			}
			return c.print(link, func(w io.Writer) error {
				_, err := fmt.Fprintln(w, link.URL)
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&printOnly, "print", false, "print the address and open nothing")
	cmd.Flags().BoolVar(&noStart, "no-start", false, "fail where no sidecar runs or no browser can be opened, for use by another program")
	cmd.Flags().StringVar(&review, "review", "", "open the review of the decision with this `ID`")
	_ = cmd.RegisterFlagCompletionFunc("review", c.completeDecision) // the flag is there
	return cmd
}

// pageLink returns a one-time address of the pages, or of one decision's review. It
// starts a sidecar where none runs.
func (c *command) pageLink(ctx context.Context, review string) (api.PageLink, error) {
	if frontend.Built() {
		if _, err := c.sidecarOrStart(ctx); err != nil {
			return api.PageLink{}, err
		}
	}
	return c.pageLinkOfRunning(ctx, review)
}

// pageLinkOfRunning is pageLink, and starts nothing.
func (c *command) pageLinkOfRunning(ctx context.Context, review string) (api.PageLink, error) {
	var link api.PageLink
	if !frontend.Built() {
		return link, &coded.Error{Code: "pages-not-built", Sentence: "this program was built without its pages",
			Next: "build it with: make build; or use the commands (sallyport --help)"}
	}
	path := "/v1/pages/link"
	if review != "" {
		path += "?" + url.Values{"review": {review}}.Encode()
	}
	err := c.withSidecar(ctx, func(h *client.Client) error { return h.Post(ctx, path, nil, &link) })
	return link, err
}
