package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// progress tells how far long work is, on one line of a terminal; elsewhere, and
// with --json, it says nothing.
type progress struct {
	w     io.Writer // nil: silent
	width int
}

func (c *command) progress() *progress {
	t, ok := c.Err.(terminal)
	if !ok || c.json {
		return &progress{}
	}
	file, ok := t.w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return &progress{}
	}
	return &progress{w: file}
}

func (p *progress) tell(text string) {
	if p.w == nil {
		return
	}
	text = oneLine(text, 76)
	p.width = max(p.width, len(text))
	fmt.Fprintf(p.w, "\r%-*s", p.width, text)
}

func (p *progress) end() {
	if p.w != nil && p.width > 0 {
		fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", p.width))
	}
}
