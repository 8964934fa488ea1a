package loginitem

import (
	"bytes"
	"encoding/xml"
	"io"
	"slices"
	"strings"
)

// agentMark tells our LaunchAgent from another program's of the same label.
const agentMark = "Written by Sallyport; sallyport autostart off removes it."

// launchAgent is a property list for launchd. Nothing keeps the program alive: it starts
// once, and who quits it has quit it.
var launchAgent = form{render: renderAgent, read: readAgent}

func renderAgent(c command) []byte {
	var b strings.Builder
	b.WriteString(xml.Header + `<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">` + "\n")
	b.WriteString("<!-- " + agentMark + " -->\n<plist version=\"1.0\">\n<dict>\n")
	b.WriteString("\t<key>Label</key>\n\t<string>" + Name + "</string>\n\t<key>ProgramArguments</key>\n\t<array>\n")
	for _, word := range append([]string{c.program}, c.args...) {
		b.WriteString("\t\t<string>")
		_ = xml.EscapeText(&b, []byte(word)) // a builder does not fail
		b.WriteString("</string>\n")
	}
	b.WriteString("\t</array>\n\t<key>RunAtLoad</key>\n\t<true/>\n\t<key>ProcessType</key>\n\t<string>Interactive</string>\n</dict>\n</plist>\n")
	return []byte(b.String())
}

// readAgent reads what renderAgent wrote, and what somebody made of it.
func readAgent(text []byte) (command, bool) {
	if !bytes.Contains(text, []byte("<!-- "+agentMark+" -->")) {
		return command{}, false
	}
	var c command
	decoder := xml.NewDecoder(bytes.NewReader(text))
	var key, value string
	var words, inside []string
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return command{}, true // ours once, and nothing now
		}
		switch t := token.(type) {
		case xml.StartElement:
			inside, value = append(inside, t.Name.Local), ""
		case xml.CharData:
			value += string(t)
		case xml.EndElement:
			inArray := slices.Contains(inside, "array")
			inside = inside[:len(inside)-1]
			switch {
			case t.Name.Local == "key":
				key = value
			case t.Name.Local == "string" && inArray && key == "ProgramArguments":
				words = append(words, value)
			case t.Name.Local == "true" && key == "Disabled", t.Name.Local == "false" && key == "RunAtLoad":
				c.paused = true
			}
		}
	}
	if len(words) > 0 {
		c.program, c.args = words[0], words[1:]
	}
	return c, true
}
