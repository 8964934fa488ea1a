package cli

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/runtime/approvals"
	"sallyport/runtime/permissions"
)

func (c *command) policyCommand() *cobra.Command {
	return group("policy", "Which calls are allowed, asked about or denied", c.policyList(), c.policySet(), c.policyRemove())
}

func (c *command) policyList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the rules, and the answers that hold", Args: exactly(), Example: "  sallyport policy list --json",
		Long: `List what decides about a call, the most specific first: an answer that holds for
this client and tool, a rule for both, a rule for the tool, a rule for the client and
the tool's class, a rule for the class. Without any, a tool that is confirmed as
reading only is called, and everything else is asked about.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				var policy approvals.Policy
				if err := h.Get(cmd.Context(), "/v1/policy", nil, &policy); err != nil {
					return err
				}
				return c.print(policy, func(w io.Writer) error { return printPolicy(w, policy) })
			})
		},
	}
}

// about is the flags that say which rule.
type about struct{ class, tool, client string }

func (a *about) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.class, "class", "", "the rule for a `CLASS` of tools: read, write, destructive or unknown")
	cmd.Flags().StringVar(&a.tool, "tool", "", "the rule for one tool: `PLUGIN/SERVER:TOOL`")
	cmd.Flags().StringVar(&a.client, "client", "", "only for the agent of this `NAME`")
}

func (a *about) change(verdict string) (api.PolicyChange, error) {
	if (a.class == "") == (a.tool == "") {
		return api.PolicyChange{}, usage("give one of --class and --tool")
	}
	return api.PolicyChange{Class: permissions.Class(a.class), Tool: a.tool, Client: a.client, Verdict: verdict}, nil
}

func (c *command) policySet() *cobra.Command {
	var which about
	cmd := &cobra.Command{
		Use: "set allow|ask|deny|remove", Short: "Set or remove one rule", Args: exactly("allow, ask, deny or remove"),
		Long: `Set the rule for a tool or for a class of tools, for every agent or for one. The
class is the one that was confirmed when the tools were chosen; what nobody confirmed
is unknown. A rule about a tool comes before what its approval says.`,
		Example: "  sallyport policy set --tool notes/main:delete_note deny\n  sallyport policy set --class write --client claude allow",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch args[0] {
			case "allow", "ask", "deny", "remove":
				return c.changePolicy(cmd, which, args[0])
			}
			return usage("a rule says allow, ask, deny or remove, not %q", args[0])
		},
	}
	which.flags(cmd)
	return cmd
}

func (c *command) policyRemove() *cobra.Command {
	var which about
	cmd := &cobra.Command{
		Use: "remove", Short: "Remove one rule, or take back an answer that holds", Args: exactly(),
		Long: `Remove the rule for a tool or a class. With --tool and --client this also takes back
the answers "until I quit", "8 hours" and "always" for them.`,
		Example: "  sallyport policy remove --tool notes/main:delete_note --client claude",
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.changePolicy(cmd, which, "remove") },
	}
	which.flags(cmd)
	return cmd
}

func (c *command) changePolicy(cmd *cobra.Command, which about, verdict string) error {
	change, err := which.change(verdict)
	if err != nil {
		return err
	}
	return c.withHost(cmd.Context(), func(h *client.Client) error {
		var policy approvals.Policy
		if err := h.Post(cmd.Context(), "/v1/policy", change, &policy); err != nil {
			return err
		}
		return c.print(policy, func(w io.Writer) error { return printPolicy(w, policy) })
	})
}

func printPolicy(w io.Writer, policy approvals.Policy) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ABOUT\tAGENT\tCALLS ARE\tUNTIL")
	for _, s := range policy.Standing {
		until := map[approvals.Lasting]string{approvals.ForSession: "Sallyport quits", approvals.ForAlways: "you take it back"}[s.For]
		if s.For == approvals.ForHours {
			until = s.Until.Local().Format(time.DateTime)
		}
		fmt.Fprintf(table, "%s\t%s\tallowed (you answered)\t%s\n", shown(s.Tool), shown(s.Client), until)
	}
	for _, r := range policy.Rules {
		what, who := r.Tool, r.Client
		if r.Class != "" {
			what = "class " + string(r.Class)
		}
		if who == "" {
			who = "every agent"
		}
		word := map[approvals.Verdict]string{approvals.MayCall: "allowed", approvals.MustAsk: "asked about", approvals.NotAtAll: "denied"}[r.Verdict]
		fmt.Fprintf(table, "%s\t%s\t%s\tyou change it\n", shown(what), shown(who), word)
	}
	for _, tool := range policy.Approved {
		fmt.Fprintf(table, "%s\tevery agent\tallowed (as approved)\tit is approved anew\n", shown(tool))
	}
	fmt.Fprintln(table, "confirmed as read\tevery agent\tallowed (default)\t")
	fmt.Fprintln(table, "everything else\tevery agent\tasked about (default)\t")
	return table.Flush()
}
