package gateway

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"sallyport/runtime/plugins"
)

var update = flag.Bool("update", false, "write the exposed names of the vectors anew")

type nameVector struct {
	Plugin  string `json:"plugin"`
	Server  string `json:"server"`
	Tool    string `json:"tool"`
	Exposed string `json:"exposed"`
	Why     string `json:"why,omitempty"`
}

// The names in the vectors are a promise: agents keep them in their settings.
func TestExposedNamesAreTheVectors(t *testing.T) {
	path := filepath.Join("testdata", "names.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []nameVector
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) == 0 {
		t.Fatal("no vectors")
	}
	seen := map[string]string{}
	for i, v := range vectors {
		got := ExposedName(plugins.ID{Plugin: v.Plugin, Server: v.Server}, v.Tool)
		if got != v.Exposed && !*update {
			t.Errorf("%s %s %s: got %s, want %s", v.Plugin, v.Server, v.Tool, got, v.Exposed)
		}
		vectors[i].Exposed = got
		if !validName.MatchString(got) {
			t.Errorf("%q is not a name that every agent takes", got)
		}
		if other, clash := seen[got]; clash {
			t.Errorf("%q stands for %q and %q", got, other, v.Why)
		}
		seen[got] = v.Why
	}
	if *update {
		out, _ := json.MarshalIndent(vectors, "", "  ")
		if err := os.WriteFile(path, append(out, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var validName = regexp.MustCompile(`\A[A-Za-z0-9_-]{1,64}\z`)

func TestNoTwoPlainNamesAreEqual(t *testing.T) {
	letters := []rune("ab_-A.é")
	random := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		out := make([]rune, 1+random.IntN(6))
		for i := range out {
			out[i] = letters[random.IntN(len(letters))]
		}
		return string(out)
	}
	seen := map[string][3]string{}
	for range 200_000 {
		parts := [3]string{word(), word(), word()}
		name := ExposedName(plugins.ID{Plugin: parts[0], Server: parts[1]}, parts[2])
		if !validName.MatchString(name) {
			t.Fatalf("%q: %q", parts, name)
		}
		if other, ok := seen[name]; ok && other != parts {
			t.Fatalf("%q and %q are both %q", parts, other, name)
		}
		seen[name] = parts
	}
}

func named(id plugins.ID, tools ...string) Exposed { return offer(id, tools...) }

func TestNamesDoNotDependOnTheOrderOfConnectors(t *testing.T) {
	a := named(plugins.ID{Plugin: "a", Server: "s"}, "search", "b__c")
	b := named(plugins.ID{Plugin: "a__b", Server: "s"}, "search", "c")
	c := named(plugins.ID{Plugin: "数据库", Server: "s"}, "search")
	one := newView("x", Catalog{Connectors: []Exposed{a, b, c}})
	two := newView("x", Catalog{Connectors: []Exposed{c, b, a}})
	names := func(v *view) (out []string) {
		for _, tool := range v.tools {
			out = append(out, tool.exposed+"="+tool.connector.ID.String()+"/"+tool.original)
		}
		return out
	}
	if !reflect.DeepEqual(names(one), names(two)) {
		t.Errorf("%v\n%v", names(one), names(two))
	}
	if len(one.tools) != 5 || len(one.problems) != 0 {
		t.Errorf("%d tools, %v", len(one.tools), one.problems)
	}
}

func TestAClashRefusesBothAndNamesBoth(t *testing.T) {
	twice := named(demo, "search", "search", "other")
	v := newView("x", Catalog{Connectors: []Exposed{twice}})
	if len(v.tools) != 1 || v.tools[0].original != "other" {
		t.Errorf("shown: %v", v.tools)
	}
	if len(v.problems) != 2 || v.problems[0].Code != "name-clash" {
		t.Errorf("problems: %v", v.problems)
	}
	// A tool that is named like another's hashed form takes both down, not one.
	hashed := ExposedName(demo, "a b")
	original := strings.TrimPrefix(hashed, "demo__main__")
	v = newView("x", Catalog{Connectors: []Exposed{named(demo, "a b", original)}})
	if len(v.tools) != 0 || len(v.problems) != 2 || !strings.Contains(v.problems[0].Sentence, `"a b" of demo/main`) ||
		!strings.Contains(v.problems[0].Sentence, `"`+original+`" of demo/main`) {
		t.Errorf("%v %v", v.tools, v.problems)
	}
}

func TestOneOddDefinitionHidesNoOther(t *testing.T) {
	e := named(demo, "good")
	for _, odd := range []string{`null`, `{}`, `{"name":1}`, `{"name":"a","name":"b"}`, `[]`, `"x"`} {
		e.Tools = append(e.Tools, Tool{Name: "odd", Definition: json.RawMessage(odd)})
	}
	sub := `{"name":"sub","inputSchema":{"type":"object","properties":{"p":true,"q":false}}}`
	e.Tools = append(e.Tools, Tool{Name: "sub", Definition: json.RawMessage(sub)})
	v := newView("x", Catalog{Connectors: []Exposed{e}})
	if len(v.tools) != 2 || len(v.problems) != 6 {
		t.Errorf("%d tools, %v", len(v.tools), v.problems)
	}
	if got := string(v.toolBy["demo__main__sub"].definition); got != strings.Replace(sub, `"sub"`, `"demo__main__sub"`, 1) {
		t.Errorf("a legal schema was changed: %s", got)
	}
}

func TestOriginalNamesNeedOneConnector(t *testing.T) {
	one := Catalog{Connectors: []Exposed{named(demo, "名前", "calendar.read")}, OriginalNames: true}
	if v := newView("x", one); v.toolBy["名前"] == nil || v.toolBy["calendar.read"] == nil {
		t.Error("the original names are not shown")
	}
	one.Connectors = append(one.Connectors, named(plugins.ID{Plugin: "b", Server: "s"}, "x"))
	if v := newView("x", one); v.toolBy["calendar.read"] != nil || v.toolBy["b__s__x"] == nil {
		t.Error("with two connectors the original names must not be shown")
	}
}
