package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
)

// watchPoll is how long one look for changes waits for them.
const watchPoll = "50s"

func (c *command) decisionsWatch() *cobra.Command {
	return &cobra.Command{
		Use: "watch", Short: "Print each decision as it is asked and answered, until Ctrl-C", Args: exactly(),
		Long: `Print the decisions that are open now, and then every change of one, a line each;
with --json an object a line. It needs the sidecar to run, and ends with Ctrl-C.`,
		Example: "  sallyport decisions watch --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			sidecar, err := c.sidecar(cmd.Context())
			if err != nil {
				return err
			}
			defer sidecar.Close()
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			err = c.watch(ctx, sidecar.Client)
			if ctx.Err() != nil {
				return nil // Ctrl-C is how it ends
			}
			return err
		},
	}
}

// watch reads all decisions whenever something may have changed, and prints those
// that are not as they were. Events tell when to look and nothing else.
func (c *command) watch(ctx context.Context, h *client.Client) error {
	seen := map[string]string{}
	var page api.EventPage
	if err := h.Get(ctx, "/v1/events", nil, &page); err != nil {
		return err
	}
	for first, look := true, true; ; first = false {
		if look {
			if err := c.printChanged(ctx, h, seen, first); err != nil {
				return err
			}
		}
		after := page.Last
		page = api.EventPage{}
		if err := h.Get(ctx, "/v1/events", url.Values{"after": {strconv.FormatUint(after, 10)}, "wait": {watchPoll}}, &page); err != nil {
			return err
		}
		look = !page.Complete
		for _, e := range page.Events {
			look = look || e.Kind == "decision" || e.Kind == "connector" || e.Kind == "clients"
		}
	}
}

// printChanged prints, oldest first, the decisions whose state is not as seen; at
// first only those that are open.
func (c *command) printChanged(ctx context.Context, h *client.Client, seen map[string]string, first bool) error {
	var list api.DecisionList
	if err := h.Get(ctx, "/v1/decisions", nil, &list); err != nil {
		return err
	}
	now := map[string]string{}
	for _, d := range slices.Backward(list.Decisions) {
		now[d.ID] = d.State
		if seen[d.ID] == d.State || first && d.State != "open" {
			continue
		}
		if err := c.printLine(d); err != nil {
			return err
		}
	}
	clear(seen)
	for id, state := range now {
		seen[id] = state
	}
	return nil
}

func (c *command) printLine(d api.Decision) error {
	if c.json {
		line, err := json.Marshal(d)
		if err != nil {
			return err
		}
		_, err = io.WriteString(c.Out, escaped(string(line))+"\n")
		return err
	}
	_, err := fmt.Fprintf(terminal{c.Out}, "%s  %-11s  %s  %s\n", d.ID, d.State, shown(d.Subject), question(d))
	return err
}
