package env

import (
	"iter"
	"math"
	"regexp"
	"strings"
)

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isAlnum(c byte) bool { return isUpper(c) || isLower(c) || isDigit(c) }

func isNumber(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// longest is how much of a value is looked at where the whole adds nothing.
const longest = 4096

// ownFolder is a folder of the connector's own, whole or as the beginning of a path.
var ownFolder = regexp.MustCompile(`^\$\{(CLAUDE_)?PLUGIN_(ROOT|DATA)\}$`)

var pathForm = regexp.MustCompile(`^(~|\.{1,2}|[A-Za-z]:|\$\{[A-Za-z_]+\}|%[A-Za-z_]+%)?[/\\][A-Za-z0-9._@+ \-/\\()]*$`)

// isPath takes a place in the file system for what it is, but no base64 that
// happens to begin with "/".
func isPath(value string) bool {
	return ownFolder.MatchString(value) || len(value) <= longest && pathForm.MatchString(value) && !looksRandom(value)
}

// looksRandom reports whether a part of the value looks made by a machine to be
// unguessable: 16 characters or more that are neither words nor a number.
func looksRandom(value string) bool {
	if len(value) > longest {
		value = value[:longest]
	}
	for part := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune(" \t\r\n/\\:?&=@;,'\"<>()[]{}", r) }) {
		if len(part) >= 16 && !wordy(part) && entropy(part) >= 3 {
			return true
		}
	}
	return false
}

// wordy reports whether text is made of words, numbers and versions: model and
// host names, regions, dates, slugs.
func wordy(text string) bool {
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r > 127 || !isAlnum(byte(r)) }) {
		if !wordyPart(part) {
			return false
		}
	}
	return true
}

// wordyPart takes letters in humps, a short number, or a short mix (v1, ed25519).
func wordyPart(part string) bool {
	if isNumber(part) {
		return len(part) <= 8
	}
	changes, digits := 0, 0
	for i := range len(part) {
		if isDigit(part[i]) {
			digits++
		}
		if i > 0 && kindOf(part[i]) != kindOf(part[i-1]) {
			changes++
		}
	}
	if ending := len(part) - len(strings.TrimRight(part, "0123456789")); digits > 0 {
		return len(part) <= 8 && changes <= 3 || digits == ending && ending <= 3 && len(part) <= 16 && changes == 1
	}
	return len(part) <= 24 && changes <= len(part)/3+1
}

func kindOf(c byte) int {
	switch {
	case isDigit(c):
		return 0
	case isUpper(c):
		return 1
	}
	return 2
}

// entropy is Shannon's, in bits a character.
func entropy(text string) float64 {
	var counts [256]int
	for i := range len(text) {
		counts[text[i]]++
	}
	sum := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(text))
			sum -= p * math.Log2(p)
		}
	}
	return sum
}

var (
	// notExpanded is a reference in a place where nothing expands it.
	notExpanded = regexp.MustCompile(`^(secret:[A-Za-z0-9_.-]+|env:[A-Za-z0-9_]+|keyring:[A-Za-z0-9_.-]+|\$\{[^{}]*\}|\{\{[^{}]*\}\}|\{[A-Za-z0-9_:. -]*\}|\$[A-Za-z_][A-Za-z0-9_]*|%[A-Za-z_][A-Za-z0-9_]*%)$`)
	// toFill is in pointed or square brackets, dots, stars or crosses.
	toFill = regexp.MustCompile(`^(<[^<>]*>|\[[^\[\]]*\]|[.…]{2,}|[*•]{2,}|[xX]{2,}|[-_]+)$`)
	// fillWords stand for what somebody has to put there.
	fillWords = regexp.MustCompile(`(?i)(^|[^a-z0-9])(your|my|changeme|change[-_ ]?me|change[-_ ]this|replace[-_ ]?(me|this|with)?|placeholder|example|insert|todo|tbd|fixme|dummy|sample|redacted|(goes|key|token|secret|password)[-_ ]?here|xxx+|\*\*\*+)([^a-z0-9]|$)`)
)

// isPlaceholder reports whether a value stands for a credential without being one.
func isPlaceholder(value string) bool {
	_, value = SplitScheme(strings.TrimSpace(value))
	if len(value) > 256 {
		return false
	}
	switch strings.ToLower(value) {
	case "token", "secret", "password", "passwd", "key", "apikey", "api-key", "api_key", "api_token", "access_token", "credentials",
		"yourkey", "yourapikey", "yourtoken", "not-needed", "not-used", "unused":
		return true
	}
	if notExpanded.MatchString(value) || toFill.MatchString(value) {
		return true
	}
	return fillWords.MatchString(value) && !looksRandom(fillWords.ReplaceAllString(value, " "))
}

var (
	jsonPair   = regexp.MustCompile(`"([A-Za-z][A-Za-z0-9_.-]*)"[ \t\r\n]*:[ \t\r\n]*"([^"\\]*)`)
	equalsPair = regexp.MustCompile(`(?:^|[?&;,\s])-{0,2}([A-Za-z][A-Za-z0-9_.-]*(?: Key)?)=([^&;\s]+)`)
	linePair   = regexp.MustCompile(`(?:^|[\n,])[ \t]*([A-Za-z][A-Za-z0-9-]*):[ \t]*([^\r\n,]+)`)
)

// pairsIn yields the names and values that a text holds: of JSON, of a connection
// string or query, of header lines.
func pairsIn(text string) iter.Seq[NameValue] {
	return func(yield func(NameValue) bool) {
		for _, form := range []struct {
			hint string
			re   *regexp.Regexp
		}{{`":`, jsonPair}, {`" :`, jsonPair}, {"=", equalsPair}, {":", linePair}} {
			if !strings.Contains(text, form.hint) {
				continue
			}
			for rest := text; ; {
				m := form.re.FindStringSubmatchIndex(rest)
				if m == nil {
					break
				}
				value := strings.Trim(rest[m[4]:m[5]], `'"`)
				if !strings.HasPrefix(value, "//") && !yield(NameValue{rest[m[2]:m[3]], value}) {
					return
				}
				rest = rest[m[1]:] // what comes next begins with what ended the value
			}
		}
	}
}
