package loginitem

import (
	"path"
	"strings"
)

// runValue is a command line in the registry's key Run. It has no room for a mark: ours is
// what starts a program of our name as a sidecar.
var runValue = form{render: renderRun, read: readRun}

func renderRun(c command) []byte {
	words := make([]string, 0, 1+len(c.args))
	words = append(words, `"`+c.program+`"`) // no path has a quote on Windows
	for _, word := range c.args {
		words = append(words, runWord(word))
	}
	return []byte(strings.Join(words, " "))
}

// runWord quotes an argument as programs of Windows take their command line apart; a
// quote is in no argument that gets here.
func runWord(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t") {
		return word
	}
	bare := strings.TrimRight(word, `\`)
	return `"` + word + strings.Repeat(`\`, len(word)-len(bare)) + `"`
}

func readRun(text []byte) (command, bool) {
	words := runWords(string(text))
	if len(words) < 2 || words[1] != "serve" {
		return command{}, false
	}
	base := strings.ToLower(path.Base(strings.ReplaceAll(words[0], `\`, "/")))
	if !strings.HasPrefix(base, "sallyport") {
		return command{}, false
	}
	return command{program: words[0], args: words[1:]}, true
}

// runWords takes apart what renderRun wrote; a backslash is an ordinary sign but for those
// that are doubled before an ending quote.
func runWords(text string) (words []string) {
	for text = strings.TrimLeft(text, " \t"); text != ""; text = strings.TrimLeft(text, " \t") {
		if text[0] != '"' {
			word, rest, _ := strings.Cut(text, " ")
			words, text = append(words, word), rest
			continue
		}
		word, rest, _ := strings.Cut(text[1:], `"`)
		if bare := strings.TrimRight(word, `\`); len(words) > 0 {
			word = bare + strings.Repeat(`\`, (len(word)-len(bare))/2)
		}
		words, text = append(words, word), rest
	}
	return words
}
