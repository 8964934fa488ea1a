package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
)

func (c *command) toolsCommand() *cobra.Command {
	cmd := group("tools", "The tools that agents may call", c.toolsList())
	cmd.RunE = c.toolsList().RunE
	cmd.Args = exactly()
	return cmd
}

func (c *command) toolsList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List every tool that may be called", Args: exactly(),
		Example: "  sallyport tools list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				var list api.ToolList
				if err := h.Get(cmd.Context(), "/v1/tools", nil, &list); err != nil {
					return err
				}
				return c.print(list.Tools, func(w io.Writer) error { return printTools(w, list.Tools) })
			})
		},
	}
}

func printTools(w io.Writer, tools []api.Tool) error {
	if len(tools) == 0 {
		_, err := fmt.Fprintln(w, "no tools may be called yet; see: sallyport plugins list")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CONNECTOR\tTOOL\tCLASS\tAGENTS SEE\tDESCRIPTION (by the plugin)")
	for _, t := range tools {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", shown(t.Connector), shown(t.Name), t.Class, t.Exposed, oneLine(t.Description, 50))
	}
	return table.Flush()
}

func (c *command) callCommand() *cobra.Command {
	var args string
	cmd := &cobra.Command{
		Use: "call ID TOOL", Short: "Call one tool through the same gate as agents", Args: exactly("an ID", "a tool"),
		ValidArgsFunction: c.completeCall,
		Long: `Call one tool, as agents do: the same approval, the same pins, the same audit.
A refused call prints its reason code and exits with 1.`,
		Example: `  sallyport call notes/main add_note --args '{"text":"buy milk"}'`,
		RunE: func(cmd *cobra.Command, words []string) error {
			if !json.Valid([]byte(args)) {
				return usage("--args is not JSON")
			}
			return c.withConnector(cmd.Context(), words[0], func(h *client.Client, one api.Connector) error {
				var result api.ToolResult
				call := api.ToolCall{Tool: words[1], Args: json.RawMessage(args)}
				if err := h.Post(cmd.Context(), pathOf(one, "/call"), call, &result); err != nil {
					return err
				}
				return c.printResult(result.Result)
			})
		},
	}
	cmd.Flags().StringVar(&args, "args", "{}", "the arguments, a JSON `OBJECT`")
	return cmd
}

// printRaw prints the server's own bytes: a number or text in them is not ours
// to rewrite. Only a person's terminal is spared what cannot be seen.
func (c *command) printRaw(raw json.RawMessage) error {
	out, flush := c.forEyes()
	if _, err := fmt.Fprintf(out, "%s\n", raw); err != nil {
		return err
	}
	return flush()
}

// printResult prints the text of a result, and anything else as JSON. A result
// that says it is an error exits with 1.
func (c *command) printResult(raw json.RawMessage) error {
	var result struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		IsError bool `json:"isError"`
	}
	readable := json.Unmarshal(raw, &result) == nil && len(result.Content) > 0
	if c.json || !readable {
		if err := c.printRaw(raw); err != nil || !result.IsError {
			return err
		}
		return &exitError{code: exitRefused}
	}
	for _, part := range result.Content {
		text := part.Text
		if part.Type != "text" {
			text = "(" + part.Type + ")"
		}
		for line := range lines(text) {
			if _, err := fmt.Fprintln(terminal{c.Out}, line); err != nil {
				return err
			}
		}
	}
	if result.IsError {
		return &exitError{code: exitRefused}
	}
	return nil
}

// completeCall offers the connectors' ids, and then the tools of the one that was named.
func (c *command) completeCall(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return c.completeID(cmd, args, begun)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
	defer cancel()
	var names []string
	err := c.withConnector(ctx, args[0], func(h *client.Client, one api.Connector) error {
		var list api.ToolList
		if err := h.Get(ctx, "/v1/tools", nil, &list); err != nil {
			return err
		}
		for _, tool := range list.Tools {
			if tool.Connector == one.ID && strings.HasPrefix(tool.Name, begun) {
				names = append(names, tool.Name)
			}
		}
		return nil
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
