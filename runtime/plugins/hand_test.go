package plugins

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/coded"
	"sallyport/runtime/permissions"
)

// handFile writes a connectors.json and returns what a scan lists of it.
func scanHand(t testing.TB, text string) (*Listing, *Plugin) {
	t.Helper()
	path := filepath.Join(t.TempDir(), HandFile)
	writeFile(t, path, text)
	c := New(Config{Hand: path})
	listing, err := c.Scan(t.Context())
	if err != nil || len(listing.Plugins) != 1 {
		t.Fatalf("%v %v", listing, err)
	}
	return listing, &listing.Plugins[0]
}

func TestConnectorsWrittenByHand(t *testing.T) {
	_, p := scanHand(t, `{
  // what I use
  "connectors": {
    "notes": {"command": "/usr/bin/node", "args": ["~/notes.js", "${PLUGIN_DATA}"], "cwd": "~/x", "inherit": ["network", "LISTED"],
      "env": {"TOKEN": "secret:NOTES", "A": "env:ALLOWED", "B": "${env:LISTED}${HOME}${D:-x}"}, /* all of it */
      "permissions": {"tools": ["read_*"], "net": ["example.com"]},
      "imported": {"client": "cursor", "file": "~/.cursor/mcp.json", "at": "2026-01-02T03:04:05Z"}},
    "far": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${secret:FAR}"}, "transport": "http"},
    "a/b": {"command": "x",},
  },
}`)
	if got, want := told(p), "connectors connectors\nserver a/b stdio ok\nserver far streamable-http ok\nserver notes stdio ok"; got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	notes := p.Connectors[2]
	if notes.ID.String() != "connectors/notes" || notes.Source != HandFile || notes.Root != "" || notes.Format != ByHand ||
		fmt.Sprint(notes.Launch.Env) != "[{A env:ALLOWED true} {B ${env:LISTED}${HOME}${D:-x} true} {TOKEN secret:NOTES true}]" ||
		fmt.Sprint(notes.Launch.Inherit) != "[LISTED network]" || notes.Launch.Cwd != "~/x" || fmt.Sprint(notes.Launch.Args) != "[~/notes.js ${PLUGIN_DATA}]" {
		t.Errorf("got %+v", notes)
	}
	// What the operator's values refer to counts as asked for.
	if r := notes.Requested; fmt.Sprint(r.Secrets, r.Tools, r.Net, r.FS) != "[ALLOWED D NOTES] [read_*] [example.com:443] [plugin-data]" {
		t.Errorf("asks for %+v", r)
	}
	if far := p.Connectors[1]; fmt.Sprint(far.Requested.Secrets) != "[FAR]" || !far.Launch.Headers[0].FromOperator {
		t.Errorf("got %+v", far)
	}
}

// C27, C29, C35: what is wrong is said with its place, and hides no other.
func TestWhatIsWrongInConnectorsJSON(t *testing.T) {
	for _, row := range []struct{ what, text, want string }{
		{"no JSON", `{"connectors": {"a": }}`, "rejected connectors-syntax\nconnectors-syntax connectors.json:1:22"},
		{"a comment that does not end", "{\n /* x", "rejected connectors-syntax\nconnectors-syntax connectors.json:2:2"},
		{"nothing", ``, "rejected connectors-syntax\nconnectors-syntax connectors.json:1:1"},
		{"a list", `[]`, "rejected connectors-invalid\nconnectors-invalid connectors.json:1:1"},
		{"a list of connectors", `{"connectors": []}`, "rejected connectors-invalid\nconnectors-invalid connectors.json:1:16"},
		{"another application's shape", `{"mcpServers": {}}`, "rejected connectors-invalid\nconnectors-invalid connectors.json:1:2"},
		{"connectors twice", `{"connectors": {}, "connectors": {}}`, "rejected connectors-invalid\nconnectors-invalid connectors.json:1:20"},
		{"no connector", `{"connectors": {}}`, "connectors connectors"},
		{"nothing in it", `{}`, "connectors connectors"},
		{"bad ones beside a good one", `{"connectors": {
"good": {"command": "x"},
"mistyped": {"command": "x", "envv": {}},
"number": {"command": "x", "env": {"PORT": 3000}},
"both": {"command": "x", "url": "https://example.com"},
"none": {}, "text": "x",
"twice": {"command": "x"}, "twice": {"command": "y"},
"inherits": {"command": "x", "inherit": ["*"]},
"permits": {"command": "x", "permissions": {"nett": []}},
" space": {"command": "x"}
}}`, `connectors connectors
server  space  server-name-invalid
server both  server-contradictory
server good stdio ok
server inherits  server-invalid
server mistyped  server-invalid
server none  server-invalid
server number stdio env-invalid
server permits  server-invalid
server text  server-invalid
server twice stdio server-duplicate
server-invalid connectors.json:3:30
env-invalid connectors.json:4:44
server-contradictory connectors.json:5:21
server-invalid connectors.json:6:9
server-invalid connectors.json:6:21
server-duplicate connectors.json:7:28
server-invalid connectors.json:8:41
server-invalid connectors.json:9:44
server-name-invalid connectors.json:10:1`},
	} {
		t.Run(row.what, func(t *testing.T) {
			_, p := scanHand(t, row.text)
			if got := told(p); got != row.want {
				t.Errorf("got\n%s\nwant\n%s", got, row.want)
			}
			for _, problem := range p.Problems {
				if problem.Sentence == "" || strings.HasSuffix(problem.Sentence, ".") {
					t.Errorf("the sentence is %q", problem.Sentence)
				}
			}
		})
	}
}

func TestTheNameOfTheFileIsReserved(t *testing.T) {
	dir := t.TempDir()
	writePlugin(t, dir+"/x", "connectors")
	writeFile(t, dir+"/"+HandFile, `{"connectors":{"main":{"command":"x"}}}`)
	for _, hand := range []string{"", dir + "/none", dir + "/" + HandFile} {
		listing := scan(t, New(Config{Folders: []Folder{{Path: dir, Label: "p", Kind: Many}}, Hand: hand}))
		for _, p := range listing.Plugins {
			if p.Format != ByHand && codeOf(p.Invalid) != "name-taken" {
				t.Errorf("%q: %v", hand, p.Invalid)
			}
		}
		c, ok := listing.Connector(ID{"connectors", "main"})
		if ok != strings.HasSuffix(hand, HandFile) || ok && c.Source != HandFile {
			t.Errorf("%q: %v %v", hand, ok, c)
		}
	}
}

// The operator's configuration adds to these connectors as to any other.
func TestOverlayOfAConnectorWrittenByHand(t *testing.T) {
	path := filepath.Join(t.TempDir(), HandFile)
	writeFile(t, path, `{"connectors":{"a":{"command":"x","env":{"A":"1"}}}}`)
	listing := scan(t, New(Config{Hand: path, Overlay: map[string]Overlay{"connectors/a": {Env: map[string]string{"A": "2"}}}}))
	if c, _ := listing.Connector(ID{"connectors", "a"}); len(listing.Problems) != 0 || c.Invalid != nil || c.Launch.Env[0].Value != "2" {
		t.Errorf("got %+v %v", c, listing.Problems)
	}
}

// C36: a name is never a path, and two names are never one folder.
func TestDataNames(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"notes", "Notes", "NOTES", "git", "con", "CON", "nul", "..", ".", "a/b", "a\\b", "a_b", "a b", "café", "cafe\u0301", "数据库", "寸止",
		strings.Repeat("x", 40), strings.Repeat("x", 41), strings.Repeat("x", 200), "notes--0123", "~", "-", "trailing."} {
		data := Connector{ID: ID{ByHand, name}, Format: ByHand}.DataName()
		folder, ok := strings.CutPrefix(data, "connectors/")
		if !ok || folder == "" || folder == "." || folder == ".." || len(folder) > 60 || strings.ToLower(folder) != folder || strings.ContainsAny(folder, "/\\. ") {
			t.Errorf("%q is kept in %q", name, data)
		}
		if other, taken := seen[folder]; taken {
			t.Errorf("%q and %q are kept in %q", name, other, folder)
		}
		seen[folder] = name
	}
	if got := (Connector{ID: ID{"demo", "main"}, Format: AgentPlugins}).DataName(); got != "demo" {
		t.Errorf("a plugin's is %q", got)
	}
}

const commented = `// mine
{
  "connectors": {
    // first
    "a": {"command": "x"}, // of a
    "b": {
      "command": "y" // why
    } // of b
    // the end
  }
}
`

// C27: when writing back, comments, order and white space stay.
func TestEditingKeepsEverythingElse(t *testing.T) {
	entry := HandEntry{Command: "/bin/z", Args: []string{"<&>"}}
	const z = "\"z\": {\n      \"command\": \"/bin/z\",\n      \"args\": [\n        \"<&>\"\n      ]\n    }"
	for _, row := range []struct {
		what, text string
		edit       func(*HandEdit) error
		want       string
	}{
		{"the first of a new file", "", func(e *HandEdit) error { return e.Add("z", entry) }, "{\n  \"connectors\": {\n    " + z + "\n  }\n}\n"},
		{"the first of an empty object", "{}", func(e *HandEdit) error { return e.Add("z", entry) }, "{\n  \"connectors\": {\n    " + z + "\n  }\n}"},
		{"beside a field", "{\"$schema\": \"x\"}", func(e *HandEdit) error { return e.Add("z", entry) }, "{\"$schema\": \"x\",\n  \"connectors\": {\n    " + z + "\n  }\n}"},
		{"one more", commented, func(e *HandEdit) error { return e.Add("z", entry) },
			strings.Replace(commented, "} // of b\n", "}, // of b\n    "+z+"\n", 1)},
		{"one more where commas trail", strings.Replace(commented, "} // of b", "}, // of b", 1), func(e *HandEdit) error { return e.Add("z", entry) },
			strings.Replace(commented, "} // of b\n", "}, // of b\n    "+z+",\n", 1)},
		{"one more on one line", `{"connectors":{"a":{"command":"x"}}}`, func(e *HandEdit) error { return e.Add("z", entry) },
			"{\"connectors\":{\"a\":{\"command\":\"x\"},\n    " + z + "\n  }}"},
		{"one more among tabs", "{\n\t\"connectors\": {\n\t\t\"a\": {\"command\": \"x\"}\n\t}\n}\n", func(e *HandEdit) error { return e.Add("z", HandEntry{Command: "x"}) },
			"{\n\t\"connectors\": {\n\t\t\"a\": {\"command\": \"x\"},\n\t\t\"z\": {\n\t\t\t\"command\": \"x\"\n\t\t}\n\t}\n}\n"},
		{"without the first", commented, func(e *HandEdit) error { return e.Remove("a") },
			strings.Replace(commented, "    \"a\": {\"command\": \"x\"}, // of a\n", "", 1)},
		{"without the last", commented, func(e *HandEdit) error { return e.Remove("b") },
			"// mine\n{\n  \"connectors\": {\n    // first\n    \"a\": {\"command\": \"x\"} // of a\n    // the end\n  }\n}\n"},
		{"without the only one", `{"connectors":{"a":{"command":"x"}}}`, func(e *HandEdit) error { return e.Remove("a") }, `{"connectors":{}}`},
		{"without one of one line", `{"connectors":{"a":{"command":"x"},"b":{"command":"x"}}}`, func(e *HandEdit) error { return e.Remove("a") }, `{"connectors":{"b":{"command":"x"}}}`},
		{"under another name", commented, func(e *HandEdit) error { return e.Rename("b", `c "d"`) }, strings.Replace(commented, `"b"`, `"c \"d\""`, 1)},
		{"all at once", commented, func(e *HandEdit) error {
			for _, err := range []error{e.Add("z", entry), e.Remove("z"), e.Rename("a", "q"), e.Rename("q", "a")} {
				if err != nil {
					return err
				}
			}
			return nil
		}, commented},
	} {
		e, err := EditHand([]byte(row.text))
		if err == nil {
			err = row.edit(e)
		}
		if err != nil || string(e.Text()) != row.want {
			t.Errorf("%s: %v, got\n%s\nwant\n%s", row.what, err, e.Text(), row.want)
		}
	}
}

func TestEditsThatAreRefusedChangeNothing(t *testing.T) {
	edit := func(text string, change func(*HandEdit) error) (string, error) {
		e, err := EditHand([]byte(text))
		if err != nil {
			return text, err
		}
		err = change(e)
		return string(e.Text()), err
	}
	for _, row := range []struct {
		what, text string
		change     func(*HandEdit) error
		code       string
	}{
		{"a file that is no JSON", `{"connectors":`, func(*HandEdit) error { return nil }, "connectors-syntax"},
		{"a file of another shape", `{"mcpServers":{}}`, func(*HandEdit) error { return nil }, "connectors-invalid"},
		{"a name that stands twice", `{"connectors":{"a":{"command":"x"},"a":{"command":"y"}}}`, func(e *HandEdit) error { return e.Remove("a") }, "server-duplicate"},
		{"a name that is taken", commented, func(e *HandEdit) error { return e.Add("a", HandEntry{Command: "x"}) }, "connector-exists"},
		{"a name that is empty", commented, func(e *HandEdit) error { return e.Add("", HandEntry{Command: "x"}) }, "server-name-invalid"},
		{"a name that is no text", commented, func(e *HandEdit) error { return e.Add("\xff", HandEntry{Command: "x"}) }, "server-name-invalid"},
		{"an entry with nothing", commented, func(e *HandEdit) error { return e.Add("z", HandEntry{}) }, "server-invalid"},
		{"an entry with both", commented, func(e *HandEdit) error { return e.Add("z", HandEntry{Command: "x", URL: "https://example.com"}) }, "server-contradictory"},
		{"an address that is none", commented, func(e *HandEdit) error { return e.Add("z", HandEntry{URL: "http://example.com"}) }, "url-invalid"},
		{"one that is not there", commented, func(e *HandEdit) error { return e.Remove("z") }, "connector-unknown"},
		{"a rename of one that is not there", commented, func(e *HandEdit) error { return e.Rename("z", "y") }, "connector-unknown"},
		{"a rename to one that is", commented, func(e *HandEdit) error { return e.Rename("a", "b") }, "connector-exists"},
		{"a rename to nothing", commented, func(e *HandEdit) error { return e.Rename("a", "") }, "server-name-invalid"},
	} {
		got, err := edit(row.text, row.change)
		if coded.Of(err) != row.code || got != row.text {
			t.Errorf("%s: %v, want %s; the text is\n%s", row.what, err, row.code, got)
		}
	}
}

// An entry that is written reads back as itself.
func TestAnEntryReadsBack(t *testing.T) {
	entry := HandEntry{
		Command: "/bin/x", Args: []string{"a", ""}, Cwd: "~/w", Env: map[string]string{"A": "secret:B"}, Inherit: []string{"network"},
		Permissions: &permissions.Set{Net: []string{"example.com"}}, Imported: &Imported{"cursor", "~/.cursor/mcp.json", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
	}
	e, err := EditHand(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Add("x", entry); err != nil {
		t.Fatal(err)
	}
	var back struct{ Connectors map[string]HandEntry }
	if err := json.Unmarshal(e.Text(), &back); err != nil || fmt.Sprint(back.Connectors["x"].Imported, back.Connectors["x"].Env) != fmt.Sprint(entry.Imported, entry.Env) {
		t.Errorf("%v %+v", err, back)
	}
	_, p := scanHand(t, string(e.Text()))
	if c := p.Connectors[0]; c.Invalid != nil || fmt.Sprint(c.Requested.Secrets, c.Requested.Net, c.Requested.Tools) != "[B] [example.com:443] [*]" {
		t.Errorf("got %+v", c)
	}
}

func TestAConnectorsFileThatCannotBeReadIsSaid(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, HandFile), 0o700); err != nil {
		t.Fatal(err)
	}
	p := loadHand(filepath.Join(dir, HandFile))
	if p == nil || codeOf(p.Invalid) != "connectors-unreadable" {
		t.Errorf("got %+v", p)
	}
	if loadHand("") != nil || loadHand(filepath.Join(dir, "none")) != nil {
		t.Error("no file is no connectors")
	}
}

// Whatever the text: an edit either changes exactly what it is for or nothing.
func FuzzEditHand(f *testing.F) {
	f.Add([]byte(commented), "z")
	f.Add([]byte("{/*a*/\"connectors\"/*b*/:/*c*/{/*d*/\"a\"/*e*/:/*f*/{\"command\":\"x\"}/*g*/,/*h*/}/*i*/,/*j*/}"), "a")
	f.Add([]byte("{\"connectors\":{}//x\n}"), "b\"")
	f.Fuzz(func(t *testing.T, text []byte, name string) {
		e, err := EditHand(text)
		if err != nil {
			if coded.Of(err) == "" {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		before, was := e.Names(), string(e.Text())
		if err := e.Add(name, HandEntry{Command: "x"}); err != nil {
			if string(e.Text()) != was {
				t.Fatal("what is refused changes something")
			}
			return
		}
		if got := e.Names(); !slices.Equal(got, append(slices.Clone(before), name)) {
			t.Fatalf("%q with %q added has %q", was, name, got)
		}
		if len(before) > 0 {
			if err := e.Rename(before[0], name+"2"); err != nil && coded.Of(err) != "connector-exists" && coded.Of(err) != "server-name-invalid" {
				t.Fatal(err)
			}
		}
		if err := e.Remove(name); err != nil {
			t.Fatal(err)
		}
		if got := e.Names(); len(got) != len(before) {
			t.Fatalf("%q has %q at the end", was, got)
		}
		if strings.Count(was, "//") != strings.Count(string(e.Text()), "//") && strings.Contains(was, "\"connectors\"") && !strings.Contains(name, "//") && len(before) == 0 {
			t.Fatalf("%q lost a comment: %q", was, e.Text())
		}
	})
}

func FuzzConnectorsJSON(f *testing.F) {
	f.Add([]byte(commented))
	f.Add([]byte(`{"connectors":{"a":{"url":"https://example.com","headers":{"A":"${B}"}},"b":{"command":"x","permissions":{}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p := &Plugin{Name: ByHand, Format: ByHand}
		p.readHand(text)
		if p.Invalid != nil && len(p.Problems) == 0 {
			t.Fatal("rejected without a problem")
		}
		for _, c := range p.Connectors {
			if c.Invalid == nil && (c.Transport == Stdio) != (c.Launch.Command != "") {
				t.Fatalf("%+v is no connector", c)
			}
		}
	})
}
