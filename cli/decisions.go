package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/runtime/approvals"
)

func (c *command) decisionsCommand() *cobra.Command {
	return group("decisions", "The questions that wait for you, and those that were answered",
		c.decisionsList(), c.decisionsShow(), c.decisionsAnswer(), c.decisionsWatch(), c.acceptStore(), c.sealKey())
}

func (c *command) decisionsList() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the open decisions", Args: exactly(),
		Example: "  sallyport decisions list --all --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{}
			if !all {
				query.Set("open", "true")
			}
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				var list api.DecisionList
				if err := h.Get(cmd.Context(), "/v1/decisions", query, &list); err != nil {
					return err
				}
				return c.print(list.Decisions, func(w io.Writer) error { return printDecisions(w, list.Decisions) })
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also those that are closed")
	return cmd
}

func printDecisions(w io.Writer, decisions []api.Decision) error {
	if len(decisions) == 0 {
		_, err := fmt.Fprintln(w, "nothing waits for an answer")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tABOUT\tQUESTION\tSTATE\tTIME LEFT")
	for _, d := range decisions {
		left := "-"
		if d.State == "open" {
			left = time.Until(d.ExpiresAt).Round(time.Second).String()
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", d.ID, shown(d.Subject), question(d), d.State, left)
	}
	return table.Flush()
}

func question(d api.Decision) string {
	switch {
	case d.Call != nil:
		return "may " + shown(d.Call.Client) + " run " + shown(d.Call.Tool) + "?"
	case d.Stage == "tools":
		return "which tools?"
	}
	return map[bool]string{true: d.Action + "?", false: "may it run? (" + d.Action + ")"}[d.Bundle != nil]
}

func (c *command) decisionsShow() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show one decision with its journal", Args: exactly("a decision's ID"),
		ValidArgsFunction: c.completeDecision,
		Example:           "  sallyport decisions show d-abc…",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				var d api.DecisionDetail
				if err := h.Get(cmd.Context(), "/v1/decisions/"+url.PathEscape(args[0]), nil, &d); err != nil {
					return err
				}
				return c.print(d, func(w io.Writer) error { return printDecision(w, d) })
			})
		},
	}
}

func printDecision(w io.Writer, d api.DecisionDetail) error {
	p := &page{w: w}
	p.line("%s  %s", d.ID, d.State)
	p.field("about", shown(d.Subject)+" "+oneLine(d.Version, 20))
	switch {
	case d.Call != nil:
		printCall(p, *d.Call)
	case d.Bundle != nil:
		printBundle(p, d.Decision)
	default:
		p.field("question", question(d.Decision))
		p.field("digest", d.Digest)
	}
	p.field("identity", d.Identity)
	if d.AnsweredBy != nil {
		p.field("answer", d.Answer+" by "+d.AnsweredBy.String())
	}
	for _, tool := range d.Tools {
		p.line("  tool %-20s %-12s %s", shown(tool.Name), string(tool.Suggested)+" "+tool.Refused, oneLine(tool.Description, 60))
	}
	p.line("journal")
	for _, entry := range d.Journal {
		p.line("  %s  %-12s %s %s", entry.At.Local().Format(time.DateTime), entry.Event, entry.By, shown(entry.Detail))
	}
	switch {
	case d.State == "open" && d.Call != nil:
		p.line("\nanswer: sallyport decisions answer %s allow|deny  (allow --for session|8h|always holds for this tool and this agent)", d.ID)
	case d.State == "open":
		p.line("\nanswer: sallyport approve %s, or sallyport decisions answer %s allow|deny", shown(d.Subject), d.ID)
	}
	return p.err
}

// printCall shows a call: the sentence first, then what would be sent.
func printCall(p *page, call api.CallQuestion) {
	p.line("\n%s\n", call.Sentence)
	p.field("risk", string(call.Class))
	p.line("arguments")
	if call.Arguments == "" {
		p.line("  not kept once the question is closed")
	}
	for line := range lines(call.Arguments) {
		p.line("  %s", line)
	}
	if call.LeftOut {
		p.line("  … and more that is not shown; an answer is for all of it")
	}
	p.field("sent", call.Sent)
	if call.For != "" {
		p.field("allowed for", string(call.For))
	}
}

func (c *command) decisionsAnswer() *cobra.Command {
	var choice toolChoice
	var lasting string
	var unpinned bool
	cmd := &cobra.Command{
		Use: "answer ID allow|deny", Short: "Answer a decision", Args: exactly("a decision's ID", "allow or deny"),
		ValidArgsFunction: c.completeDecision,
		Long: `Answer one decision. Allowing a plugin to run tries it, and opens the next
decision: which tools. That one is answered with --tools, --read-only or
--all-tools. sallyport approve does both in one go.

An allow of a call is for this call: these bytes, this agent, once. With --for it
holds longer, for this tool and this agent: session (until Sallyport quits), 8h, or
always. Such answers are listed by sallyport policy list, end when the connector is
approved anew, and are taken back with sallyport policy remove.`,
		Example: "  sallyport decisions answer d-abc… allow\n  sallyport decisions answer d-def… allow --tools list_notes,add_note\n  sallyport decisions answer d-ghi… allow --for 8h",
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] != "allow" && args[1] != "deny" {
				return usage("the answer is allow or deny, not %q", args[1])
			}
			if err := choice.check(); err != nil {
				return err
			}
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				given := api.Answer{Answer: args[1], AcceptUnpinned: unpinned, For: approvals.Lasting(lasting)}
				next, err := c.answer(cmd.Context(), h, args[0], given, choice)
				if err != nil {
					return err
				}
				return c.print(next, func(w io.Writer) error { return printAnswered(w, next) })
			})
		},
	}
	choice.flags(cmd)
	cmd.Flags().BoolVar(&unpinned, "accept-unpinned", false, "accept that it downloads code at every start which the approval does not fix")
	cmd.Flags().StringVar(&lasting, "for", "", "how `LONG` an allow of a call holds: once (the default), session, 8h or always")
	return cmd
}

func printAnswered(w io.Writer, d api.Decision) error {
	p := &page{w: w}
	switch {
	case d.Call != nil && d.State == "allowed":
		p.line("%s may run %s: %s", shown(d.Call.Client), shown(d.Call.Tool), d.Call.For)
	case d.State == "open" && d.Stage == "tools":
		p.line("%s runs. Which of its %s may agents call?", shown(d.Subject), count(len(d.Tools), "tool", "tools"))
		p.line("next: sallyport decisions answer %s allow --tools NAME,… (or --read-only, --all-tools)", d.ID)
	case d.State == "allowed":
		p.line("%s: %s allowed", shown(d.Subject), count(len(d.Chosen), "tool", "tools"))
	default:
		p.line("%s: %s", shown(d.Subject), d.State)
	}
	return p.err
}

func (c *command) acceptStore() *cobra.Command {
	var yes, keyLost bool
	cmd := &cobra.Command{
		Use: "accept-store", Short: "Make a store that was found put back count again", Args: exactly(),
		Long: `Where an older database was put back, or the seal key was lost, no approval in it
counts (approval-rolled-back, seal-key-missing). Look at what it says first:
sallyport plugins list, sallyport audit list. This makes it count as it is; records
whose own seals do not verify are kept aside and have to be approved again.

With --key-lost it also gives up a key in a keyring that can no longer be had
(seal-key-unavailable). A new one is made, and nothing counts that was sealed with the
old one, even if that comes back.`,
		Example: "  sallyport decisions accept-store --yes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !yes {
				return usage("accept-store needs --yes: it makes old approvals count again")
			}
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				done, route := api.Done{OK: true}, "/v1/decisions/accept-store"
				var answer any = &done
				if keyLost {
					route, answer = "/v1/seal-key/accept-loss", &api.SealKey{}
				}
				if err := h.Post(cmd.Context(), route, nil, answer); err != nil {
					return err
				}
				return c.print(done, func(w io.Writer) error {
					_, err := fmt.Fprintln(w, "the store counts as it is; see what is approved: sallyport plugins list")
					return err
				})
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "you have looked, and mean it")
	cmd.Flags().BoolVar(&keyLost, "key-lost", false, "the keyring that has the seal key is gone for good")
	return cmd
}

func (c *command) sealKey() *cobra.Command {
	return &cobra.Command{
		Use: "seal-key [keyring|file]", Short: "Say where the key is that seals approvals, or move it", Args: cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"keyring", "file"},
		Long: `Approvals are sealed with a key, so that nobody can make one by editing the database.
It is in the system's keyring, or in a file where there was no keyring at the first
start. Moving it changes no approval and can be undone by moving it back.`,
		Example: "  sallyport decisions seal-key\n  sallyport decisions seal-key keyring",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHost(cmd.Context(), func(h *client.Client) (err error) {
				var key api.SealKey
				if len(args) == 0 {
					err = h.Get(cmd.Context(), "/v1/seal-key", nil, &key)
				} else {
					err = h.Post(cmd.Context(), "/v1/seal-key/move", api.MoveSealKey{To: approvals.KeyPlace(args[0])}, &key)
				}
				if err != nil {
					return err
				}
				return c.print(key, func(w io.Writer) error { return printSealKey(w, key) })
			})
		},
	}
}

func printSealKey(w io.Writer, key api.SealKey) error {
	p := &page{w: w}
	switch key.In {
	case approvals.KeyInKeyring:
		p.line("the seal key is in the keyring")
	case approvals.KeyInFile:
		p.line("the seal key is in a file; where there is a keyring: sallyport decisions seal-key keyring")
	default:
		p.line("there is no seal key yet")
	}
	if key.Waiting {
		p.line("%s", key.Says)
		p.line("next: %s", key.Next)
	}
	return p.err
}

// completeDecision offers the open decisions' IDs to the shell.
func (c *command) completeDecision(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
	defer cancel()
	var ids []string
	err := c.withHost(ctx, func(h *client.Client) error {
		var list api.DecisionList
		if err := h.Get(ctx, "/v1/decisions", url.Values{"open": {"true"}}, &list); err != nil {
			return err
		}
		for _, d := range list.Decisions {
			if strings.HasPrefix(d.ID, begun) {
				ids = append(ids, d.ID+"\t"+shown(d.Subject))
			}
		}
		return nil
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
