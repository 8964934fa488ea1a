package jsonedit

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/tailscale/hujson"
)

func TestSetKeepsEverythingElse(t *testing.T) {
	for _, row := range []struct {
		what, text string
		value      any
		path       []string
		want       string
	}{
		{"in an empty file", "", "v", []string{"a", "b"}, "{\n  \"a\": {\n    \"b\": \"v\"\n  }\n}\n"},
		{"in place", "{\n  \"a\": \"old\", // note\n  \"z\": 1\n}\n", "new", []string{"a"}, "{\n  \"a\": \"new\", // note\n  \"z\": 1\n}\n"},
		{"in another's indentation", "{\n\t\"z\": 1\n}\n", []string{"x"}, []string{"a"}, "{\n\t\"z\": 1,\n\t\"a\": [\"x\"]\n}\n"},
		{"on one line", `{"z": 1}`, "v", []string{"a"}, `{"z": 1, "a": "v"}`},
		{"in an object on one line", `{"z": {}}`, "v", []string{"z", "a"}, "{\"z\": {\n    \"a\": \"v\"\n  }}"},
		{"behind a comment", "{\n  \"z\": 1 // of z\n}\n", "v", []string{"a"}, "{\n  \"z\": 1, // of z\n  \"a\": \"v\"\n}\n"},
		{"behind a trailing comma", "{\n  \"z\": 1, // of z\n}\n", "v", []string{"a"}, "{\n  \"z\": 1, // of z\n  \"a\": \"v\"\n}\n"},
		{"an object becomes a text", `{"a": {"b": 1}}`, "v", []string{"a"}, `{"a": "v"}`},
		{"characters that HTML knows stay", `{}`, "<&>", []string{"a"}, "{\n  \"a\": \"<&>\"\n}"},
		{"an escaped name is the same name", `{"\u0061": 1}`, 2, []string{"a"}, `{"\u0061": 2}`},
	} {
		got, err := Set([]byte(row.text), row.value, row.path...)
		if err != nil || string(got) != row.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", row.what, err, got, row.want)
		}
	}
}

func TestRemoveKeepsEverythingElse(t *testing.T) {
	for _, row := range []struct {
		what, text string
		path       []string
		want       string
	}{
		{"the only one", `{"a": 1}`, []string{"a"}, `{}`},
		{"the first", "{\n  \"a\": 1,\n  \"b\": 2\n}", []string{"a"}, "{\n  \"b\": 2\n}"},
		{"the last", "{\n  \"a\": 1,\n  \"b\": 2\n}", []string{"b"}, "{\n  \"a\": 1\n}"},
		{"below", `{"a": {"b": 1, "c": 2}}`, []string{"a", "b"}, `{"a": { "c": 2}}`},
	} {
		got, err := Remove([]byte(row.text), row.path...)
		if err != nil || string(got) != row.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", row.what, err, got, row.want)
		}
	}
}

func TestWhatIsNotEdited(t *testing.T) {
	nested := make([]byte, 0, 2*maxDepth)
	for range maxDepth + 1 {
		nested = append(nested, '[')
	}
	for _, row := range []struct {
		what, text string
		want       error
	}{
		{"a list", `[]`, ErrShape},
		{"a text on the way", `{"a": "x"}`, ErrShape},
		{"a name twice", `{"a": {}, "a": {}}`, ErrTwice},
		{"too deep", string(nested), ErrShape},
		{"no JSON", `{"a": hunter2}`, nil},
		{"cut off", `{"a": {`, nil},
	} {
		got, err := Set([]byte(row.text), "v", "a", "b")
		if got != nil || err == nil || row.want != nil && !errors.Is(err, row.want) {
			t.Errorf("%s: %q, %v", row.what, got, err)
		}
	}
	if _, err := Remove([]byte(`{"a": {}}`), "a", "b"); !errors.Is(err, ErrAbsent) {
		t.Errorf("removing nothing: %v", err)
	}
}

func FuzzSetThenRemove(f *testing.F) {
	f.Add([]byte("{\n  // c\n  \"a\": 1,\n}\n"), "b", "v")
	f.Add([]byte(`{"a":{"b":[1,2]}}`), "a", "")
	f.Fuzz(func(t *testing.T, text []byte, name, value string) {
		before, ok := decoded(text)
		set, err := Set(text, value, name)
		if err != nil {
			return
		}
		after, valid := decoded(set)
		name, value = asJSON(name), asJSON(value)
		if !valid || after[name] != value {
			t.Fatalf("%q became %q", text, set)
		}
		rest, err := Remove(set, name)
		left, valid := decoded(rest)
		if err != nil || !valid {
			t.Fatalf("%q became %q: %v", set, rest, err)
		}
		delete(before, name)
		if ok && !reflect.DeepEqual(before, left) {
			t.Fatalf("%q became %q", text, rest)
		}
	})
}

// asJSON is text as it comes back from JSON.
func asJSON(text string) (out string) {
	raw, _ := json.Marshal(text)
	json.Unmarshal(raw, &out)
	return out
}

func decoded(text []byte) (map[string]any, bool) {
	standard, err := hujson.Standardize(append([]byte{}, text...))
	out := map[string]any{}
	return out, err == nil && json.Unmarshal(standard, &out) == nil
}

func TestText(t *testing.T) {
	text := []byte("{\"a\": {\"b\": \"v\\u0041\", \"c\": 1, \"d\": \"1\", \"d\": \"2\"}, // note\n}")
	for _, row := range []struct {
		path []string
		want string
		ok   bool
	}{
		{[]string{"a", "b"}, "vA", true}, {[]string{"a", "c"}, "", false}, {[]string{"a", "d"}, "", false},
		{[]string{"a"}, "", false}, {[]string{"a", "b", "c"}, "", false}, {[]string{"x"}, "", false}, {nil, "", false},
	} {
		if got, ok := Text(text, row.path...); got != row.want || ok != row.ok {
			t.Errorf("%v: %q %v", row.path, got, ok)
		}
	}
	if _, ok := Text([]byte("{"), "a"); ok {
		t.Error("a text that is no JSON has a value")
	}
}
