package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/internal/coded"
	"sallyport/runtime/approvals"
	"sallyport/runtime/permissions"
)

// toolChoice is which tools to allow. Nothing is chosen by default.
type toolChoice struct {
	tools    []string
	readOnly bool
	all      bool
	same     bool
	ask      bool // before each call that does more than read
	// suggested confirms the classes that a person was shown beside the tools.
	suggested bool
}

func (t *toolChoice) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&t.tools, "tools", nil, "allow these tools: `NAME`,NAME")
	f.BoolVar(&t.readOnly, "read-only", false, "allow the tools that seem only to read, by their name and schema")
	f.BoolVar(&t.all, "all-tools", false, "allow every tool that can be pinned")
	f.BoolVar(&t.same, "same-tools", false, "allow those allowed before whose definition is unchanged")
	f.BoolVar(&t.ask, "ask", false, "be asked before each call of them, unless it is confirmed that they only read")
}

func (t *toolChoice) check() error {
	n := 0
	for _, given := range []bool{len(t.tools) > 0, t.readOnly, t.all, t.same} {
		if given {
			n++
		}
	}
	if t.ask && n == 0 {
		return usage("--ask goes with --tools, --read-only, --all-tools or --same-tools")
	}
	if n > 1 {
		return usage("give one of --tools, --read-only, --all-tools and --same-tools")
	}
	return nil
}

func (t *toolChoice) given() bool { return len(t.tools) > 0 || t.readOnly || t.all || t.same }

// from picks the tools on offer that the choice means.
func (t *toolChoice) from(offered []approvals.OfferedTool) []string {
	chosen := []string{}
	if len(t.tools) > 0 {
		return append(chosen, t.tools...)
	}
	for _, tool := range offered {
		wanted := t.all || t.readOnly && tool.Suggested == permissions.Read || t.same && tool.Before == "same"
		if wanted && tool.Refused == "" {
			chosen = append(chosen, tool.Name)
		}
	}
	return chosen
}

// onOffer refuses a name that the server does not offer, and says which it does.
func (t *toolChoice) onOffer(offered []approvals.OfferedTool) error {
	var names []string
	for _, tool := range offered {
		names = append(names, tool.Name)
	}
	for _, name := range t.tools {
		if !slices.Contains(names, name) {
			return &coded.Error{Code: "tool-missing", Sentence: "the server does not offer " + quote(name) + ", so no tool was allowed",
				Next: "choose among " + strings.Join(names, ", ")}
		}
	}
	return nil
}

// classes confirms, for tools chosen as reading only, that this is what they are;
// and what a person was shown, where a person chose.
func (t *toolChoice) classes(chosen []string, offered []approvals.OfferedTool) map[string]permissions.Class {
	classes := map[string]permissions.Class{}
	for _, tool := range offered {
		switch {
		case !slices.Contains(chosen, tool.Name):
		case t.readOnly:
			classes[tool.Name] = permissions.Read
		case t.suggested:
			classes[tool.Name] = tool.Suggested
		}
	}
	return classes
}

func (c *command) approveCommand() *cobra.Command {
	var choice toolChoice
	var how approveHow
	var move bool
	cmd := &cobra.Command{
		Use: "approve ID", Short: "Look at a connector, and decide: may it run, and which tools", Args: exactly("an ID"),
		ValidArgsFunction: c.completeID,
		Long: `Show everything about a connector as it is on disk now, ask whether it may run,
try it, and ask which of its tools agents may call.

While it is tried, a terminal shows how far that is, and Ctrl-C ends it: then nothing
is approved. One that does not come up shows the end of its error output.

For scripts: --yes answers the first question, and --tools, --read-only,
--all-tools or --same-tools the second. Without one of those no tool is allowed,
and the connector stays at tools_required. A command line that downloads code at
every start (npx, uvx, docker run …) needs --accept-unpinned as well, because that
code is not fixed by the approval; sallyport vendor fixes it first.

Tools chosen that way are called without asking: naming them is the answer. With
--ask you are asked before each call of a tool that is not confirmed as reading
only; see sallyport decisions and sallyport policy. In a terminal this is the last
question, and Enter means that you are asked.`,
		Example: "  sallyport approve notes/main\n  sallyport approve notes/main --yes --tools list_notes,search_notes\n  sallyport approve notes/main --yes --all-tools --ask",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := choice.check(); err != nil {
				return err
			}
			return c.withConnector(cmd.Context(), args[0], func(h *client.Client, one api.Connector) error {
				if move {
					var err error
					if one, err = c.moveFirst(cmd.Context(), h, one); err != nil {
						return err
					}
				}
				return c.approve(cmd.Context(), h, one, choice, how)
			})
		},
	}
	choice.flags(cmd)
	cmd.Flags().BoolVar(&how.yes, "yes", false, "answer that it may run, without being asked")
	cmd.Flags().BoolVar(&move, "move-to-keyring", false, "first move credentials that are written out to the keyring (sallyport secrets move)")
	cmd.Flags().BoolVar(&how.unpinned, "accept-unpinned", false, "accept that it downloads code at every start which this approval does not fix")
	return cmd
}

// approveHow is how the question whether it may run is answered.
type approveHow struct{ yes, unpinned bool }

// approve asks both questions in order. What was answered stays answered where
// the second is left open.
func (c *command) approve(ctx context.Context, h *client.Client, one api.Connector, choice toolChoice, how approveHow) error {
	asker := c.asker()
	if !how.yes && asker == nil {
		return &coded.Error{Code: "answer-needed", Sentence: "nobody is there to answer",
			Next: "run this in a terminal, or add --yes and --tools after you have looked: sallyport diff " + one.ID}
	}
	decision, err := c.openQuestion(ctx, h, one, asker, &how)
	if err != nil {
		return err
	}
	if decision.Stage == "run" {
		if decision, err = c.tryIt(ctx, h, one, decision.ID, how); err != nil {
			return err
		}
	}
	if !choice.given() && asker != nil && !how.yes {
		if choice, err = askTools(c.Err, asker, decision); err != nil {
			return err
		}
	}
	if choice.given() {
		if decision, err = c.answer(ctx, h, decision.ID, api.Answer{Answer: "allow"}, choice); err != nil {
			return err
		}
	}
	return c.sayApproved(ctx, h, one)
}

// openQuestion returns the decision to answer: about tools where the connector
// already may run as it is now, about running otherwise, after it was shown.
func (c *command) openQuestion(ctx context.Context, h *client.Client, one api.Connector, asker *bufio.Reader, how *approveHow) (api.Decision, error) {
	if decision, ok := toolsQuestion(ctx, h, one); ok {
		return decision, nil
	}
	var decision api.Decision
	if err := h.Post(ctx, pathOf(one, "/ask"), nil, &decision); err != nil {
		return decision, err
	}
	if how.yes {
		return decision, nil
	}
	var review approvals.Review
	if err := h.Get(ctx, pathOf(one, "/review"), nil, &review); err != nil {
		return decision, err
	}
	if err := printReview(c.Err, review); err != nil {
		return decision, err
	}
	allowed, err := askYes(c.Err, asker, "\nAllow it to run? Deny is the default. [y/N] ")
	if err == nil && allowed && unpinned(review) && !how.unpinned {
		how.unpinned, err = askYes(c.Err, asker, "The code that it downloads is not fixed by this approval. Accept that too? [y/N] ")
		allowed = how.unpinned
	}
	if err != nil || allowed {
		return decision, err
	}
	if _, err := c.answer(ctx, h, decision.ID, api.Answer{Answer: "deny"}, toolChoice{}); err != nil {
		return decision, err
	}
	return decision, &coded.Error{Code: "denied", Sentence: one.ID + " is denied; nothing of it runs"}
}

// toolsQuestion returns the question about tools of a connector that runs as it was
// approved: the one that is open, or a new one. What is allowed stays so until it
// is answered. Where that cannot be asked, the first question comes first.
func toolsQuestion(ctx context.Context, h *client.Client, one api.Connector) (api.Decision, bool) {
	var decision api.Decision
	if one.State == "enabled" {
		return decision, h.Post(ctx, pathOf(one, "/ask-tools"), nil, &decision) == nil
	}
	if one.State != "tools_required" || one.Decision == "" {
		return decision, false
	}
	var open api.DecisionDetail
	err := h.Get(ctx, "/v1/decisions/"+url.PathEscape(one.Decision), nil, &open)
	return open.Decision, err == nil && open.State == "open" && open.Stage == "tools"
}

// unpinned reports whether it downloads code which the approval does not fix.
func unpinned(r approvals.Review) bool {
	return slices.ContainsFunc(r.Facts, func(f approvals.Fact) bool { return f.Code == approvals.FactFetched && f.Red })
}

// answer answers one decision. A choice of tools is read from what it offers.
func (c *command) answer(ctx context.Context, h *client.Client, id string, given api.Answer, choice toolChoice) (api.Decision, error) {
	if given.Answer == "allow" && choice.given() {
		var open api.DecisionDetail
		if err := h.Get(ctx, "/v1/decisions/"+url.PathEscape(id), nil, &open); err != nil {
			return api.Decision{}, err
		}
		if err := choice.onOffer(open.Tools); err != nil {
			return api.Decision{}, err
		}
		given.Tools = choice.from(open.Tools)
		given.Classes = choice.classes(given.Tools, open.Tools)
		given.Always = !choice.ask
	}
	var next api.Decision
	err := h.Post(ctx, "/v1/decisions/"+url.PathEscape(id)+"/answer", given, &next)
	return next, err
}

// asker reads answers from a terminal; nil where there is none.
func (c *command) asker() *bufio.Reader {
	if file, ok := c.In.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return bufio.NewReader(file)
	}
	return nil
}

// say tells a person what goes on; scripts do not see it.
func (c *command) say(format string, args ...any) {
	if !c.json {
		fmt.Fprintf(c.Err, format+"\n", args...)
	}
}

// askYes is true for an explicit yes only: an empty line is no.
func askYes(w io.Writer, in *bufio.Reader, question string) (bool, error) {
	if _, err := fmt.Fprint(w, question); err != nil {
		return false, err
	}
	line, err := in.ReadString('\n')
	if err != nil {
		return false, &coded.Error{Code: "answer-needed", Sentence: "no answer was given, so nothing was allowed"}
	}
	word := strings.ToLower(strings.TrimSpace(line))
	return word == "y" || word == "yes", nil
}

// askTools lists the tools and reads which to allow. An empty line allows none.
func askTools(w io.Writer, in *bufio.Reader, d api.Decision) (toolChoice, error) {
	p := &page{w: w}
	p.line("\nIt runs. Which of its %s may agents call?", count(len(d.Tools), "tool", "tools"))
	for i, tool := range d.Tools {
		note := string(tool.Suggested)
		if tool.Refused != "" {
			note = "cannot be chosen: " + tool.Refused
		} else if tool.Before != "" {
			note += ", " + map[string]string{"same": "allowed before, unchanged", "changed": "allowed before, CHANGED", "added": "new"}[tool.Before]
		}
		p.line("  %2d  %-24s %s\n      %s", i+1, shown(tool.Name), note, oneLine(tool.Description, 90))
	}
	p.line("\nNumbers or names, separated by commas; \"read\" for those that seem only to read; \"all\". Enter allows none.")
	if p.err == nil {
		_, p.err = fmt.Fprint(w, "Allow: ")
	}
	if p.err != nil {
		return toolChoice{}, p.err
	}
	line, err := in.ReadString('\n')
	if err != nil {
		return toolChoice{}, nil //nolint:nilerr // the end of the input is no answer, and no answer allows nothing
	}
	choice, err := parseTools(line, d.Tools)
	if err != nil || !choice.given() || choice.readOnly {
		return choice, err
	}
	choice.suggested = true
	choice.ask, err = askWhetherToAsk(w, in)
	return choice, err
}

// askWhetherToAsk is true for everything but an explicit no.
func askWhetherToAsk(w io.Writer, in *bufio.Reader) (bool, error) {
	if _, err := fmt.Fprint(w, "Ask you before each call that does more than read? [Y/n] "); err != nil {
		return true, err
	}
	line, _ := in.ReadString('\n') // the end of the input is no no
	word := strings.ToLower(strings.TrimSpace(line))
	return word != "n" && word != "no", nil
}

func parseTools(line string, offered []approvals.OfferedTool) (toolChoice, error) {
	switch strings.TrimSpace(line) {
	case "":
		return toolChoice{}, nil
	case "read":
		return toolChoice{readOnly: true}, nil
	case "all":
		return toolChoice{all: true}, nil
	}
	var choice toolChoice
	for word := range strings.SplitSeq(line, ",") {
		word = strings.TrimSpace(word)
		at := slices.IndexFunc(offered, func(t approvals.OfferedTool) bool { return t.Name == word })
		if n, err := strconv.Atoi(word); at < 0 && err == nil && n >= 1 && n <= len(offered) {
			at = n - 1
		}
		if at < 0 {
			return toolChoice{}, usage("there is no tool %q", word)
		}
		choice.tools = append(choice.tools, offered[at].Name)
	}
	return choice, nil
}

// sayApproved prints how the connector stands now.
func (c *command) sayApproved(ctx context.Context, h *client.Client, one api.Connector) error {
	now, err := find(ctx, h, one.ID)
	if err != nil {
		return err
	}
	names, err := offered(ctx, h, now)
	if err != nil {
		return err
	}
	return c.print(now, func(w io.Writer) error {
		p := &page{w: w}
		if now.State == "enabled" {
			p.line("%s is enabled: agents may call %s", shown(now.ID), count(now.Tools, "tool", "tools"))
			p.line("next: sallyport clients add NAME, or see what they are: sallyport tools")
		} else {
			p.line("%s: %s: %s", shown(now.ID), now.State, now.Sentence)
			p.field("its tools", strings.Join(names, ", "))
			p.line("next: sallyport approve %s --tools NAME,… (or --read-only, --all-tools)", shown(now.ID))
		}
		return p.err
	})
}

// offered names the tools that a connector's open decision is about.
func offered(ctx context.Context, h *client.Client, one api.Connector) (names []string, err error) {
	if one.State != "tools_required" || one.Decision == "" {
		return nil, nil
	}
	var open api.DecisionDetail
	if err := h.Get(ctx, "/v1/decisions/"+url.PathEscape(one.Decision), nil, &open); err != nil {
		return nil, err
	}
	for _, tool := range open.Tools {
		if tool.Refused == "" {
			names = append(names, tool.Name)
		}
	}
	return names, nil
}
