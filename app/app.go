// Package app is the window: Sallyport's pages in a webview of the system's.
//
// The one idea: the window is a client of the same http.Handler as everybody, in memory.
// It opens the host in its own process and serves it on the kept port like `sallyport
// serve`; where another process has the data folder, it attaches to that one. Nothing of
// Go is bound to the page's script: what the page may do is what the API lets the bearer
// of its token do.
//
// It decides nothing about plugins and has no routes of the contract. The files that link
// Wails need the build tag desktop; the others are plain Go, so that their tests need no
// window. Only main imports it.
package app

import (
	"log/slog"

	"sallyport/internal/buildinfo"
	"sallyport/runtime/host"
)

// Config says what the window is of. Places is required.
type Config struct {
	Places host.Places
	Build  buildinfo.Info
	Logger *slog.Logger // nil: none
	// Open is an address of sallyport:// that the program was started with; "" for none.
	Open string
}
