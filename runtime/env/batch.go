package env

import (
	"fmt"
	"strings"

	"sallyport/internal/coded"
)

// CheckBatch refuses arguments that cmd.exe would read again instead of handing
// them over, when executable is a batch file (spec/child-environment.md 6). The
// check is on the text, so that it is the same on every system. The code is
// batch-argument.
//
// No quoting is tried: cmd.exe expands % inside quotes, and batch files such as
// npx.cmd hand %* to a second reading.
func CheckBatch(executable string, args []string) error {
	if !isBatch(executable) {
		return nil
	}
	for i, arg := range args {
		if r, bad := reinterpreted(arg); bad {
			return &coded.Error{
				Code:     "batch-argument",
				Sentence: fmt.Sprintf("argument %d holds %q, which a Windows batch file would reinterpret", i+1, r),
				Next:     "start the program behind the batch file (for npx.cmd: node.exe and the script) instead",
			}
		}
	}
	return nil
}

// isBatch also sees through the trailing dots and spaces that Windows ignores.
func isBatch(executable string) bool {
	name := strings.ToLower(strings.TrimRight(executable, ". "))
	return strings.HasSuffix(name, ".bat") || strings.HasSuffix(name, ".cmd")
}

func reinterpreted(arg string) (rune, bool) {
	quoted := strings.ContainsAny(arg, " \t") || arg == "" // as os/exec quotes it
	for _, r := range arg {
		switch {
		case strings.ContainsRune("\"%!^&|<>", r), r < ' ' && r != '\t', r == 0x7f:
			return r, true
		case !quoted && strings.ContainsRune("()", r):
			return r, true
		}
	}
	return 0, false
}
