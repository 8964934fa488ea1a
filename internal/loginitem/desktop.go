package loginitem

import (
	"bufio"
	"bytes"
	"strings"
)

// desktopMark tells our autostart entry from another program's of the same name.
const desktopMark = "X-Sallyport-Autostart"

// desktopEntry is an entry of the XDG autostart specification.
var desktopEntry = form{render: renderDesktop, read: readDesktop}

func renderDesktop(c command) []byte {
	words := make([]string, 0, 1+len(c.args))
	for _, word := range append([]string{c.program}, c.args...) {
		words = append(words, execWord(word))
	}
	lines := []string{
		"[Desktop Entry]", "Type=Application", "Name=Sallyport",
		"Comment=Started when you log in; sallyport autostart off removes this",
		"Exec=" + desktopString(strings.Join(words, " ")), "TryExec=" + desktopString(c.program),
		"Terminal=false", "NoDisplay=true", desktopMark + "=true",
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}

// execWord quotes a word of Exec (Desktop Entry Specification, "The Exec key"). A word
// that needs no quotes gets none: some sessions pass them on.
func execWord(word string) string {
	word = strings.ReplaceAll(word, "%", "%%")
	if word != "" && !strings.ContainsAny(word, " \t\n\"'\\><~|&;$*?#()`") {
		return word
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", "$", `\$`).Replace(word) + `"`
}

// desktopString escapes a value of the type string; a control character is in no path that
// gets here.
func desktopString(value string) string { return strings.ReplaceAll(value, `\`, `\\`) }

func readDesktop(text []byte) (command, bool) {
	values := map[string]string{}
	group := ""
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			group = line
		}
		if key, value, ok := strings.Cut(line, "="); ok && group == "[Desktop Entry]" {
			values[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	if values[desktopMark] != "true" {
		return command{}, false
	}
	c := command{paused: values["Hidden"] == "true" || values["X-GNOME-Autostart-enabled"] == "false"}
	if words := execWords(strings.ReplaceAll(values["Exec"], `\\`, `\`)); len(words) > 0 {
		c.program, c.args = words[0], words[1:]
	}
	return c, true
}

// execWords splits a value of Exec.
func execWords(text string) (words []string) {
	var word strings.Builder
	open, quoted, escaped := false, false, false
	end := func() {
		if open {
			words = append(words, strings.ReplaceAll(word.String(), "%%", "%"))
		}
		word.Reset()
		open = false
	}
	for _, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case r == '"':
			quoted, open = !quoted, true
		case !quoted && r == ' ':
			end()
		default:
			word.WriteRune(r)
			open = true
		}
	}
	end()
	return words
}
