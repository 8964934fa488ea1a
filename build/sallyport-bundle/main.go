// Command sallyport-bundle makes and checks what is shipped, where a shell script
// would have to read binary files. It is a tool of the build and in no package;
// "make package" and "make release" say how it is used (docs/packaging.md).
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// commands are all there is; each takes its arguments and says how they are written.
func commands() map[string]struct {
	usage string
	run   func(args []string, out io.Writer) error
} {
	return map[string]struct {
		usage string
		run   func(args []string, out io.Writer) error
	}{
		"app":       {"app [-headless] [-date EPOCH] DIR.app DIR.zip PROGRAM...", makeApp},
		"check":     {"check [-version X.Y.Z] [-archs amd64,arm64] DIR.app", checkApp},
		"icons":     {"icons DIR", icons},
		"stamp":     {"stamp PROGRAM", stamp},
		"manifest":  {"manifest -version X.Y.Z -date EPOCH -url URL -notes URL [-key FILE] DIR", announce},
		"resources": {"resources PROGRAM.exe", resources},
		"windows":   {"windows [-window] -version X.Y.Z PROGRAM.exe", checkWindows},
		"ico":       {"ico FILE.ico", ico},
		"libraries": {"libraries static|desktop PROGRAM", checkLibraries},
	}
}

func main() {
	err := errors.New("usage: sallyport-bundle " + names())
	if len(os.Args) > 1 {
		if command, ok := commands()[os.Args[1]]; ok {
			err = command.run(os.Args[2:], os.Stdout)
			if errors.Is(err, errUsage) {
				err = errors.New("usage: sallyport-bundle " + command.usage)
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var errUsage = errors.New("wrong usage")

func names() string {
	var all []string
	for name := range commands() {
		all = append(all, name)
	}
	return strings.Join(all, "|")
}
