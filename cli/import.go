package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/internal/coded"
)

// importHow is what is imported, and how.
type importHow struct {
	all                  bool
	file, project        string
	secrets              string // "keyring"
	leaveSecrets, dryRun bool
	picks                []api.ImportPick
	text                 *api.ImportText
}

func (c *command) importCommand() *cobra.Command {
	var how importHow
	cmd := &cobra.Command{
		Use: "import [CLIENT[:NAME]…]", Short: "Take over MCP servers from the agent programs on this computer", Args: cobra.ArbitraryArgs,
		ValidArgs: programNames(),
		Long: `Without an argument: show the MCP servers in the configurations of the agent
programs on this computer, with what is wrong with them and every credential that
is written out. Nothing is run, and no file of theirs is written.

With arguments, or --all: import them as connectors. None is approved by that:
nothing of them runs before you say so. Credentials that are written out go to the
keyring, and a reference takes their place; with --leave-secrets none is kept, and
the connector is blocked until it is set.

Undo: sallyport connectors remove NAME`,
		Example: "  sallyport import\n  sallyport import cursor:github claude-desktop --secrets keyring\n  sallyport import --all --leave-secrets\n  sallyport import --file mcp.json --all",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := how.take(args); err != nil {
				return err
			}
			return c.withHost(cmd.Context(), func(h *client.Client) error { return c.importServers(cmd.Context(), h, how) })
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&how.all, "all", false, "import everything that can be")
	flags.StringVar(&how.file, "file", "", "read this configuration instead of the programs' own `PATH`s")
	flags.StringVar(&how.project, "project", "", "look at the configurations of this project too, a `DIR` in your home folder")
	flags.StringVar(&how.secrets, "secrets", "", "where credentials go without being asked: `keyring`")
	flags.BoolVar(&how.leaveSecrets, "leave-secrets", false, "keep no credential; what needs one is blocked until it is set")
	flags.BoolVar(&how.dryRun, "dry-run", false, "say what would be imported and import nothing")
	cmd.MarkFlagsMutuallyExclusive("secrets", "leave-secrets")
	cmd.MarkFlagsMutuallyExclusive("file", "project")
	return cmd
}

// take reads the arguments, and the file that is named.
func (how *importHow) take(args []string) error {
	if how.secrets != "" && how.secrets != "keyring" {
		return usage("--secrets takes keyring and nothing else; or leave them with --leave-secrets")
	}
	if how.all && len(args) > 0 {
		return usage("give either --all or what to import")
	}
	for _, arg := range args {
		name, server, _ := strings.Cut(arg, ":")
		if how.file != "" {
			name, server = "file", strings.TrimPrefix(arg, "file:")
		} else if !slices.Contains(programNames(), name) {
			return usage("name it as CLIENT:NAME: %q is no program that is known here; there are %s", name, strings.Join(programNames(), ", "))
		}
		how.picks = append(how.picks, api.ImportPick{Client: name, Name: server})
	}
	if how.project != "" {
		project, err := filepath.Abs(how.project)
		if err != nil {
			return err
		}
		how.project = project
	}
	return how.readFile()
}

// maxImport is what fits into a request, as base64.
const maxImport = 5 << 20

// readFile reads the file here, with the rights of whoever typed its name: what goes
// to the sidecar is text and no path.
func (how *importHow) readFile() error {
	if how.file == "" {
		return nil
	}
	file, err := os.Open(how.file)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // read only
	raw, err := io.ReadAll(io.LimitReader(file, maxImport+1))
	if err == nil && len(raw) > maxImport {
		err = coded.New("client-file-unreadable", "the file is larger than 5 MiB")
	}
	how.text = &api.ImportText{Name: filepath.Base(how.file), Text: raw}
	return err
}

func (c *command) importServers(ctx context.Context, h *client.Client, how importHow) error {
	var list api.ImportList
	var err error
	if how.text != nil {
		err = h.Post(ctx, "/v1/import/look", how.text, &list)
	} else {
		err = h.Get(ctx, "/v1/import", url.Values{"project": {how.project}}, &list)
	}
	if err != nil {
		return err
	}
	if !how.all && len(how.picks) == 0 {
		return c.print(list, func(w io.Writer) error { return printImportable(w, list.Files) })
	}
	if err := how.found(list.Files); err != nil {
		return err
	}
	if err := c.aboutSecrets(&how, list.Files); err != nil {
		return err
	}
	asked := api.Importing{Picks: how.picks, Project: how.project, Text: how.text, LeaveSecrets: how.leaveSecrets, DryRun: how.dryRun}
	var done api.ImportDone
	if err := h.Post(ctx, "/v1/import", asked, &done); err != nil {
		return err
	}
	err = c.print(done, func(w io.Writer) error { return printImported(w, done.Results, how.dryRun) })
	if err == nil && !how.all && slices.ContainsFunc(done.Results, func(r api.ImportResult) bool { return r.Problem != nil }) {
		return &exitError{code: exitRefused} // what was named was not done; it was said above
	}
	return err
}

// found refuses a pick that nothing answers to.
func (how *importHow) found(files []api.ImportFile) error {
	for _, pick := range how.picks {
		n := 0
		for _, f := range files {
			if f.Client != pick.Client {
				continue
			}
			for _, s := range f.Servers {
				if pick.Name == "" || pick.Name == s.Name {
					n++
				}
			}
		}
		if n == 0 {
			return &coded.Error{Code: "import-unknown", Sentence: "there is no server " + quote(strings.TrimSuffix(pick.Client+":"+pick.Name, ":")) + " to import",
				Next: "see what there is: sallyport import"}
		}
	}
	return nil
}

func (how *importHow) picked(f api.ImportFile, s api.ImportServer) bool {
	if s.Own || s.Problem != nil || s.Connector != "" {
		return false
	}
	return len(how.picks) == 0 || slices.ContainsFunc(how.picks, func(p api.ImportPick) bool {
		return p.Client == f.Client && (p.Name == "" || p.Name == s.Name)
	})
}

// aboutSecrets asks where credentials go, unless a flag says so.
func (c *command) aboutSecrets(how *importHow, files []api.ImportFile) error {
	var names []string
	for _, f := range files {
		for _, s := range f.Servers {
			for _, l := range s.Literals {
				if how.picked(f, s) && !l.Placeholder {
					names = append(names, fmt.Sprintf("  %s:%s  %s (%s)", f.Client, s.Name, l.Name, l.Kind))
				}
			}
		}
	}
	if len(names) == 0 || how.secrets != "" || how.leaveSecrets || how.dryRun {
		return nil
	}
	in := c.asker()
	if in == nil || c.json {
		return &coded.Error{Code: "answer-needed", Sentence: "credentials are written out in what is to be imported, and nobody can be asked where they go",
			Next: "give --secrets keyring, or --leave-secrets to keep none"}
	}
	c.say("These credentials are written out:\n%s", shownLines(names))
	yes, err := askYes(terminal{c.Err}, in, "Keep them in the keyring? (No: they are left out, and what needs them is blocked.) [y/N] ")
	how.leaveSecrets = !yes
	return err
}

func shownLines(all []string) string {
	for i := range all {
		all[i] = shown(all[i])
	}
	return strings.Join(all, "\n")
}

func printImportable(w io.Writer, files []api.ImportFile) error {
	if len(files) == 0 {
		_, err := fmt.Fprintln(w, "no configuration of an agent program was found here; any file is read with --file PATH")
		return err
	}
	p := &page{w: w}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CLIENT:NAME\tFILE\tWHAT IT STARTS\tSTATE")
	n, fresh := 0, false
	for _, f := range files {
		for _, s := range f.Servers {
			n++
			fresh = fresh || importState(s) == "new"
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", oneLine(f.Client+":"+s.Name, 50), shown(placeOf(f)), oneLine(startsWhat(s), 50), importState(s))
		}
	}
	if n > 0 {
		if err := table.Flush(); err != nil {
			return err
		}
	}
	for _, f := range files {
		printImportNotes(p, f)
	}
	if fresh {
		p.line("next: sallyport import CLIENT:NAME, or --all; nothing of it runs before you approve it")
	}
	return p.err
}

func placeOf(f api.ImportFile) string {
	if f.Project != "" && f.Project != "." {
		return f.File + " (for " + f.Project + ")"
	}
	return f.File
}

func startsWhat(s api.ImportServer) string {
	if s.URL != "" {
		return s.URL
	}
	return strings.TrimSpace(s.Command + " " + strings.Join(s.Args, " "))
}

func importState(s api.ImportServer) string {
	switch {
	case s.Own:
		return "Sallyport itself"
	case s.Connector != "":
		return "imported as " + shown(s.Connector)
	case s.Problem != nil:
		return "cannot be imported"
	case s.SameAs != "":
		return "same as " + shown(s.SameAs)
	case s.Disabled:
		return "switched off there"
	}
	return "new"
}

// printImportNotes says what is wrong with a file and its servers, and what a person
// should know of them.
func printImportNotes(p *page, f api.ImportFile) {
	switch {
	case f.Problem != nil:
		p.line("%s: %s", shown(f.File), shown(f.Problem.Message))
	case len(f.Servers) == 0:
		p.line("%s: no servers (read as %s)", shown(f.File), f.Recognised)
	}
	for _, s := range f.Servers {
		name := shown(f.Client + ":" + s.Name)
		switch {
		case s.Own || s.Connector != "" || s.SameAs != "":
			continue
		case s.Problem != nil:
			p.line("%s", aboutServer(f.Client, s.Name, s.Problem.Message))
			p.field("next", s.Problem.Details.Next)
			continue
		}
		for _, l := range s.Literals {
			if l.Placeholder {
				p.line("%s: %s holds %s in place of a credential", name, shown(l.Name), l.Kind)
			} else {
				p.line("%s: a credential is written out: %s (%s)", name, shown(l.Name), l.Kind)
			}
		}
		for _, fetch := range s.Fetches {
			p.line("%s: it downloads code at every start, which an approval does not fix: %s", name, shown(fetch))
		}
		for _, secret := range s.Needs {
			p.line("%s: it will need %s%s", name, shown(secret), shown(asks(f.Inputs, secret)))
		}
	}
}

// asks is what a program says when it asks for a secret.
func asks(inputs []api.ImportInput, secret string) string {
	for _, input := range inputs {
		if input.Secret == secret && input.Description != "" {
			return " (" + input.Description + ")"
		}
	}
	return ""
}

// aboutServer names the server once, whether or not the sentence does.
func aboutServer(program, name, sentence string) string {
	if rest, ok := strings.CutPrefix(sentence, name+": "); ok {
		sentence = rest
	}
	return shown(program + ":" + name + ": " + sentence)
}

func printImported(w io.Writer, results []api.ImportResult, dry bool) error {
	p := &page{w: w}
	imported := "imported as"
	if dry {
		imported = "would be imported as"
	}
	n, next := 0, ""
	for _, r := range results {
		name := shown(r.Client + ":" + r.Name)
		switch {
		case r.Problem != nil:
			p.line("not imported: %s", aboutServer(r.Client, r.Name, r.Problem.Message))
			p.field("next", r.Problem.Details.Next)
			continue
		case r.Already:
			p.line("%s: is imported already, as %s", name, shown(r.Connector))
			continue
		case r.SameAs != "":
			p.line("%s: says the same as %s and shares %s", name, shown(r.SameAs), shown(r.Connector))
			continue
		}
		if n++; next == "" {
			next = typed(r.Connector)
		}
		p.line("%s: %s %s", name, imported, shown(r.Connector))
		if r.Renamed {
			p.line("  it has another name here, since its own is taken or cannot be used")
		}
		for _, secret := range r.Kept {
			p.line("  %s is in the keyring", shown(secret))
		}
		for _, secret := range r.Needs {
			p.line("  it needs %s: sallyport secrets set %s", shown(secret), shown(secret))
		}
	}
	switch {
	case len(results) == 0:
		p.line("there is nothing to import")
	case n > 0 && !dry:
		p.line("none of it runs yet. next: sallyport approve %s", next)
	}
	return p.err
}
