package cli

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"
)

// launched returns the command line of a start without one. Whoever opens the
// headless program's .app in Finder types nothing, sees no output and expects to see
// Sallyport: that is "open". In a terminal it is help, as everywhere.
func launched(args []string) []string {
	if len(args) > 0 || term.IsTerminal(int(os.Stdin.Fd())) || term.IsTerminal(int(os.Stdout.Fd())) {
		return args
	}
	if executable, err := os.Executable(); err != nil || !inBundle(executable) {
		return args
	}
	return []string{"open"}
}

// inBundle reports whether a program lies where macOS has those of an app.
func inBundle(executable string) bool {
	folder := filepath.ToSlash(filepath.Dir(executable))
	app, ok := strings.CutSuffix(folder, "/Contents/MacOS")
	return ok && strings.HasSuffix(app, ".app")
}
