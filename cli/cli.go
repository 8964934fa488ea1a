// Package cli is the commands, one file each.
//
// The one idea: a command is a thin reader and printer around the same API that
// everything else uses. It talks to the running sidecar, or, where none runs, to
// a host that it opens for the length of the command; the rules are the same.
//
// It decides nothing. Only main imports it.
package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"sallyport/internal/buildinfo"
	"sallyport/internal/coded"
	"sallyport/runtime/host"
	"sallyport/runtime/secrets"
)

// Exit codes that scripts may use; `sallyport health` has its own
// (spec/local-api.md 5).
const (
	exitOK      = 0
	exitRefused = 1 // refused, failed or not healthy
	exitUsage   = 2 // the command line is wrong
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// command is what every command shares.
type command struct {
	Streams
	build buildinfo.Info
	home  string // --home
	json  bool   // --json
	// passphraseFD is --secrets-passphrase-fd, -1 without.
	passphraseFD   int
	passphraseRead []byte // a descriptor can be read once
	verbose        bool   // --verbose
}

// exitError carries an exit code of a command's own.
type exitError struct {
	code int
	err  error // nil: everything was said already
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// Run runs the command line and returns the exit code.
func Run(ctx context.Context, build buildinfo.Info, args []string, streams Streams) int {
	streams.Err = terminal{streams.Err}
	c := &command{Streams: streams, build: build}
	root := c.root()
	root.SetArgs(launched(args))
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	return c.exitCode(root.ExecuteContext(ctx))
}

// Report prints an error as a command does, and returns the exit code.
func Report(err error, streams Streams) int {
	streams.Err = terminal{streams.Err}
	return (&command{Streams: streams}).exitCode(err)
}

func (c *command) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "sallyport",
		Short: "Runs third-party agent plugins only as you approved them",
		Long: `Sallyport runs third-party agent plugins (MCP servers) only as a person approved
them: the exact files, the exact command, the exact tools. Agents get one MCP
endpoint with just the approved tools.

First steps:
  sallyport serve &            start the sidecar
  sallyport plugins list       see what is there and what needs an answer
  sallyport approve ID         look at one, and decide
  sallyport import             the servers that your agent programs have already
  sallyport connect            make an agent program use Sallyport`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	flags := root.PersistentFlags()
	flags.BoolVar(&c.json, "json", false, "print JSON for scripts")
	flags.StringVar(&c.home, "home", "", "keep everything below `DIR` instead of the system's folders (SALLYPORT_HOME)")
	flags.IntVar(&c.passphraseFD, "secrets-passphrase-fd", -1, "keep secrets in an encrypted file, whose passphrase is read from this file descriptor `N`")
	flags.Lookup("secrets-passphrase-fd").DefValue = "0" // none: help shows no number
	flags.BoolVar(&c.verbose, "verbose", false, "print the log to stderr")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(cmd, err) })
	addGroups(root)
	root.AddCommand(
		c.serveCommand(), c.openCommand(), c.trayCommand(), c.healthCommand(), c.statusCommand(), c.doctorCommand(),
		c.digestCommand(), c.pluginsCommand(), c.connectorsCommand(), c.diffCommand(),
		c.installCommand(), c.updateCommand(), c.undoCommand(), c.uninstallCommand(), c.vendorCommand(),
		c.approveCommand(), c.denyCommand(), c.revokeCommand(), c.enableCommand(), c.disableCommand(),
		c.startCommand(), c.stopCommand(), c.restartCommand(),
		c.loginCommand(), c.logoutCommand(),
		c.decisionsCommand(), c.policyCommand(), c.envCommand(), c.consoleCommand(), c.callCommand(), c.toolsCommand(),
		c.clientsCommand(), c.mcpCommand(), c.secretsCommand(), c.configCommand(), c.timesCommand(), c.auditCommand(), c.versionCommand(),
		c.importCommand(), c.connectCommand(),
		c.sourcesCommand(), c.autostartCommand(), c.updatesCommand(), c.diagnosticsCommand(),
	)
	addCompletion(root)
	putInGroups(root)
	return root
}

// exitCode prints what went wrong, once, and says which code to exit with.
func (c *command) exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	var exit *exitError
	if errors.As(err, &exit) {
		if exit.err != nil {
			c.printError(exit.err)
		}
		return exit.code
	}
	if isUsage(err) {
		c.printError(mistyped(err))
		return exitUsage
	}
	c.printError(err)
	return exitRefused
}

// printError writes one sentence and what to do next to stderr, and with --json
// the same as an object to stdout.
func (c *command) printError(err error) {
	shown := &coded.Error{Sentence: err.Error()}
	var e *coded.Error
	if errors.As(err, &e) {
		shown = e
	}
	text := shown.Error()
	if shown.Code != "" {
		text = shown.Code + ": " + text
	}
	fmt.Fprintln(c.Err, "sallyport: "+text)
	if shown.Next != "" {
		fmt.Fprintln(c.Err, "  next: "+shown.Next)
	}
	if c.json {
		_ = c.printJSON(map[string]any{"error": map[string]string{
			"code": shown.Code, "message": shown.Error(), "next": shown.Next,
		}})
	}
}

func (c *command) printJSON(v any) error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(c.Out, escaped(out.String()))
	return err
}

// print writes v as JSON with --json, and by text otherwise.
func (c *command) print(v any, text func(io.Writer) error) error {
	if c.json {
		return c.printJSON(v)
	}
	return text(terminal{c.Out})
}

func (c *command) places() host.Places { return host.PlacesFor(c.home) }

func (c *command) logger() *slog.Logger {
	if !c.verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(c.Err, nil))
}

// passphrase reads the passphrase of the encrypted file of secrets, where the
// operator chose one; nil otherwise.
func (c *command) passphrase(ctx context.Context) ([]byte, error) {
	if c.passphraseFD < 0 || c.passphraseRead != nil {
		return c.passphraseRead, nil
	}
	var err error
	c.passphraseRead, err = secrets.PassphraseFromFD(ctx, c.passphraseFD)
	return c.passphraseRead, err
}

// usage marks an error as one of the command line.
func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}
