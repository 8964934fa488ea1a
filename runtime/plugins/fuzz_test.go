package plugins

import (
	"encoding/json"
	"io/fs"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// addVectors seeds a fuzz target with every file of that name in the vectors.
func addVectors(f *testing.F, name string) {
	f.Helper()
	for _, v := range readVectors(f) {
		for _, file := range v.files {
			if strings.HasSuffix(file.Name, name) {
				f.Add(file.Data)
			}
		}
	}
}

// What
// parseDocument takes is what the grammar takes, but for the byte order mark.
func FuzzDocument(f *testing.F) {
	addVectors(f, ".json")
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := parseDocument(data)
		text := jsontext.Value(strings.TrimPrefix(string(data), "\ufeff"))
		if valid := text.IsValid(jsontext.AllowDuplicateNames(true)); valid != (err == nil) {
			t.Fatalf("valid %v, parsed %v", valid, err)
		}
		if err != nil {
			if at := err.(*syntaxError).place; at.line < 1 || at.column < 1 {
				t.Fatalf("no place in %v", err)
			}
			return
		}
		if string(doc.raw(doc.root)) != strings.Trim(string(text), " \t\r\n") {
			t.Fatalf("the root is %q of %q", doc.raw(doc.root), text)
		}
	})
}

// What loads is written out and loads again to the same.
func FuzzManifest(f *testing.F) {
	addVectors(f, manifestFile)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, problems, ok := parseManifest(data)
		if !ok {
			if len(problems) == 0 {
				t.Fatal("rejected without a problem")
			}
			return
		}
		fields := map[string]any{
			"$schema": pluginSchema, "name": m.name, "version": m.version, "description": m.description, "homepage": m.homepage,
			"repository": m.repository, "license": m.license,
			"author": map[string]any{"name": m.author.Name, "email": m.author.Email, "url": m.author.URL},
		}
		if m.keywords != nil {
			fields["keywords"] = m.keywords
		}
		text, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		again, problems, ok := parseManifest(text)
		if !ok || len(problems) > 0 {
			t.Fatalf("%s gives %v", text, problems)
		}
		_, _ = readWishes(&m)
		m.doc, m.ours, again.doc, again.ours = nil, nil, nil, nil
		if !reflect.DeepEqual(m, again) {
			t.Fatalf("%+v reads back as %+v", m, again)
		}
	})
}

func FuzzServers(f *testing.F) {
	addVectors(f, serversFile)
	nothingThere := func(string) error { return fs.ErrNotExist }
	f.Fuzz(func(t *testing.T, data []byte) {
		servers, problems, ok := parseServers(data, nothingThere)
		if !ok && len(problems) == 0 {
			t.Fatal("disabled without a problem")
		}
		entries := map[string]any{}
		var valid []server
		for _, s := range servers {
			if s.problem == nil {
				entries[s.name] = written(s)
				valid = append(valid, s)
			}
		}
		text, err := json.Marshal(map[string]any{"$schema": mcpSchema, "mcpServers": entries})
		if err != nil {
			t.Fatal(err)
		}
		again, problems, ok := parseServers(text, nothingThere)
		if !ok || len(problems) > 0 || len(again) != len(valid) {
			t.Fatalf("%s gives %v", text, problems)
		}
		for i := range valid {
			valid[i].at, again[i].at = 0, 0
			if !reflect.DeepEqual(valid[i], again[i]) {
				t.Fatalf("%+v reads back as %+v", valid[i], again[i])
			}
		}
	})
}

// written is the entry that a server was read from, but for absent fields.
func written(s server) map[string]any {
	object := func(values []Value) map[string]string {
		all := map[string]string{}
		for _, v := range values {
			all[v.Name] = v.Value
		}
		return all
	}
	entry := map[string]any{"type": s.transport}
	set := func(name string, value any, present bool) {
		if present {
			entry[name] = value
		}
	}
	set("command", s.launch.Command, s.transport == Stdio)
	set("args", s.launch.Args, s.launch.Args != nil)
	set("env", object(s.launch.Env), s.launch.Env != nil)
	set("cwd", s.launch.Cwd, s.launch.Cwd != "")
	set("url", s.launch.URL, s.transport != Stdio)
	set("headers", object(s.launch.Headers), s.launch.Headers != nil)
	return entry
}

func FuzzSkill(f *testing.F) {
	addVectors(f, skillFile)
	f.Add([]byte("---\na: &a [x, x]\nb: &b [*a, *a]\nname: s\ndescription: *b\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, sentence := parseSkill(data, "good"); sentence == "" && (s.Name != "good" || s.Description == "") {
			t.Fatalf("got %+v", s)
		}
	})
}
