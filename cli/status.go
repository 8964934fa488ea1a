package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
)

func (c *command) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show the whole at a glance", Args: exactly(),
		Example: "  sallyport status --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, _, err := c.findSidecar(cmd.Context())
			running := err == nil
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				var status api.Status
				if err := h.Get(cmd.Context(), "/v1/status", nil, &status); err != nil {
					return err
				}
				if !running {
					status.Problems = slices.DeleteFunc(status.Problems, notServing)
				}
				answer := statusAnswer{Status: status, Serving: running, URL: found.URL}
				return c.print(answer, func(w io.Writer) error { return printStatus(w, answer) })
			})
		},
	}
}

// statusAnswer adds whether a sidecar runs: a status is told without one too.
type statusAnswer struct {
	api.Status
	Serving bool   `json:"serving"`
	URL     string `json:"url,omitempty"`
}

func printStatus(w io.Writer, s statusAnswer) error {
	p := &page{w: w}
	if s.Serving {
		p.line("Sallyport %s is running at %s", s.Version, s.URL)
	} else {
		p.line("Sallyport %s is not running; start it: sallyport serve", s.Version)
	}
	var states []string
	for _, state := range slices.Sorted(maps.Keys(s.Connectors)) {
		states = append(states, fmt.Sprintf("%d %s", s.Connectors[state], state))
	}
	if len(states) == 0 {
		states = []string{"none"}
	}
	p.field("connectors", strings.Join(states, ", "))
	p.field("running", count(s.Running, "server", "servers"))
	p.field("agents", count(s.Clients, "client", "clients"))
	for _, problem := range s.Problems {
		p.line("%s: %s", problem.Severity, problem.Text)
		if problem.Next != "" {
			p.line("  next: %s", problem.Next)
		}
	}
	if s.Waiting > 0 {
		p.line("\n%s for an answer: sallyport plugins list", count(s.Waiting, "connector waits", "connectors wait"))
	}
	return p.err
}
