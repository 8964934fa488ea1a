package process

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const (
	// TailSize is how many bytes of stderr are kept (spec/stdio-framing.md 9).
	TailSize = 64 << 10
	// TailLine is where a line is cut.
	TailLine = 4 << 10
	// tailLines bounds what empty lines cost.
	tailLines = 4096
)

// Tail keeps the end of what a child wrote to stderr: the last TailSize bytes
// in lines of at most TailLine, with known secrets masked. It takes everything
// at once and never blocks the child. A lone carriage return starts the line
// anew, as a terminal shows it, so that progress bars do not push out the error.
type Tail struct {
	mu      sync.Mutex
	mask    *masker
	lines   []string // masked, not yet made safe
	first   int      // index of the oldest line that is kept
	size    int      // of the lines that are kept, a line end each
	line    []byte   // the line that is not complete
	cut     bool     // line is at its limit
	carried bool     // the last byte was a carriage return
	total   int64
}

// NewTail returns a Tail that masks the secrets.
func NewTail(secrets []string) *Tail { return &Tail{mask: newMasker(secrets)} }

// Write implements io.Writer; it takes everything and never fails.
func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total += int64(len(b))
	t.take(t.mask.next(b))
	return len(b), nil
}

// Close says that nothing follows: what was held back because it might have
// become a secret is judged.
func (t *Tail) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.take(t.mask.end())
	return nil
}

// Total is how many bytes the child has written.
func (t *Tail) Total() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total
}

// Lines returns the lines that are kept, the incomplete last one included, as
// text that is safe to show: control and invisible characters are written out.
// It is still the plugin's text: untrusted, and never markup.
func (t *Tail) Lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := make([]string, 0, len(t.lines)-t.first+1)
	for _, line := range t.lines[t.first:] {
		lines = append(lines, Visible(line))
	}
	if len(t.line) > 0 {
		lines = append(lines, Visible(t.shown()))
	}
	return lines
}

func (t *Tail) take(b []byte) {
	for len(b) > 0 {
		n := bytes.IndexAny(b, "\r\n")
		if n != 0 && t.carried {
			t.line, t.cut, t.carried = t.line[:0], false, false
		}
		if n < 0 {
			t.append(b)
			return
		}
		t.append(b[:n])
		if b[n] == '\n' {
			t.push(t.shown())
			t.line, t.cut = t.line[:0], false
		}
		t.carried = b[n] == '\r'
		b = b[n+1:]
	}
}

func (t *Tail) append(b []byte) {
	if room := TailLine - len(t.line); len(b) > room {
		b, t.cut = b[:room], true
	}
	t.line = append(t.line, b...)
}

func (t *Tail) shown() string {
	if t.cut {
		return strings.ToValidUTF8(string(t.line), "") + "…"
	}
	return string(t.line)
}

// push appends a line and lets go of the oldest ones. Room is given back only
// once half of it is unused, so that a flood of short lines costs no copying.
func (t *Tail) push(line string) {
	t.lines = append(t.lines, line)
	t.size += len(line) + 1
	for t.size > TailSize || len(t.lines)-t.first > tailLines {
		t.size -= len(t.lines[t.first]) + 1
		t.lines[t.first] = ""
		t.first++
	}
	if t.first > len(t.lines)/2 {
		t.lines = append([]string(nil), t.lines[t.first:]...)
		t.first = 0
	}
}

// Visible writes out what a reader would not see or a terminal would obey:
// control characters, bytes that are not UTF-8, and invisible or
// direction-changing characters. Tabs stay.
func Visible(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\t' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}
