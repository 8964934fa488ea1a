package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sallyport/api/sidecar"
	"sallyport/internal/coded"
	"sallyport/internal/loopback"
)

type serveOptions struct {
	companion bool
	port      int
}

func (c *command) serveCommand() *cobra.Command {
	var options serveOptions
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the sidecar", Args: exactly(),
		Long: `Run the sidecar until it is told to stop (Ctrl-C, SIGTERM).

With --companion it is a part of another program: one JSON line on stdout when it
is ready and nothing else there ever, the log on stderr, and it ends with its
children when its stdin closes or its parent dies. If a sidecar already runs,
the line is that one's, with "attached": true, and this process stays as a monitor.`,
		Example: "  sallyport serve\n  sallyport serve --companion",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.serve(cmd.Context(), options)
		},
	}
	cmd.Flags().BoolVar(&options.companion, "companion", false, "be the companion of the program that started this")
	cmd.Flags().IntVar(&options.port, "port", 0, "use this port from now on instead of the kept one")
	return cmd
}

func (c *command) serve(ctx context.Context, options serveOptions) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if options.companion {
		var release func()
		ctx, release = withParent(ctx, c.In)
		defer release()
	}
	logger, closeLog := c.serveLogger(options.companion || c.verbose)
	defer closeLog()
	passphrase, err := c.passphrase(ctx)
	if err != nil {
		return err
	}
	running, err := c.startOrFind(ctx, sidecar.Config{Places: c.places(), Version: c.build.Version, Commit: c.build.Commit, Date: c.build.Date, Port: options.port,
		Logger: logger, SecretsPassphrase: passphrase})
	if err != nil {
		return err
	}
	if running.own == nil {
		return c.attach(ctx, options, running.found)
	}
	return c.serveUntil(ctx, options, running.own)
}

// started is a sidecar of our own, or one that was there before.
type started struct {
	own   *sidecar.Sidecar
	found loopback.Discovery
}

// startOrFind starts the sidecar, or finds the one that has the data folder. One
// that is just starting or stopping gets some time to do so.
func (c *command) startOrFind(ctx context.Context, cfg sidecar.Config) (started, error) {
	deadline := time.Now().Add(startGrace)
	for {
		own, err := sidecar.Start(ctx, cfg)
		if !errors.Is(err, loopback.ErrHeld) {
			return started{own: own}, err
		}
		if found, _, err := c.findSidecar(ctx); err == nil {
			return started{found: found}, nil
		}
		if time.Now().After(deadline) {
			return started{}, &coded.Error{Code: "not-answering", Sentence: "another Sallyport has the data folder and does not answer",
				Next: "look for it with: sallyport health; stop it and try again"}
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return started{}, ctx.Err()
		}
	}
}

func (c *command) serveUntil(ctx context.Context, options serveOptions, s *sidecar.Sidecar) error {
	err := c.sayReady(options, s.Discovery, false)
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-s.Failed():
		}
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	return errors.Join(err, s.Stop(stopping))
}

// attach says where the running sidecar is. A companion stays until its parent
// goes or the sidecar does (spec/local-api.md 9).
func (c *command) attach(ctx context.Context, options serveOptions, found loopback.Discovery) error {
	if err := c.sayReady(options, found, true); err != nil || !options.companion {
		return err
	}
	ticker := time.NewTicker(2 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if now, _, err := c.findSidecar(ctx); (err != nil || now.Instance != found.Instance) && ctx.Err() == nil {
				return &coded.Error{Code: "not-running", Sentence: "the sidecar that was attached to has ended", Next: "start it again"}
			}
		}
	}
}

// readyLine is the one line on stdout of a companion (spec/local-api.md 9).
type readyLine struct {
	Event    string `json:"event"`
	URL      string `json:"url"`
	Port     int    `json:"port"`
	Instance string `json:"instance"`
	Version  string `json:"version"`
	PID      int    `json:"pid"`
	Attached bool   `json:"attached,omitempty"`
}

func (c *command) sayReady(options serveOptions, d loopback.Discovery, attached bool) error {
	if options.companion || c.json {
		line, err := json.Marshal(readyLine{"ready", d.URL, d.Port, d.Instance, d.Version, d.PID, attached})
		if err != nil {
			return err
		}
		_, err = c.Out.Write(append(line, '\n'))
		return err
	}
	word := "Sallyport is running at"
	if attached {
		word = "Sallyport is already running at"
	}
	_, err := fmt.Fprintf(c.Out, "%s %s\n  agents:  %s/mcp (a token for each: sallyport clients add NAME)\n  next:    sallyport plugins list\n", word, d.URL, d.URL)
	return err
}

// serveLogger logs to the file of logs, and to stderr on request.
func (c *command) serveLogger(stderr bool) (*slog.Logger, func()) {
	if stderr {
		return sidecar.Log(c.places().State, c.Err)
	}
	return sidecar.Log(c.places().State, nil)
}
