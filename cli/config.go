package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sallyport/api"
	"sallyport/api/client"
)

func (c *command) configCommand() *cobra.Command {
	var unset, secret []string
	cmd := &cobra.Command{
		Use: "config ID [KEY=VALUE…]", Short: "Show or give the values that a plugin asks its user for",
		Args: cobra.ArbitraryArgs, ValidArgsFunction: c.completeSetting,
		Long: `Show what the connector's plugin asks its user for (user_config of an MCP bundle),
what it has and what is missing; with KEY=VALUE, give values. A key that takes
several is named several times. Values are kept in config.json.

A sensitive value is never an argument: --secret KEY asks for it without showing
it, or reads all of stdin, and keeps it in the keyring.

Another value is another connector: it has to be approved again.`,
		Example: "  sallyport config notes/main\n  sallyport config notes/main folder=~/Notes folder=~/Work\n" +
			"  printf %s \"$TOKEN\" | sallyport config notes/main --secret api_key\n  sallyport config notes/main --unset folder",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("config needs an ID; see sallyport config --help")
			}
			return c.withConnector(cmd.Context(), args[0], func(h *client.Client, one api.Connector) error {
				return c.config(cmd.Context(), h, one, api.ConfigChange{Unset: unset}, args[1:], secret)
			})
		},
	}
	cmd.Flags().StringArrayVar(&unset, "unset", nil, "take the value of `KEY` back: its default counts again")
	cmd.Flags().StringArrayVar(&secret, "secret", nil, "ask for the value of `KEY`, or read it from stdin, and keep it in the keyring")
	for _, flag := range []string{"unset", "secret"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, c.completeKey) // fails for a flag that is not there only
	}
	return cmd
}

// completeSetting offers ids, and then KEY= of what that connector asks for.
func (c *command) completeSetting(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return c.completeID(cmd, args, begun)
	}
	return c.keysOf(cmd, args[0], begun, "=")
}

func (c *command) completeKey(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.keysOf(cmd, args[0], begun, "")
}

func (c *command) keysOf(cmd *cobra.Command, id, begun, ending string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
	defer cancel()
	var keys []string
	err := c.withConnector(ctx, id, func(h *client.Client, one api.Connector) error {
		var view api.ConfigView
		if err := h.Get(ctx, pathOf(one, "/config"), nil, &view); err != nil {
			return err
		}
		for _, s := range view.Settings {
			if strings.HasPrefix(s.Key+ending, begun) {
				keys = append(keys, s.Key+ending+"\t"+oneLine(s.Title, 60))
			}
		}
		return nil
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return keys, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func (c *command) config(ctx context.Context, h *client.Client, one api.Connector, change api.ConfigChange, given, secret []string) error {
	var view api.ConfigView
	if err := h.Get(ctx, pathOf(one, "/config"), nil, &view); err != nil {
		return err
	}
	var err error
	if change.Set, err = settingsOf(given, view); err != nil {
		return err
	}
	if change.Secrets, err = c.secretSettings(secret); err != nil {
		return err
	}
	if len(given)+len(secret)+len(change.Unset) > 0 {
		if err := h.Post(ctx, pathOf(one, "/config"), change, &view); err != nil {
			return err
		}
	}
	return c.print(view, func(w io.Writer) error { return printConfig(w, view) })
}

// settingsOf reads KEY=VALUE. A path is made whole here, where the person who typed
// it is; after that nothing in a value is read again.
func settingsOf(given []string, view api.ConfigView) (map[string][]string, error) {
	set := map[string][]string{}
	for _, text := range given {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, usage("%s is not KEY=VALUE; see sallyport config --help", quote(text))
		}
		for _, one := range view.Settings {
			if one.Key != key || one.Type != "directory" && one.Type != "file" || value == "" || strings.HasPrefix(value, "secret:") {
				continue
			}
			whole, err := wholePath(value)
			if err != nil {
				return nil, err
			}
			value = whole
		}
		set[key] = append(set[key], value)
	}
	return set, nil
}

func wholePath(path string) (string, error) {
	rest, below := strings.CutPrefix(path, "~/")
	if path != "~" && !below {
		return filepath.Abs(path)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", usage("there is no home folder that ~ could stand for")
	}
	if !below {
		return home, nil
	}
	return filepath.Join(home, rest), nil
}

// secretSettings asks for each value. Of stdin there is one, so one key.
func (c *command) secretSettings(keys []string) (map[string][]byte, error) {
	values := map[string][]byte{}
	for _, key := range keys {
		if strings.Contains(key, "=") {
			return nil, usage("--secret takes a key and no value: the value is asked for, or read from stdin")
		}
		if file, ok := c.In.(*os.File); len(values) > 0 && (!ok || !term.IsTerminal(int(file.Fd()))) {
			return nil, usage("stdin holds the value of one --secret; give the others one by one")
		}
		value, err := c.readSecret(key)
		if err != nil {
			return nil, err
		}
		values[key] = value
	}
	return values, nil
}

func printConfig(w io.Writer, view api.ConfigView) error {
	if len(view.Settings) == 0 {
		_, err := fmt.Fprintf(w, "%s asks for nothing\n", shown(view.ID))
		return err
	}
	for _, one := range view.Settings {
		fmt.Fprintf(w, "%s  %s\n", shown(one.Key), strings.Join(wordsOfSetting(one), ", "))
		for _, text := range []string{one.Title, one.Description} {
			if text != "" {
				fmt.Fprintf(w, "    %s\n", shown(text))
			}
		}
		switch {
		case one.Set:
			fmt.Fprintf(w, "    is %s\n", valuesOf(one.Value))
		case len(one.Default) > 0:
			fmt.Fprintf(w, "    is %s, by default\n", valuesOf(one.Default))
		default:
			fmt.Fprintln(w, "    has no value")
		}
	}
	if len(view.Missing) > 0 {
		_, err := fmt.Fprintf(w, "missing: %s; it cannot start without\n", shown(strings.Join(view.Missing, ", ")))
		return err
	}
	return nil
}

func wordsOfSetting(one api.Setting) []string {
	words := []string{one.Type}
	for _, word := range []struct {
		is   bool
		text string
	}{{one.Multiple, "one or more"}, {one.Required, "required"}, {one.Sensitive, "kept in the keyring"},
		{one.Min != "", "at least " + shown(one.Min)}, {one.Max != "", "at most " + shown(one.Max)}} {
		if word.is {
			words = append(words, word.text)
		}
	}
	return words
}

func valuesOf(values []string) string {
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = quote(value)
	}
	if len(quoted) == 0 {
		return "left empty"
	}
	return strings.Join(quoted, ", ")
}
