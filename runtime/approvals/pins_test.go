package approvals

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"sallyport/internal/coded"
)

const searchTool = `{"name":"search","title":"Search","description":"finds notes","inputSchema":{"type":"object","properties":{"q":{"type":"string"}}},"annotations":{"destructiveHint":true}}`

// C41: what is a change of a tool, and what is none.
func TestWhatChangesAPin(t *testing.T) {
	_, want, err := PinTool(json.RawMessage(searchTool))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		what, old, new string
		same           bool
	}{
		{"one word of the description", "finds notes", "finds mails", false},
		{"an extra optional property", `"q":{"type":"string"}`, `"q":{"type":"string"},"bcc":{"type":"string"}`, false},
		{"destructiveHint true to false", `"destructiveHint":true`, `"destructiveHint":false`, false},
		{"a new name for the same text", `"name":"search"`, `"name":"find"`, false},
		{"an invisible character in the description", "finds notes", "finds\u200b notes", false},
		{"a title gone", `"title":"Search",`, ``, false},
		{"an unknown member", `"title"`, `"x-extra":1,"title"`, false},
		{"_meta", `"title"`, `"_meta":{"a":1},"title"`, false},
		{"icons", `"title"`, `"icons":[{"src":"https://x.example/i.png"}],"title"`, false},
		{"key order", `"name":"search","title":"Search"`, `"title":"Search","name":"search"`, true},
		{"white space", `{"type":"object"`, "{ \"type\" :\n\t\"object\"", true},
		{"another spelling of a character", "finds notes", `finds \u006eotes`, true},
	} {
		changed := strings.Replace(searchTool, row.old, row.new, 1)
		if changed == searchTool {
			t.Fatalf("%s: the row changes nothing", row.what)
		}
		_, got, err := PinTool(json.RawMessage(changed))
		if err != nil || (got == want) != row.same {
			t.Errorf("%s: pin is the same: %v, %v", row.what, got == want, err)
		}
	}
}

func TestInstructionsPromptsAndTemplatesArePinned(t *testing.T) {
	a, errA := PinText("be kind")
	b, errB := PinText("be kind ")
	if errA != nil || errB != nil || a == b || !strings.HasPrefix(string(a), "t1:") {
		t.Fatal(a, b, errA, errB)
	}
	if _, err := PinText("\xff"); coded.Of(err) != "tool-unpinnable" {
		t.Fatal(err)
	}
	if name, _, err := PinPrompt(json.RawMessage(`{"name":"greet"}`)); name != "greet" || err != nil {
		t.Fatal(name, err)
	}
	if name, _, err := PinTemplate(json.RawMessage(`{"uriTemplate":"note://{id}","name":"x"}`)); name != "note://{id}" || err != nil {
		t.Fatal(name, err)
	}
}

func TestHiddenCharactersAreShown(t *testing.T) {
	for _, row := range []struct{ in, want string }{
		{"plain text", "plain text"},
		{"zero\u200bwidth", `zero\u{200B}width`},
		{"right\u202eleft", `right\u{202E}left`},
		{"tag\U000e0041", `tag\u{E0041}`},
		{"\x1b[8mhid\x1b[0m", `\u{001B}[8mhid\u{001B}[0m`},
		{"a\u2028b", `a\u{2028}b`},
		{"\xff", `\xFF`},
		{"数据库 é ж", "数据库 é ж"},
	} {
		if got := Visible(row.in); got != row.want {
			t.Errorf("%q: got %s, want %s", row.in, got, row.want)
		}
	}
}

// FuzzPinTool: never a panic; and whatever is pinned has the same pin when its
// keys are sorted and its white space is gone.
func FuzzPinTool(f *testing.F) {
	for _, seed := range []string{searchTool, `{}`, `{"name":"a","name":"b"}`, `{"name":"\ud800"}`, `{"name":"a","n":1e400}`, `null`, `[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		name, pin, err := PinTool(raw)
		if err != nil {
			if coded.Of(err) != "tool-unpinnable" || pin != "" {
				t.Fatalf("refused without its code: %q %v", pin, err)
			}
			return
		}
		var any map[string]json.RawMessage
		if err := json.Unmarshal(raw, &any); err != nil {
			t.Fatalf("pinned what is not an object: %v", err)
		}
		again, err := json.Marshal(any) // sorts the keys
		if err != nil {
			t.Fatal(err)
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, again, "", "\t"); err != nil {
			t.Fatal(err)
		}
		name2, pin2, err := PinTool(indented.Bytes())
		if err != nil || name2 != name || pin2 != pin {
			t.Fatalf("%q: %s became %s (%v)", name, pin, pin2, err)
		}
	})
}

// FuzzDocuments: what stands in the store is anybody's text. Nothing of it may
// stop the gate from opening.
func FuzzDocuments(f *testing.F) {
	for _, seed := range []string{`{"schema":1}`, `{"schema":null}`, `{"run":{}}`, `[]`, `{"schema":1e400}`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		isLegacy(raw)
		schemaOf(raw)
		decodeRecord(raw)
		decodeDecision(raw)
		looseNames(raw, "name")
		descriptionOf(raw)
	})
}

// FuzzVisible: what is shown has nothing in it that cannot be seen.
func FuzzVisible(f *testing.F) {
	f.Add("a\u202eb\n\xff")
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range Visible(text) {
			if hidden(r) {
				t.Fatalf("%q shows %U", text, r)
			}
		}
	})
}
