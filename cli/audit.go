package cli

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/runtime/audit"
	"sallyport/runtime/host"
)

func (c *command) auditCommand() *cobra.Command {
	return group("audit", "What happened, for people who were not there", c.auditList(), c.auditVerify(), c.auditExport(), c.auditRetention())
}

// auditQuery is the filters that list and export share.
type auditQuery struct {
	plugin, action, result, reason, agent, since string
	limit                                        int
}

func (q *auditQuery) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&q.plugin, "plugin", "", "only this plugin's")
	f.StringVar(&q.action, "action", "", "only this action: "+strings.Join(audit.Actions(), ", "))
	f.StringVar(&q.result, "result", "", "only ok, refused or failed")
	f.StringVar(&q.reason, "reason", "", "only with this reason code")
	f.StringVar(&q.agent, "client", "", "only this agent's")
	f.StringVar(&q.since, "since", "", "only since a time (2026-01-31T12:00:00Z) or for a length of time (24h)")
}

func (q *auditQuery) values() (url.Values, error) {
	if q.action != "" && !slices.Contains(audit.Actions(), q.action) {
		return nil, usage("--action is one of %s", strings.Join(audit.Actions(), ", "))
	}
	if results := []string{audit.OK, audit.Refused, audit.Failed}; q.result != "" && !slices.Contains(results, q.result) {
		return nil, usage("--result is one of %s", strings.Join(results, ", "))
	}
	v := url.Values{}
	for name, value := range map[string]string{"plugin": q.plugin, "action": q.action, "result": q.result,
		"reason": q.reason, "client": q.agent} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.limit > 0 {
		v.Set("limit", strconv.Itoa(q.limit))
	}
	if q.since == "" {
		return v, nil
	}
	at, err := time.Parse(time.RFC3339, q.since)
	if err != nil {
		length, bad := time.ParseDuration(q.since)
		if bad != nil || length < 0 {
			return nil, usage("--since is a time such as 2026-01-31T12:00:00Z or a length of time such as 24h")
		}
		at = time.Now().Add(-length)
	}
	v.Set("since", at.UTC().Format(time.RFC3339))
	return v, nil
}

func (c *command) auditList() *cobra.Command {
	var query auditQuery
	cmd := &cobra.Command{
		Use: "list", Short: "List records, newest first", Args: exactly(),
		Example: "  sallyport audit list --plugin notes --result refused --since 24h",
		RunE: func(cmd *cobra.Command, _ []string) error {
			values, err := query.values()
			if err != nil {
				return err
			}
			var page api.AuditPage
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				if err := h.Get(cmd.Context(), "/v1/plugins/audit", values, &page); err != nil {
					return err
				}
				return c.print(page.Records, func(w io.Writer) error { return printAudit(w, page) })
			})
		},
	}
	query.flags(cmd)
	cmd.Flags().IntVar(&query.limit, "limit", 50, "how many at the most, up to 500")
	return cmd
}

func printAudit(w io.Writer, page api.AuditPage) error {
	if len(page.Records) == 0 {
		_, err := fmt.Fprintln(w, "no records")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SEQ\tAT\tWHO\tACTION\tWHAT\tRESULT")
	for _, r := range page.Records {
		who, what := r.Actor, strings.Trim(r.Plugin+"/"+r.Binding, "/")
		switch {
		case r.Client == "":
		case what == "":
			what = r.Client // that was added or removed; it did not do that itself
		default:
			who = r.Client
		}
		if r.Target != "" {
			what = strings.TrimSpace(what + " " + r.Target)
		}
		result := r.Result
		if r.Reason != "" {
			result += " " + r.Reason
		}
		if r.Count > 1 {
			result += fmt.Sprintf(" ×%d", r.Count)
		}
		fmt.Fprintf(table, "%d\t%s\t%s (%s)\t%s\t%s\t%s\n", r.Seq, r.At.Local().Format("2 Jan 15:04:05"), who, r.Via, r.Action, what, result)
	}
	if err := table.Flush(); err != nil || page.Next == "" {
		return err
	}
	_, err := fmt.Fprintln(w, "older records: sallyport audit export")
	return err
}

func (c *command) auditVerify() *cobra.Command {
	return &cobra.Command{
		Use: "verify", Short: "Check the whole chain, without the sidecar", Args: exactly(),
		Long: `Check every record against the one before it, and the end against the sealed
head. Reads the database itself; the sidecar may run or not.

Exits 0 when all verifies, 1 with audit-broken or audit-truncated and the first
record that does not.`,
		Example: "  sallyport audit verify --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := host.VerifyAudit(cmd.Context(), c.places())
			if err != nil {
				return err
			}
			return c.print(report, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "%d records verify, the last is %d\n", report.Records, report.Last)
				return err
			})
		},
	}
}

func (c *command) auditExport() *cobra.Command {
	var query auditQuery
	var format string
	cmd := &cobra.Command{
		Use: "export", Short: "Write the records to stdout as JSON lines or CSV", Args: exactly(),
		Example: "  sallyport audit export --format csv --since 720h > audit.csv",
		RunE: func(cmd *cobra.Command, _ []string) error {
			values, err := query.values()
			if err != nil {
				return err
			}
			if format != audit.JSONLines && format != audit.CSV {
				return usage("--format is jsonl or csv")
			}
			values.Set("format", format)
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				out, flush := c.forEyes()
				err := h.Stream(cmd.Context(), "/v1/audit/export", values, out)
				if err == nil {
					err = flush()
				}
				if errors.Is(err, io.ErrUnexpectedEOF) {
					return fmt.Errorf("the export ended early: what was written is not all: %w", err)
				}
				return err
			})
		},
	}
	query.flags(cmd)
	cmd.Flags().StringVar(&format, "format", audit.JSONLines, "jsonl or csv")
	return cmd
}

func (c *command) auditRetention() *cobra.Command {
	var change api.RetentionChange
	cmd := &cobra.Command{
		Use: "retention", Short: "Say how much of the audit is kept, or change it", Args: exactly(),
		Long: `Say how much of the audit is kept, or change it: 90 days and a million records until
you choose. What is older, or beyond that number, is removed by the running sidecar, whole
segments of 10,000 records at a time, oldest first. A record of the removal stays, so that
what is left can still be verified. A segment that does not verify is not removed.`,
		Example: "  sallyport audit retention\n  sallyport audit retention --days 365 --records 2000000",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withHost(cmd.Context(), func(h *client.Client) error {
				var now api.Settings
				if err := h.Get(cmd.Context(), "/v1/settings", nil, &now); err != nil {
					return err
				}
				if days, records := cmd.Flags().Changed("days"), cmd.Flags().Changed("records"); days || records {
					if !days {
						change.Days = now.Retention.Days
					}
					if !records {
						change.Records = now.Retention.Records
					}
					if err := h.Post(cmd.Context(), "/v1/settings", api.SettingsChange{Retention: &change}, &now); err != nil {
						return err
					}
				}
				return c.print(now.Retention, func(w io.Writer) error { return printRetention(w, now.Retention) })
			})
		},
	}
	cmd.Flags().IntVar(&change.Days, "days", 0, "keep records for `N` days, from 7 to 3650")
	cmd.Flags().IntVar(&change.Records, "records", 0, "keep up to `N` records, from 10000 to 10000000")
	return cmd
}

func printRetention(w io.Writer, r api.Retention) error {
	p := &page{w: w}
	if r.Says != "" {
		p.line("how much is kept cannot be told now, and nothing is removed: %s", shown(r.Says))
	} else {
		p.line("records are kept for %d days, and up to %d of them", r.Days, r.Records)
	}
	if r.Since != nil {
		p.line("there are %d, the oldest of %s", r.Has, r.Since.Local().Format(time.DateTime))
	}
	return p.err
}
