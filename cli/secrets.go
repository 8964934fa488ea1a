package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/internal/coded"
)

func (c *command) secretsCommand() *cobra.Command {
	return group("secrets", "Values in the keyring that connectors may be given",
		c.secretsSet(), c.secretsList(), c.secretsDelete(), c.secretsImport(), c.secretsMove())
}

// maxSecretInput bounds what is read from a pipe: more is no secret.
const maxSecretInput = 1 << 20

func (c *command) secretsSet() *cobra.Command {
	return &cobra.Command{
		Use: "set NAME", Short: "Keep a value under a name", Args: exactly("a name"),
		Long: `Keep a value in the system's keyring. It is asked for without being shown, or read
from stdin, every byte of it; it is never an argument. Servers that use it restart.

A connector gets it where its environment says secret:NAME and its approval lists
the name.`,
		Example: "  sallyport secrets set NOTES_TOKEN\n  printf %s \"$TOKEN\" | sallyport secrets set NOTES_TOKEN",
		RunE: func(cmd *cobra.Command, args []string) error {
			value, err := c.readSecret(args[0])
			if err != nil {
				return err
			}
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				return c.keep(cmd.Context(), h, []api.NewSecret{{Name: args[0], Value: value}})
			})
		},
	}
}

// readSecret asks on a terminal without echo, and takes all of stdin otherwise.
func (c *command) readSecret(name string) ([]byte, error) {
	file, ok := c.In.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		value, err := io.ReadAll(io.LimitReader(c.In, maxSecretInput+1))
		if err == nil && len(value) > maxSecretInput {
			err = coded.New("secret-too-large", "what comes from stdin is larger than a secret can be")
		}
		return value, err
	}
	c.say("Value of %s (it is not shown):", name)
	value, err := term.ReadPassword(int(file.Fd()))
	if err != nil {
		return nil, &coded.Error{Code: "answer-needed", Sentence: "no value was given, so nothing was kept"}
	}
	return value, nil
}

// keep stores values one by one and says which are kept now.
func (c *command) keep(ctx context.Context, h *client.Client, values []api.NewSecret) error {
	kept := []string{}
	for _, value := range values {
		var done api.Done
		if err := h.Post(ctx, "/v1/secrets", value, &done); err != nil {
			return err
		}
		kept = append(kept, value.Name)
	}
	return c.print(map[string][]string{"kept": kept}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "kept: %s\n", strings.Join(kept, ", "))
		return err
	})
}

func (c *command) secretsList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the names: kept, asked for, and by whom", Args: exactly(),
		Example: "  sallyport secrets list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list api.SecretList
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				if err := h.Get(cmd.Context(), "/v1/secrets", nil, &list); err != nil {
					return err
				}
				return c.print(list, func(w io.Writer) error { return printSecrets(w, list) })
			})
		},
	}
}

func printSecrets(w io.Writer, list api.SecretList) error {
	if len(list.Secrets) == 0 {
		_, err := fmt.Fprintln(w, "no secrets are kept or asked for; keep one: sallyport secrets set NAME")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tKEPT\tASKED FOR BY")
	for _, one := range list.Secrets {
		kept := "no"
		if one.SetAt != nil {
			kept = "since " + one.SetAt.Local().Format("2 Jan 2006")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", shown(one.Name), kept, shown(strings.Join(one.UsedBy, ", ")))
	}
	if err := table.Flush(); err != nil || list.Next == "" {
		return err
	}
	_, err := fmt.Fprintf(w, "%s\nnext: %s\n", list.Says, list.Next)
	return err
}

func (c *command) secretsDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Short: "Forget a value; servers that use it stop", Args: exactly("a name"),
		Example: "  sallyport secrets delete NOTES_TOKEN",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				var done api.Done
				if err := h.Delete(cmd.Context(), "/v1/secrets/"+url.PathEscape(args[0]), &done); err != nil {
					return err
				}
				return c.print(done, func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "%s is forgotten\n", shown(args[0]))
					return err
				})
			})
		},
	}
}

func (c *command) secretsImport() *cobra.Command {
	return &cobra.Command{
		Use: "import", Short: "Keep every NAME=VALUE line of stdin", Args: exactly(),
		Long: `Read NAME=VALUE lines from stdin, as in a .env file, and keep each in the keyring.
Blank lines and lines that begin with # are skipped. A value is taken as it is
after the first =, without quotes being read. Nothing is kept if a line is wrong.`,
		Example: "  sallyport secrets import < .env",
		RunE: func(cmd *cobra.Command, _ []string) error {
			raw, err := io.ReadAll(io.LimitReader(c.In, maxSecretInput))
			if err != nil {
				return err
			}
			values, err := secretLines(raw)
			if err != nil {
				return err
			}
			return c.withHost(cmd.Context(), func(h *client.Client) error { return c.keep(cmd.Context(), h, values) })
		},
	}
}

// secretLines reads NAME=VALUE lines. A wrong line is named by its number, never
// by its text.
func secretLines(raw []byte) ([]api.NewSecret, error) {
	var values []api.NewSecret
	n := 0
	for line := range bytes.Lines(raw) {
		n++
		line = bytes.TrimRight(line, "\r\n")
		if len(bytes.TrimSpace(line)) == 0 || line[0] == '#' {
			continue
		}
		name, value, ok := bytes.Cut(line, []byte("="))
		if !ok || len(name) == 0 {
			return nil, usage("line %d is not NAME=VALUE; nothing was kept", n)
		}
		values = append(values, api.NewSecret{Name: string(name), Value: value})
	}
	if len(values) == 0 {
		return nil, usage("there is no NAME=VALUE line on stdin")
	}
	return values, nil
}
