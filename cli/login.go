package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/internal/coded"
)

func (c *command) loginCommand() *cobra.Command {
	var noBrowser bool
	cmd := &cobra.Command{
		Use: "login ID", Short: "Sign in to a server that wants it", Args: exactly("an ID"), ValidArgsFunction: c.completeID,
		Long: `Sign in to a server that Sallyport connects to. Your browser is opened at the
server's own sign-in; what that gives is kept in the keyring, for this connector at
this address only, and renewed by itself. Ctrl-C gives up; so do 5 minutes.

The connector has to be approved first, and so has the host of the sign-in, if it is
another than the server's own.`,
		Example: "  sallyport login notes-sync/main\n  sallyport login notes-sync/main --no-browser",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withConnector(cmd.Context(), args[0], func(h *client.Client, one api.Connector) error {
				ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
				defer stop()
				return c.login(ctx, h, one, noBrowser)
			})
		},
	}
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "print the address and open no browser")
	return cmd
}

func (c *command) login(ctx context.Context, h *client.Client, one api.Connector, noBrowser bool) error {
	var state api.Login
	if err := h.Post(ctx, pathOf(one, "/login"), api.BeginLogin{NoBrowser: noBrowser}, &state); err != nil {
		return err
	}
	if state.State == "waiting" {
		c.sayAddress(state)
	}
	for state.State == "waiting" {
		// An answer that is not over is of this attempt again, so there is no rush.
		if err := h.Get(ctx, pathOf(one, "/login"), url.Values{"wait": {watchPoll}}, &state); err != nil {
			if ctx.Err() != nil {
				return c.giveUp(ctx, h, one)
			}
			return err
		}
	}
	if state.State == "failed" {
		return &coded.Error{Code: state.Code, Sentence: state.Sentence, Next: state.Next}
	}
	return c.print(state, func(w io.Writer) error { return printLogin(w, state) })
}

// sayAddress shows where to sign in. With --json it goes to stderr too, for whoever has
// no browser here.
func (c *command) sayAddress(state api.Login) {
	if state.Opened {
		c.say("Sign in in the browser that opens. If none does, open this address yourself:")
	} else {
		c.say("Open this address in a browser on this computer and sign in:")
	}
	fmt.Fprintf(c.Err, "\n  %s\n\n", shown(state.Address))
}

// giveUp cancels the attempt: the address must not work after Ctrl-C.
func (c *command) giveUp(ctx context.Context, h *client.Client, one api.Connector) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := h.Delete(ctx, pathOf(one, "/login"), nil); err != nil {
		return err
	}
	return &coded.Error{Code: "oauth-login-cancelled", Sentence: "the sign-in was cancelled"}
}

func printLogin(w io.Writer, state api.Login) error {
	p := &page{w: w}
	p.line("%s: you are signed in", shown(state.Connector))
	switch {
	case state.Code != "":
		p.line("but it did not come up: %s", shown(state.Sentence))
		if state.Next != "" {
			p.line("next: %s", shown(state.Next))
		}
	case state.Decision != "":
		p.line("next: choose its tools: sallyport approve %s", shown(state.Connector))
	}
	return p.err
}

func (c *command) logoutCommand() *cobra.Command {
	return &cobra.Command{
		Use: "logout ID", Short: "Forget what signing in to a server gave, and stop it", Args: exactly("an ID"), ValidArgsFunction: c.completeID,
		Long: `Remove a connector's tokens from the keyring. The server itself is not told: end the
access in its own settings as well if somebody else may have the tokens.`,
		Example: "  sallyport logout notes-sync/main",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withConnector(cmd.Context(), args[0], func(h *client.Client, one api.Connector) error {
				var done api.Logout
				if err := h.Post(cmd.Context(), pathOf(one, "/logout"), nil, &done); err != nil {
					return err
				}
				return c.print(done, func(w io.Writer) error {
					text := "its tokens are forgotten"
					if done.Forgotten == 0 {
						text = "nobody was signed in"
					}
					_, err := fmt.Fprintf(w, "%s: %s\n", shown(one.ID), text)
					return err
				})
			})
		},
	}
}
