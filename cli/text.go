package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"sallyport/runtime/approvals"
)

// shown is text of a plugin's for a terminal: what cannot be seen is made
// visible, so that no escape sequence or invisible character acts on the reader.
func shown(text string) string { return approvals.Visible(text) }

// oneLine is shown, cut to width runes.
func oneLine(text string, width int) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	runes := []rune(shown(line))
	if len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	if more {
		return string(runes) + " …"
	}
	return string(runes)
}

func quote(text string) string { return strconv.Quote(text) }

// count says how many of what, in words.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// page writes lines and remembers the first error, so that printing reads as
// text.
type page struct {
	w   io.Writer
	err error
}

func (p *page) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// field writes a label and a value where there is one.
func (p *page) field(label, value string) {
	if value != "" {
		p.line("  %-12s %s", label, value)
	}
}

// lines yields the lines of text without their ends.
func lines(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if !yield(strings.TrimRight(line, "\r\n")) {
				return
			}
		}
	}
}
