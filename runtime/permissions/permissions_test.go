package permissions

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"sallyport/internal/coded"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name, in string
		want     Set
		refused  string // part of the sentence
	}{
		{"the four lists are sorted and hosts get their port",
			`{"tools":["search","read_*","search"],"net":["API.example.com","*.example.org:8443"],"secrets":["TOKEN"],"fs":["plugin-data"]}`,
			Set{Tools: []string{"read_*", "search"}, Net: []string{"*.example.org:8443", "api.example.com:443"}, Secrets: []string{"TOKEN"}, FS: []string{"plugin-data"}}, ""},
		{"an empty list is not an absent one", `{"tools":[]}`, Set{Tools: []string{}}, ""},
		{"address literals are hosts", `{"net":["127.0.0.1:80","[::1]:8080"]}`, Set{Net: []string{"127.0.0.1:80", "[::1]:8080"}}, ""},
		{"an unknown name is refused", `{"tool":[]}`, Set{}, `unknown name "tool"`},
		{"a name in another case is unknown", `{"Tools":[]}`, Set{}, "unknown name"},
		{"a repeated name is refused", `{"fs":[],"fs":["plugin-data"]}`, Set{}, "unique names"},
		{"null is no list", `{"fs":null}`, Set{}, "not a list"},
		{"a list of something else is refused", `{"fs":[1]}`, Set{}, "not a list of strings"},
		{"a list is no set", `[]`, Set{}, "not a JSON object"},
		{"nothing is no set", ``, Set{}, "not a JSON object"},
		{"the fs words are closed", `{"fs":["home"]}`, Set{}, `"home" is not one of`},
		{"a path is no fs word", `{"fs":["/etc"]}`, Set{}, "is not one of"},
		{"a star alone is no host", `{"net":["*"]}`, Set{}, "is not host"},
		{"a star inside a host is refused", `{"net":["a.*.com"]}`, Set{}, "is not host"},
		{"a URL is no host", `{"net":["https://example.com"]}`, Set{}, "port"},
		{"port 0 is refused", `{"net":["example.com:0"]}`, Set{}, "port"},
		{"an address in odd notation is refused", `{"net":["127.1"]}`, Set{}, "is not host"},
		{"a secret with a slash is refused", `{"secrets":["a/b"]}`, Set{}, "letters"},
		{"an empty tool pattern is refused", `{"tools":[""]}`, Set{}, "is empty"},
		{"an invisible character in a pattern is refused", `{"tools":["a\u200bb"]}`, Set{}, "no tool name"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Parse([]byte(test.in))
			if test.refused != "" {
				if coded.Of(err) != "permissions-invalid" || !strings.Contains(err.Error(), test.refused) {
					t.Fatalf("got %v, want a refusal with %q", err, test.refused)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Fatalf("got %#v, %v, want %#v", got, err, test.want)
			}
		})
	}
}

func TestRequestAbsentIsNotEmpty(t *testing.T) {
	got, err := Request([]byte(`{"fs":[]}`))
	if err != nil || !got.AllowsTool("anything") || got.AllowsFS(PluginData) {
		t.Fatalf("got %#v, %v", got, err)
	}
}

func TestWithin(t *testing.T) {
	outer := Set{
		Tools: []string{"read_*", "*_note", "search"}, Net: []string{"*.example.org:8443", "api.example.com"},
		Secrets: []string{"A"}, FS: []string{WorkspaceWrite},
	}
	tests := []struct {
		name  string
		inner Set
		ok    bool
	}{
		{"nothing is within anything", Set{}, true},
		{"a set is within itself", outer, true},
		{"a tool that a pattern matches", Set{Tools: []string{"read_file"}}, true},
		{"a narrower pattern", Set{Tools: []string{"read_*_x"}}, true},
		{"a pattern between two patterns is not within either", Set{Tools: []string{"read*"}}, false},
		{"every tool is more than some", Set{Tools: []string{"*"}}, false},
		{"a subdomain", Set{Net: []string{"a.b.example.org:8443"}}, true},
		{"a narrower wildcard", Set{Net: []string{"*.b.example.org:8443"}}, true},
		{"the domain itself is no subdomain", Set{Net: []string{"example.org:8443"}}, false},
		{"a look-alike domain", Set{Net: []string{"evilexample.org:8443"}}, false},
		{"another port", Set{Net: []string{"a.example.org"}}, false},
		{"the default port written out", Set{Net: []string{"api.example.com:443"}}, true},
		{"another secret", Set{Secrets: []string{"B"}}, false},
		{"reading is within writing", Set{FS: []string{WorkspaceRead}}, true},
		{"data is not within the workspace", Set{FS: []string{PluginData}}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.inner.Within(outer)
			if (err == nil) != test.ok {
				t.Fatalf("got %v", err)
			}
			if err != nil && coded.Of(err) != "permissions-wider" {
				t.Fatalf("code %q", coded.Of(err))
			}
		})
	}
	if err := (Set{FS: []string{"x"}}).Within(outer); !errors.Is(err, coded.New("permissions-invalid", "")) {
		t.Fatalf("an invalid set is within nothing, got %v", err)
	}
}

func TestAllowsHost(t *testing.T) {
	s := Set{Net: []string{"api.example.com", "*.example.org:8443", "[::1]:9000", "10.0.0.1:80"}}
	for _, test := range []struct {
		host string
		port int
		want bool
	}{
		{"api.example.com", 443, true}, {"API.Example.com.", 443, true}, {"api.example.com", 80, false},
		{"x.api.example.com", 443, false}, {"x.example.org", 8443, true}, {"example.org", 8443, false},
		{".example.org", 8443, false}, {"evilexample.org", 8443, false}, {"::1", 9000, true}, {"[::1]", 9000, true},
		{"::ffff:10.0.0.1", 80, true}, {"", 443, false}, {"*.example.org", 8443, false},
	} {
		if got := s.AllowsHost(test.host, test.port); got != test.want {
			t.Errorf("AllowsHost(%q, %d) = %v", test.host, test.port, got)
		}
	}
}

func TestSuggest(t *testing.T) {
	for _, test := range []struct {
		why, name, definition string
		want                  Class
	}{
		{"a verb that reads", "list_notes", `{}`, Read},
		{"camel case", "getUserById", `{}`, Read},
		{"a verb that writes", "add_note", `{}`, Write},
		{"a verb that destroys", "notes.delete", `{}`, Destructive},
		{"the risky word decides", "search_and_replace", `{}`, Destructive},
		{"no verb", "frobnicate", `{}`, Unknown},
		{"a reading word that is not first", "note_list", `{}`, Unknown},
		{"a readOnlyHint does not lower", "delete_note", `{"annotations":{"readOnlyHint":true}}`, Destructive},
		{"a readOnlyHint does not make the unknown known", "frobnicate", `{"annotations":{"readOnlyHint":true}}`, Unknown},
		{"a hint that it writes raises", "get_thing", `{"annotations":{"readOnlyHint":false}}`, Write},
		{"a destructive hint raises", "get_thing", `{"annotations":{"destructiveHint":true}}`, Destructive},
		{"a destructiveHint of false does not lower", "delete_x", `{"annotations":{"destructiveHint":false}}`, Destructive},
		{"a parameter that takes code", "query", `{"inputSchema":{"properties":{"sql":{}}}}`, Unknown},
		{"a parameter that forces", "update_x", `{"inputSchema":{"properties":{"force":true}}}`, Destructive},
		{"a definition that cannot be read", "get_x", `{`, Unknown},
		{"a definition with a name twice", "get_x", `{"a":1,"a":2}`, Unknown},
	} {
		if got := Suggest(test.name, json.RawMessage(test.definition)); got != test.want {
			t.Errorf("%s: Suggest(%q) = %s, want %s", test.why, test.name, got, test.want)
		}
	}
}

func TestVerbsStandInOneList(t *testing.T) {
	seen := map[string]bool{}
	for word := range strings.FieldsSeq(readVerbs + " " + writeVerbs + " " + destructiveVerbs) {
		if seen[word] {
			t.Errorf("%q stands twice", word)
		}
		seen[word] = true
	}
}

func TestWords(t *testing.T) {
	words := strings.Join(Set{Net: []string{"a.example.com"}, Secrets: []string{"T"}, FS: []string{PluginData}}.Words(), "\n")
	for _, want := range []string{"no tools", `"a.example.com:443"`, `"T"`, "data folder", "not enforced"} {
		if !strings.Contains(words, want) {
			t.Errorf("no %q in:\n%s", want, words)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"tools":["a*"],"net":["*.b.c:1"],"secrets":["D"],"fs":["plugin-data"]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := Parse(raw)
		if err != nil {
			return
		}
		if err := s.Within(s); err != nil {
			t.Fatalf("not within itself: %v", err)
		}
		text, _ := json.Marshal(s)
		again, err := Parse(text)
		if err != nil || again.Within(s) != nil || s.Within(again) != nil {
			t.Fatalf("%s reads back as %#v, %v", text, again, err)
		}
	})
}
