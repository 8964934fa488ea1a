package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/internal/coded"
	"sallyport/runtime/health"
	"sallyport/runtime/host"
	"sallyport/runtime/secrets"
)

func notServing(p health.Problem) bool { return p.Code == health.Starting }

// finding is one thing that doctor looked at.
type finding struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
	// Absent is something that is not there, which is no fault.
	Absent bool   `json:"absent,omitempty"`
	Says   string `json:"says"`
	Next   string `json:"next,omitempty"`
	// Keyring is how the keyring is, where that is what was looked at.
	Keyring *api.Keyring `json:"keyring,omitempty"`
}

func (c *command) doctorCommand() *cobra.Command {
	var keyring bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Look for what is wrong, and say what to do", Args: exactly(),
		Long: `Look at the folders, the store, the audit, the sidecar, the keyring and the programs
that plugins usually need. Changes nothing. Exits with 1 where something is wrong.

A keyring that cannot be used is explained, with what to type on this system. That is
no fault while nothing needs it; --keyring explains it all the same.`,
		Example: "  sallyport doctor\n  sallyport doctor --keyring",
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings := c.examine(cmd.Context())
			if keyring {
				findings = aboutKeyring(findings)
			}
			err := c.print(findings, func(w io.Writer) error { return printFindings(w, findings) })
			if err == nil && slices.ContainsFunc(findings, func(f finding) bool { return !f.OK }) {
				return &exitError{code: exitRefused}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&keyring, "keyring", false, "look at the keyring alone")
	return cmd
}

func (c *command) examine(ctx context.Context) []finding {
	findings := c.examineFolders()
	findings = append(findings, c.examineSidecar(ctx))
	findings = append(findings, c.examineAudit(ctx))
	hosted := c.examineHost(ctx)
	findings = append(findings, examinePrograms()...)
	return append(findings, hosted...) // what needs most words is said last
}

func (c *command) examineFolders() []finding {
	places := c.places()
	var findings []finding
	for _, place := range []struct{ what, dir string }{
		{"data folder", places.Data}, {"state folder", places.State}, {"configuration folder", places.Config},
	} {
		f := finding{What: place.what, OK: true, Says: place.dir}
		info, err := os.Stat(place.dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			f.Says += " (not made yet)"
		case err != nil || !info.IsDir():
			f.OK, f.Next = false, "make it a folder that belongs to you"
		case info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/':
			f.OK, f.Says, f.Next = false, place.dir+" can be entered by others", "chmod 700 "+place.dir
		}
		findings = append(findings, f)
	}
	return findings
}

func (c *command) examineSidecar(ctx context.Context) finding {
	found := health.Ask(ctx, health.Question{StateDir: c.places().State})
	f := finding{What: "sidecar", OK: found.Outcome == health.Healthy || found.Outcome == health.Absent, Says: found.Sentence}
	if found.Outcome == health.Absent {
		f.Absent, f.Next = true, "start it: sallyport serve"
	}
	return f
}

func (c *command) examineAudit(ctx context.Context) finding {
	f := finding{What: "audit", OK: true, Says: "nothing is recorded yet"}
	if _, err := os.Stat(c.places().Database()); err != nil {
		return f
	}
	report, err := host.VerifyAudit(ctx, c.places())
	if err != nil {
		f.OK, f.Says, f.Next = false, err.Error(), nextOf(err)
		if coded.Of(err) == "seal-key-unavailable" {
			f.Says, f.Next = "its end is sealed with a key that the keyring does not give", ""
		}
		return f
	}
	f.Says = fmt.Sprintf("%d records verify", report.Records)
	return f
}

func (c *command) examineHost(ctx context.Context) []finding {
	var status api.Status
	var list api.PluginList
	var keyring api.Keyring
	err := c.withHost(ctx, func(h *client.Client) error {
		if err := h.Get(ctx, "/v1/status", nil, &status); err != nil {
			return err
		}
		if err := h.Get(ctx, "/v1/plugins", nil, &list); err != nil {
			return err
		}
		return h.Get(ctx, "/v1/keyring", nil, &keyring)
	})
	if err != nil {
		return []finding{{What: "store", Says: err.Error(), Next: nextOf(err)}}
	}
	findings := []finding{{What: "store", OK: true, Says: "opens"}}
	for _, problem := range status.Problems {
		if !notServing(problem) && !keyringProblem(problem) {
			findings = append(findings, finding{What: problem.Title, OK: problem.Severity != health.Failing, Says: problem.Text, Next: problem.Next})
		}
	}
	for _, problem := range list.Problems {
		findings = append(findings, finding{What: "plugins", Says: shown(problem.Path) + ": " + problem.Sentence})
	}
	for _, one := range list.Connectors {
		if one.State == "invalid" || one.State == "parked" {
			findings = append(findings, finding{What: shown(one.ID), Says: one.Sentence, Next: one.Next})
		}
	}
	return append(findings, keyringFinding(keyring))
}

// examinePrograms tells which of the usual interpreters are there. Lacking one is
// no fault: only plugins that need it do not start.
func examinePrograms() []finding {
	var findings []finding
	for _, name := range []string{"node", "python3", "uvx"} {
		f := finding{What: name, OK: true, Absent: true, Says: "not found; plugins that need it cannot start"}
		if path, err := exec.LookPath(name); err == nil {
			f.Says, f.Absent = path, false
		}
		findings = append(findings, f)
	}
	return findings
}

func nextOf(err error) string {
	var e *coded.Error
	if errors.As(err, &e) {
		return e.Next
	}
	return ""
}

func printFindings(w io.Writer, findings []finding) error {
	p := &page{w: w}
	for _, f := range findings {
		mark := "ok  "
		switch {
		case !f.OK:
			mark = "BAD "
		case f.Absent:
			mark = "-   "
		}
		what := f.What
		if len(what) > 22 {
			what += ":"
		}
		begin := fmt.Sprintf("%s %-22s ", mark, what)
		if f.Keyring != nil {
			p.wrapped(begin, f.Says)
		} else {
			p.line("%s%s", begin, f.Says)
		}
		switch {
		case f.Keyring != nil && !f.OK && f.Keyring.State != secrets.OK:
			p.keyring(f.Keyring)
		case f.Next != "":
			p.line("     next: %s", f.Next)
		}
	}
	return p.err
}
