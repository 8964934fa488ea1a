//go:build desktop

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"sallyport/api/sidecar"
	"sallyport/app"
	"sallyport/cli"
	"sallyport/internal/buildinfo"
	"sallyport/runtime/host"
)

// wantsWindow: a start from a menu has no arguments, one by a link has the link.
func wantsWindow(args []string) bool { return len(args) == 0 || app.IsLink(args) }

// openWindow shows the window until it is closed. Signals count from here on: there is
// no moment at which one ends the program without ending its plugins.
func openWindow(args []string, streams cli.Streams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	places := host.PlacesFor("")
	log, done := sidecar.Log(places.State, nil)
	defer done()
	cfg := app.Config{Places: places, Build: buildinfo.Read(), Logger: log}
	if len(args) == 1 {
		cfg.Open = args[0]
	}
	err := app.Run(ctx, cfg)
	if err != nil {
		log.Error("the window ended", "error", err)
	}
	return cli.Report(err, streams)
}
