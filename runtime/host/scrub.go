package host

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Lines of the log are made by log/slog: key=value, quoted where needed. What is handed to
// strangers keeps the keys and, of the values, those that are words of Sallyport's own.

// safeKeys are attributes whose values are codes, names of connectors and numbers.
var safeKeys = []string{"time", "level", "msg", "connector", "reason", "code", "version", "result", "mode", "action", "step", "seconds",
	"route", "plugin", "pids", "pending", "method", "kind", "decision", "digest", "read", "directories"}

// told are attributes that hold what went wrong, in words.
var told = []string{"error", "err", "problem"}

const leftOut = "(left out)"

// scrubLine returns what of a line of the log may be handed to strangers; false for what
// is no such line.
func scrubLine(line string) (string, bool) {
	var out []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimLeft(line, " ") {
		key, rest, ok := strings.Cut(line, "=")
		if !ok || !aKey.MatchString(key) {
			return "", false
		}
		var value string
		if strings.HasPrefix(rest, `"`) {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return "", false
			}
			if value, err = strconv.Unquote(quoted); err != nil {
				return "", false
			}
			line = rest[len(quoted):]
		} else {
			value, line, _ = strings.Cut(rest, " ")
		}
		switch {
		case slices.Contains(safeKeys, key), slices.Contains(told, key):
			value = scrub(value)
		default:
			value = leftOut
		}
		if strings.ContainsAny(value, " \"=") || value == "" {
			value = strconv.Quote(value)
		}
		out = append(out, key+"="+value)
	}
	return strings.Join(out, " "), len(out) > 0
}

var (
	// A path begins behind anything but a word, and goes on to the next colon with a space
	// behind it, since names in it may have every other sign: more is left out rather than less.
	paths = regexp.MustCompile(`(^|[^\pL\pN_.~])(?:~?/|~\\|[A-Za-z]:[\\/]|\\\\)(?:[^:]|:\S)*`)
	// What a server says of its error is its own text, in which it may repeat what it was given.
	servers = regexp.MustCompile(`(?s)(the server answered with error -?\d+): .*`)
	urls    = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"']*`)
	runs    = regexp.MustCompile(`[A-Za-z0-9+/_=.-]{20,}`)
)

const mostOfALine = 1000

// scrub takes paths, addresses and what could be a credential out of a text.
func scrub(text string) string {
	text = servers.ReplaceAllString(text, "$1 "+leftOut)
	text = urls.ReplaceAllString(text, "(address)")
	text = paths.ReplaceAllString(text, "$1(path)")
	text = runs.ReplaceAllStringFunc(text, func(run string) string {
		if strings.ContainsFunc(run, unicode.IsDigit) && !isTime(run) || strings.ContainsFunc(run, unicode.IsUpper) && !isTime(run) {
			return "(…)"
		}
		return run
	})
	if r := []rune(text); len(r) > mostOfALine {
		text = string(r[:mostOfALine]) + "…"
	}
	return text
}

var aKey = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,40}$`)

var aTime = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T[\d:.]*(Z|[+-]\d*)?$`)

func isTime(run string) bool { return aTime.MatchString(run) }
