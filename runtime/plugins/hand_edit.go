package plugins

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"sallyport/internal/coded"
)

// HandEdit changes the text of a connectors.json and leaves the rest of it as it is:
// comments, order and white space. A file that cannot be read is not changed, and
// neither is one that could not be read afterwards.
type HandEdit struct {
	text []byte
	root hujson.Value
}

// EditHand begins to change a file's text; no text is a new file.
func EditHand(text []byte) (*HandEdit, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{\n  \"connectors\": {}\n}\n")
	}
	e := &HandEdit{}
	return e, e.take(slices.Clone(text))
}

// take checks a text and makes it the present one.
func (e *HandEdit) take(text []byte) error {
	r := &report{path: HandFile}
	entries, problem := r.handEntries(text)
	if problem == nil {
		if twice := entries.repeatedHere(); twice != nil {
			p := r.add(twice.at, "server-duplicate", fmt.Sprintf("the connector %s stands twice", show(twice.name)))
			problem = &p
		}
	}
	if problem != nil {
		refusal := problem.refusal()
		refusal.Next = "correct connectors.json, then try again; nothing was changed"
		return refusal
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return &coded.Error{Code: "connectors-syntax", Path: HandFile, Sentence: "this is not valid JSON, even with comments",
			Next: "correct connectors.json, then try again; nothing was changed"}
	}
	e.text, e.root = text, root
	return nil
}

// Text is the file's text as it is now.
func (e *HandEdit) Text() []byte { return e.text }

// Names are the connectors' names in the order of the file.
func (e *HandEdit) Names() (names []string) {
	entries := e.entries()
	if entries == nil {
		return nil
	}
	for _, m := range entries.Members {
		names = append(names, m.Name.Value.(hujson.Literal).String())
	}
	return names
}

// object returns the value under connectors.
func (e *HandEdit) entries() *hujson.Object {
	value := e.value()
	if value == nil {
		return nil
	}
	object, _ := value.Value.(*hujson.Object)
	return object
}

func (e *HandEdit) value() *hujson.Value {
	root := e.root.Value.(*hujson.Object)
	for i := range root.Members {
		if root.Members[i].Name.Value.(hujson.Literal).String() == "connectors" {
			return &root.Members[i].Value
		}
	}
	return nil
}

func (e *HandEdit) index(name string) int { return slices.Index(e.Names(), name) }

// Add puts a connector at the end. The name must be free and the entry one that can
// be used.
func (e *HandEdit) Add(name string, entry HandEntry) error {
	if e.index(name) >= 0 {
		return &coded.Error{Code: "connector-exists", Sentence: fmt.Sprintf("there is a connector %s already", show(name)),
			Next: "choose another name, or remove that one: sallyport connectors remove " + name}
	}
	if err := CheckHand(name, entry); err != nil {
		return err
	}
	key, err := json.Marshal(name)
	if err != nil {
		return err
	}
	if e.value() == nil {
		if err := e.insert(e.root, `"connectors": {}`, "  "); err != nil {
			return err
		}
	}
	indent := e.indent()
	value, err := encoded(entry, indent)
	if err != nil {
		return err
	}
	return e.insert(*e.value(), string(key)+": "+value, indent)
}

// encoded is the entry as JSON, without the escapes that are for HTML.
func encoded(entry HandEntry, indent string) (string, error) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	unit := "  "
	if strings.HasPrefix(indent, "\t") {
		unit = "\t"
	}
	encoder.SetIndent(indent, unit)
	if err := encoder.Encode(entry); err != nil {
		return "", err
	}
	return strings.TrimSpace(b.String()), nil
}

// indent is that of the first connector of the file.
func (e *HandEdit) indent() string {
	if entries := e.entries(); len(entries.Members) > 0 {
		start := entries.Members[0].Name.StartOffset
		line := e.text[bytes.LastIndexByte(e.text[:start], '\n')+1 : start]
		if len(bytes.TrimLeft(line, " \t")) == 0 {
			return string(line)
		}
	}
	return "    "
}

// insert puts a member at the end of an object: after the comment that stands on the
// last member's line, and with a comma after it where the object has that style.
func (e *HandEdit) insert(holder hujson.Value, member, indent string) error {
	object := holder.Value.(*hujson.Object)
	if len(object.Members) == 0 {
		at := holder.StartOffset + 1
		text := "\n" + indent + member
		if end := lineEnd(e.text, at); end > at || e.text[end] != '\n' {
			// A comment may follow the bracket: the member comes before it, on its own line.
			text += "\n" + strings.TrimSuffix(indent, unitOf(indent))
		}
		return e.take(slices.Concat(e.text[:at], []byte(text), e.text[at:]))
	}
	last := object.Members[len(object.Members)-1].Value
	end := last.EndOffset
	comma := end + len(last.AfterExtra)
	trailing := e.text[comma] == ','
	before, from := e.text[:end], end
	added := ","
	if trailing {
		before, from, added = e.text[:comma+1], comma+1, ""
	}
	at := lineEnd(e.text, from)
	text := "\n" + indent + member
	if trailing {
		text += ","
	}
	if e.text[at] != '\n' {
		text += "\n" + strings.TrimSuffix(indent, unitOf(indent))
	}
	return e.take(slices.Concat(before, []byte(added), e.text[from:at], []byte(text), e.text[at:]))
}

func unitOf(indent string) string {
	if strings.HasSuffix(indent, "\t") {
		return "\t"
	}
	return "  "
}

// lineEnd returns the end of the line that at is in, if only spaces and comments
// follow there, and at otherwise.
func lineEnd(text []byte, at int) int {
	for i := at; i < len(text); {
		switch rest := text[i:]; {
		case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r':
			i++
		case rest[0] == '\n':
			return i
		case bytes.HasPrefix(rest, []byte("//")):
			if end := bytes.IndexByte(rest, '\n'); end >= 0 {
				return i + end
			}
			return at
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest, []byte("*/"))
			if end < 0 || bytes.IndexByte(rest[:end], '\n') >= 0 {
				return at
			}
			i += end + 2
		default:
			return at
		}
	}
	return at
}

// Remove takes a connector out, with the comment on its line; comments on lines of
// their own stay.
func (e *HandEdit) Remove(name string) error {
	i := e.index(name)
	if i < 0 {
		return unknownConnector(name)
	}
	members := e.entries().Members
	start := members[i].Name.StartOffset
	value := members[i].Value
	end := value.EndOffset
	comma := end + len(value.AfterExtra)
	follows := e.text[comma] == ','
	text := e.text
	if follows {
		end = comma + 1
	} else if i > 0 {
		// The one before becomes the last, and its comma goes.
		previous := members[i-1].Value
		at := previous.EndOffset + len(previous.AfterExtra)
		text = slices.Concat(text[:at], text[at+1:])
		start, end = start-1, end-1
	}
	line := bytes.LastIndexByte(text[:start], '\n') + 1
	if after := lineEnd(text, end); len(bytes.TrimLeft(text[line:start], " \t")) == 0 && text[after] == '\n' {
		start, end = line, after+1
	}
	return e.take(slices.Concat(text[:start], text[end:]))
}

// Rename gives a connector another name and leaves it where it is.
func (e *HandEdit) Rename(from, to string) error {
	i := e.index(from)
	switch {
	case i < 0:
		return unknownConnector(from)
	case e.index(to) >= 0:
		return &coded.Error{Code: "connector-exists", Sentence: fmt.Sprintf("there is a connector %s already", show(to)), Next: "choose another name"}
	}
	if f := handName(to); f != nil {
		return &coded.Error{Code: f.code, Sentence: f.sentence, Next: "choose another name"}
	}
	key, err := json.Marshal(to)
	if err != nil {
		return err
	}
	name := e.entries().Members[i].Name
	return e.take(slices.Concat(e.text[:name.StartOffset], key, e.text[name.EndOffset:]))
}

func unknownConnector(name string) error {
	return &coded.Error{Code: "connector-unknown", Sentence: fmt.Sprintf("connectors.json has no connector %s", show(name)),
		Next: "see what there is: sallyport connectors list"}
}

// CheckHand says why an entry could never be used.
func CheckHand(name string, entry HandEntry) error {
	raw, err := json.Marshal(map[string]any{"connectors": map[string]HandEntry{name: entry}})
	if err != nil {
		return err
	}
	p := &Plugin{Name: ByHand, Format: ByHand}
	p.readHand(raw)
	switch {
	case p.Invalid != nil:
		return p.Invalid
	case len(p.Connectors) != 1:
		return coded.New("connectors-invalid", "the entry cannot be written")
	case p.Connectors[0].ID.Server != name:
		return &coded.Error{Code: "server-name-invalid", Sentence: "the name is not valid text", Next: "choose another name"}
	case p.Connectors[0].Invalid != nil:
		refusal := *p.Connectors[0].Invalid
		refusal.Path, refusal.Next = "", "correct what was given; nothing was written"
		return &refusal
	}
	return nil
}
