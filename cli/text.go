package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf16"

	"golang.org/x/term"

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

// terminal is the last wall before a person's eyes: whatever a page was made of,
// no escape sequence and no invisible character gets through it. A write holds
// whole characters.
type terminal struct{ w io.Writer }

func (t terminal) Write(p []byte) (int, error) {
	var out strings.Builder
	for text := string(p); text != ""; {
		end := strings.IndexAny(text, "\n\t")
		if end < 0 {
			out.WriteString(shown(text))
			break
		}
		out.WriteString(shown(text[:end]) + text[end:end+1])
		text = text[end+1:]
	}
	if _, err := io.WriteString(t.w, out.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// forEyes is where bytes go that scripts get as they are: on a terminal they pass
// the wall, line by line. flush writes the last line.
func (c *command) forEyes() (w io.Writer, flush func() error) {
	if file, ok := c.Out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		l := &byLine{w: terminal{c.Out}}
		return l, l.flush
	}
	return c.Out, func() error { return nil }
}

// byLine hands on whole lines only, so that no character is cut.
type byLine struct {
	w    io.Writer
	rest []byte
}

func (l *byLine) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	end := bytes.LastIndexByte(l.rest, '\n') + 1
	if _, err := l.w.Write(l.rest[:end]); err != nil {
		return 0, err
	}
	l.rest = append(l.rest[:0], l.rest[end:]...)
	return len(p), nil
}

func (l *byLine) flush() error {
	_, err := l.w.Write(l.rest)
	return err
}

// escaped writes what cannot be seen in encoded JSON as \u escapes: the same
// JSON, that does nothing to a terminal.
func escaped(encoded string) string {
	var out strings.Builder
	for _, r := range encoded {
		switch {
		case r == '\n' || shown(string(r)) == string(r):
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

func quote(text string) string { return strconv.Quote(text) }

// typed writes a word as a shell takes it, for commands that a person may copy.
func typed(word string) string {
	plain := word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+,=", r))
	})
	if plain {
		return word
	}
	return "'" + strings.ReplaceAll(shown(word), "'", `'\''`) + "'"
}

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

// heading writes one where something follows.
func (p *page) heading(title string, follow int) {
	if follow > 0 {
		p.line("%s", title)
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
