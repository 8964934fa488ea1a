package onejson

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
)

type document struct {
	Name string   `json:"name"`
	List []string `json:"list"`
}

func TestOneWholeDocumentIsReadAndNothingElse(t *testing.T) {
	for _, row := range []struct {
		what, raw string
		ok        bool
	}{
		{"a document", `{"name":"a","list":["b"]}`, true},
		{"with white space around it", " {\"name\":\"a\"} \r\n\t", true},
		{"nothing", "", false},
		{"white space alone", "\n", false},
		{"a document that is cut", `{"name":"a"`, false},
		{"a field that is not known", `{"name":"a","more":1}`, false},
		{"a value of another type", `{"name":1}`, false},
		{"two documents", `{"name":"a"} {"name":"b"}`, false},
		{"a lone brace behind it", `{"name":"a"}}`, false},
		{"a lone bracket behind it", `{"name":"a"}]`, false},
		{"a comma behind it", `{"name":"a"},`, false},
		{"NUL behind it", "{\"name\":\"a\"}\x00", false},
		{"the end of a longer one behind it", `{"name":"a"}me":"b"}`, false},
		{"a byte order mark before it", "\ufeff{\"name\":\"a\"}", false},
	} {
		var d document
		err := Decode([]byte(row.raw), &d)
		if (err == nil) != row.ok || row.ok && d.Name != "a" {
			t.Errorf("%s: %+v, %v", row.what, d, err)
		}
	}
	if err := Decode([]byte(`{}}`), &document{}); !errors.Is(err, ErrBehind) {
		t.Errorf("a brace too many: %v", err)
	}
}

// FuzzDecode: what is accepted is one JSON value, and says the same when it is
// written again.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"name":"a"}`, `{}}`, `null`, `[]`, `{"list":["\ud800"]} `, "{\"name\":\"a\"}\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var first, second document
		if Decode(raw, &first) != nil {
			return
		}
		if !json.Valid(bytes.TrimSpace(raw)) {
			t.Fatalf("accepted %q", raw)
		}
		again, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		if err := Decode(again, &second); err != nil {
			t.Fatalf("%q is not read again: %v", again, err)
		}
	})
}
