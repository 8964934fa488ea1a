package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"sallyport/runtime/approvals"
)

// FuzzShownText: whatever a plugin says, JSON stays the same JSON, and nothing
// that acts on a terminal passes either way out.
func FuzzShownText(f *testing.F) {
	for _, seed := range []string{"", "plain", "\x1b[2J", "\u202e\u200b\U000E0041", "\r\n\t", "\xff\xc3(", `\u001b "quoted"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		encoded, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var before, after string
		if json.Unmarshal(encoded, &before) != nil || json.Unmarshal([]byte(escaped(string(encoded))), &after) != nil || before != after {
			t.Fatalf("%q became %q", before, after)
		}
		var out bytes.Buffer
		if _, err := (terminal{&out}).Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		for _, written := range []string{out.String(), escaped(string(encoded))} {
			if strings.ContainsAny(written, "\x1b\r\a\b\u202e\u2066\u200b\u009b\ufeff") {
				t.Fatalf("%q passes as %q", text, written)
			}
		}
	})
}

// FuzzParseTools: what a person types chooses offered tools or nothing.
func FuzzParseTools(f *testing.F) {
	for _, seed := range []string{"", "read", "all", "1, b", "0", "4", "b,b", ",", "-1", "1e9", "99999999999999999999"} {
		f.Add(seed)
	}
	offered := []approvals.OfferedTool{{Name: "a"}, {Name: "b"}, {Name: "2"}}
	f.Fuzz(func(t *testing.T, line string) {
		choice, err := parseTools(line, offered)
		if err != nil && choice.given() {
			t.Fatalf("%q is refused and chooses %+v", line, choice)
		}
		if err := choice.onOffer(offered); err != nil {
			t.Fatalf("%q chooses what is not on offer: %v", line, err)
		}
	})
}

func TestWhatIsTypedIsTakenExactly(t *testing.T) {
	offered := []approvals.OfferedTool{{Name: "a"}, {Name: "b"}, {Name: "2"}}
	for line, want := range map[string]string{
		"1": "a", "3": "2", "2": "2", " b , a": "b a", "": "", "read": "(read)", "all": "(all)",
		"0": "refused", "4": "refused", "-1": "refused", "1x": "refused", "1e9": "refused", "a,": "refused", "A": "refused", "a b": "refused",
	} {
		choice, err := parseTools(line, offered)
		got := strings.Join(choice.tools, " ")
		switch {
		case err != nil:
			got = "refused"
		case choice.readOnly:
			got = "(read)"
		case choice.all:
			got = "(all)"
		}
		if got != want {
			t.Errorf("%q means %q, not %q", line, got, want)
		}
	}
}
