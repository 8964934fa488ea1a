package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sallyport/api"
	"sallyport/api/client"
	"sallyport/internal/coded"
)

func (c *command) consoleCommand() *cobra.Command {
	var inBrowser string
	cmd := &cobra.Command{
		Use: "console [ID]", Short: "Open a shell where a connector runs: its folder, its environment", Args: upTo(1),
		ValidArgsFunction: c.completeID,
		Long: `Open your own shell (bash, zsh, fish or sh) in the place of a connector's program: in
the approved copy of its files, with exactly its environment and TERM, for commands
that sign in and for finding faults. Your shell's start-up files are not read.

It needs the approval that the program needs, and ends with it. That it was opened
and closed is on record; what you type and see is not. Secrets that the connector gets
are in its environment: what prints them shows them.

Without ID the open consoles are listed. --in-browser says whether a browser may have
one, too; at first only the window and this command may.`,
		Example: "  sallyport console notes/main\n  sallyport console --in-browser on",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case inBrowser != "" && len(args) > 0:
				return usage("--in-browser goes without an ID")
			case inBrowser != "":
				return c.setConsoleInBrowser(cmd.Context(), inBrowser)
			case len(args) == 0:
				return c.listConsoles(cmd.Context())
			}
			return c.openConsole(cmd.Context(), args[0])
		},
	}
	cmd.Flags().StringVar(&inBrowser, "in-browser", "", "whether a browser may open one: `on` or off")
	return cmd
}

func (c *command) setConsoleInBrowser(ctx context.Context, word string) error {
	on := word == "on"
	if !on && word != "off" {
		return usage("--in-browser is on or off, not %q", word)
	}
	return c.withHost(ctx, func(h *client.Client) error {
		var now api.Settings
		if err := h.Post(ctx, "/v1/settings", api.SettingsChange{ConsoleInBrowser: &on}, &now); err != nil {
			return err
		}
		return c.print(map[string]bool{"consoleInBrowser": now.ConsoleInBrowser}, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, map[bool]string{true: "a browser that is signed in may open consoles", false: "consoles open in the window and in a terminal only"}[now.ConsoleInBrowser])
			return err
		})
	})
}

func (c *command) listConsoles(ctx context.Context) error {
	return c.withHost(ctx, func(h *client.Client) error {
		var list api.ConsoleList
		if err := h.Get(ctx, "/v1/consoles", nil, &list); err != nil {
			return err
		}
		return c.print(list.Consoles, func(w io.Writer) error {
			if len(list.Consoles) == 0 {
				_, err := fmt.Fprintln(w, "no console is open; open one: sallyport console ID")
				return err
			}
			table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "CONNECTOR\tSHELL\tBY\tSINCE\tSTATE")
			for _, one := range list.Consoles {
				state := "open"
				if one.Ended {
					state = one.Exit
				}
				fmt.Fprintf(table, "%s\t%s\t%s (%s)\t%s\t%s\n", shown(one.Connector), shown(one.Shell), shown(one.By), one.Via, one.OpenedAt.Local().Format(time.DateTime), state)
			}
			return table.Flush()
		})
	})
}

// openConsole shows a console on the person's own terminal, and is one only there.
func (c *command) openConsole(ctx context.Context, id string) error {
	keys, in := c.In.(*os.File)
	screen, out := c.Out.(*os.File)
	if c.json || !in || !out || !term.IsTerminal(int(keys.Fd())) || !term.IsTerminal(int(screen.Fd())) {
		return &coded.Error{Code: "console-needs-terminal", Sentence: "a console is for a person at a terminal, and this is none",
			Next: "run it in a terminal, without a pipe and without --json"}
	}
	running, err := c.sidecar(ctx) // whose watching of the files a console takes
	if err != nil {
		return err
	}
	defer running.Close()
	one, err := find(ctx, running.Client, id)
	if err != nil {
		return err
	}
	cols, rows, err := term.GetSize(int(screen.Fd()))
	if err != nil || cols == 0 || rows == 0 {
		cols, rows = 80, 24
	}
	v := &viewer{h: running.Client, keys: keys, screen: screen}
	asked := api.NewConsole{Cols: cols, Rows: rows, Term: os.Getenv("TERM")}
	if err := v.h.Post(ctx, pathOf(one, "/console"), asked, &v.console); err != nil {
		return err
	}
	fmt.Fprintf(c.Err, "%s of %s; exit or Ctrl-D leaves it\n", shown(v.console.Shell), shown(one.ID))
	return v.run(ctx)
}

// viewer is a console on a terminal.
type viewer struct {
	h            *client.Client
	keys, screen *os.File
	console      api.Console
}

func (v *viewer) at(rest string) string { return "/v1/consoles/" + url.PathEscape(v.console.ID) + rest }

func (v *viewer) run(ctx context.Context) error {
	before, err := term.MakeRaw(int(v.keys.Fd()))
	if err != nil {
		return errors.Join(fmt.Errorf("cannot prepare the terminal: %w", err), v.close(ctx))
	}
	defer func() { _ = term.Restore(int(v.keys.Fd()), before) }()
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	defer v.follow(ctx, leave)()
	go v.typeKeys(ctx, leave) // ends with the program: a read of a terminal cannot be given up
	last, err := v.show(ctx)
	if err != nil {
		return errors.Join(err, v.close(ctx))
	}
	return ending(last)
}

// show prints until the end.
func (v *viewer) show(ctx context.Context) (api.Console, error) {
	for next := uint64(0); ; {
		var got api.ConsoleOutput
		query := url.Values{"after": {strconv.FormatUint(next, 10)}, "wait": {"20s"}}
		if err := v.h.Get(ctx, v.at("/output"), query, &got); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return got.Console, err
		}
		if _, err := v.screen.Write(got.Data); err != nil {
			return got.Console, fmt.Errorf("cannot print: %w", err)
		}
		if next = got.Next; got.Ended {
			return got.Console, nil
		}
	}
}

// typeKeys sends what is typed, in order: what comes while a piece is under way goes
// with the next one.
func (v *viewer) typeKeys(ctx context.Context, leave context.CancelCauseFunc) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := v.keys.Read(buffer)
		if n > 0 {
			switch err := v.h.Post(ctx, v.at("/input"), api.ConsoleInput{Data: buffer[:n]}, nil); coded.Of(err) {
			case "", "console-input-full", "console-ended": // the next key, or the end, tells
			default:
				leave(err)
				return
			}
		}
		if err != nil {
			leave(errors.New("the terminal has ended"))
			return
		}
	}
}

// resized tells the console the terminal's size.
func (v *viewer) resized(ctx context.Context) {
	if cols, rows, err := term.GetSize(int(v.screen.Fd())); err == nil && cols > 0 && rows > 0 {
		_ = v.h.Post(ctx, v.at("/size"), api.ConsoleSize{Cols: cols, Rows: rows}, nil) // of one that has ended
	}
}

// close leaves nothing behind when the terminal is given up before the shell.
func (v *viewer) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return v.h.Delete(ctx, v.at(""), nil)
}

// ending is the shell's own exit code, or why Sallyport ended it.
func ending(last api.Console) error {
	if last.Reason != "" {
		return &coded.Error{Code: last.Reason, Sentence: last.Sentence, Next: last.Next}
	}
	text, exited := strings.CutPrefix(last.Exit, "exit status ")
	if code, err := strconv.Atoi(text); exited && err == nil && code != 0 {
		return &exitError{code: code}
	}
	return nil
}
