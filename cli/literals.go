package cli

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/internal/coded"
	"sallyport/runtime/env"
)

func (c *command) secretsMove() *cobra.Command {
	var as string
	cmd := &cobra.Command{
		Use: "move ID [NAME...]", Short: "Move credentials that are written out to the keyring", Args: upTo(100, "an ID"),
		ValidArgsFunction: c.completeID,
		Long: `Keep what a connector has written out in the keyring, and refer to it from there:
everything that looks like a credential, or the variables and headers that you name.
The value is read back before anything is edited, and is never shown.

In config.json and connectors.json secret:NAME takes the value's place; everything
else in the file stays as it is. A plugin's own files are never changed: there an
entry in config.json replaces the value, which the package still holds. What you
agreed to has changed then, so approve the connector again.

To undo it for a plugin, take the entry out of config.json: the package's own value
counts again. Elsewhere put the value back by hand; the keyring has it, and your
system's own keyring program shows it. Sallyport never does.`,
		Example: "  sallyport secrets move notes/main\n  sallyport secrets move notes/main API_KEY --as NOTES_API_KEY",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withConnector(cmd.Context(), args[0], func(h *client.Client, one api.Connector) error {
				moved, err := c.moveSecrets(cmd.Context(), h, one, api.MoveSecrets{Names: args[1:], As: as})
				if err != nil {
					return err
				}
				return c.print(moved, func(w io.Writer) error {
					p := &page{w: w}
					printMoved(p, moved)
					p.line("next: sallyport approve %s", shown(env.Quote(moved.ID)))
					return p.err
				})
			})
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "keep the one value under this `NAME`")
	return cmd
}

func (c *command) moveSecrets(ctx context.Context, h *client.Client, one api.Connector, what api.MoveSecrets) (moved api.MovedSecrets, err error) {
	err = h.Post(ctx, pathOf(one, "/move-secrets"), what, &moved)
	return moved, err
}

func printMoved(p *page, moved api.MovedSecrets) {
	for _, m := range moved.Moved {
		p.line("%s is in the keyring as %s; %s refers to it", shown(m.Name), m.Secret, m.File)
		if m.LeftIn {
			p.line("  the package's own files still hold it; to end that, have it revoked where it was issued")
		}
	}
}

func (c *command) pluginsNotSecret() *cobra.Command {
	var undo bool
	cmd := &cobra.Command{
		Use: "not-secret ID NAME", Short: "Say that what looks like a credential is none", Args: exactly("an ID", "a NAME"),
		ValidArgsFunction: c.completeID,
		Long: `Say that a value which looks like a credential is none. NAME is what the refusal
names: a variable, a header, args[2] (counted from 0) or url. It is written to
config.json and is part of what you approve; the review says it.

Values that can be nothing but credentials stay a warning in the review. To keep one
out of sight instead: sallyport secrets move ID NAME`,
		Example: "  sallyport plugins not-secret notes/main STORE_KEY\n  sallyport plugins not-secret notes/main 'args[2]' --undo",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withConnector(cmd.Context(), args[0], func(h *client.Client, one api.Connector) error {
				var now api.Connector
				if err := h.Post(cmd.Context(), pathOf(one, "/not-secret"), api.NotSecret{Name: args[1], Undo: undo}, &now); err != nil {
					return err
				}
				return c.print(now, func(w io.Writer) error {
					p := &page{w: w}
					p.line("%s", strings.TrimSuffix(shown(now.ID)+": "+now.State+": "+now.Sentence, ": "))
					if now.State == "approval_required" {
						p.line("next: sallyport approve %s", shown(env.Quote(now.ID)))
					} else {
						p.field("next", now.Next)
					}
					return p.err
				})
			})
		},
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "take it back")
	return cmd
}

// moveFirst is what approve --move-to-keyring does before it asks. That there is
// nothing to move is no reason not to ask.
func (c *command) moveFirst(ctx context.Context, h *client.Client, one api.Connector) (api.Connector, error) {
	moved, err := c.moveSecrets(ctx, h, one, api.MoveSecrets{})
	if coded.Of(err) == "literal-none" {
		return one, nil
	}
	if err != nil {
		return one, err
	}
	if !c.json {
		p := &page{w: c.Err}
		printMoved(p, moved)
		if p.err != nil {
			return one, p.err
		}
	}
	return find(ctx, h, one.ID)
}
