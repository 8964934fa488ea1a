package mcp

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzToken: what is found is what encoding/json finds, and replacing it changes
// nothing else.
func FuzzToken(f *testing.F) {
	for _, seed := range []string{
		`{"_meta":{"progressToken":"a"},"x":1}`, `{"a":{"_meta":{"progressToken":1}}}`, `{"_meta":{"progressToken":-1.5e3,"z":{}}}`,
		`{"_meta":null}`, `{"_meta":{"progressToken":null}}`, `{"_meta":{"progressToken":"\\""}}`, ` { "_meta" : { "progressToken" : 1 } } `,
	} {
		f.Add([]byte(seed))
	}
	type shape struct {
		Meta struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		from, to, err := findToken(params)
		if err != nil {
			return
		}
		var got shape
		if !json.Valid(params) {
			t.Fatalf("%q is not JSON", params)
		}
		if json.Unmarshal(params, &got) != nil {
			if from != to {
				t.Fatalf("%q: found %q", params, params[from:to])
			}
			return
		}
		if token := got.Meta.Token; len(token) > 0 && isToken(token[0]) != (to > from) || to > from && !bytes.Equal(token, params[from:to]) {
			t.Fatalf("%q: found %q, encoding/json has %q", params, params[from:to], token)
		}
		line := appendRequest(7, "m", params, from, to)
		if bytes.Count(line, []byte("\n")) != 1 {
			t.Fatalf("%q is not one line", line)
		}
		e, err := new(Parser).Parse(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		want := params
		if to > from {
			want = splice(params, from, to, []byte("7"))
		}
		want = bytes.ReplaceAll(bytes.ReplaceAll(want, []byte("\n"), []byte(" ")), []byte("\r"), []byte(" "))
		if !bytes.Equal(bytes.TrimSpace(e.Params), bytes.TrimSpace(want)) {
			t.Fatalf("%q became %q", params, e.Params)
		}
	})
}
