//go:build desktop && !linux

package app

import (
	"context"
	"runtime"

	wails "github.com/wailsapp/wails/v2/pkg/runtime"
)

// hidesOnClose: on macOS a program stays when its window is closed.
const hidesOnClose = runtime.GOOS == "darwin"

// canShow: these systems have a screen.
func canShow() error { return nil }

// prepare: the webview's folder is an option on Windows, and the system's on macOS.
func prepare(string) {}

// guardWebview: Wails watches over the web process on these systems.
func guardWebview(context.Context, *window) {}

// replacePage cannot end a web process here: the page is told to load itself again.
func replacePage(w *window) { wails.WindowReloadApp(w.ctx) }

func icon() []byte { return nil }
