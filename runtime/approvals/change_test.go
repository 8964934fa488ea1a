package approvals

import (
	"reflect"
	"strings"
	"testing"
)

// sample has something in every field, so that each can also be taken away.
func sample() Fields {
	return Fields{
		Plugin: "demo", Binding: "main", Source: "~/.agents/plugins/demo", Version: "1.4.0",
		Artifact: "a1:" + strings.Repeat("0", 64), Transport: "stdio",
		Command: Text{"node", "node"},
		Executable: &Program{
			Found: "/home/u/bin/node", Real: "/home/u/lib/node", SHA256: strings.Repeat("1", 64), Shim: "volta",
			Interpreters: []Program{{Found: "/bin/sh", Real: "/bin/dash", Protected: true}},
		},
		Inputs:  []Input{{"args[1]", "/home/u/config.json", strings.Repeat("2", 64)}},
		Args:    []Text{{"${PLUGIN_ROOT}/server.js", "${PLUGIN_ROOT}/server.js"}, {"--quiet", "--quiet"}},
		Cwd:     Text{"./work", "${PLUGIN_ROOT}/work"},
		Env:     []Entry{{Name: "LEVEL", Value: "info", Operator: false}, {Name: "TOKEN", Value: "secret:NOTES", Operator: true}},
		Inherit: []string{"DISPLAY"},
		URL:     Text{"https://api.example.com/mcp", "https://api.example.com/mcp"},
		Headers: []Entry{{Name: "authorization", Value: "Bearer ${TOKEN}", Operator: true}},
		Permitted: Permissions{
			Tools: []string{"read_*"}, Net: []string{"api.example.com"}, Secrets: []string{"NOTES"}, FS: []string{"plugin-data"},
		},
		Options:   Options{"1048576", "skip", "1", "2", "3", "4", []string{"API_KEY"}, "5", "6", true},
		Publisher: `sha256:` + strings.Repeat("3", 64) + ` "Example Ltd"`,
	}
}

// reasonOf is the table of spec/approval.md 2.1: every field of Fields, and the
// code that a change of it alone gives.
var reasonOf = map[string]string{
	"Plugin": "binding-changed", "Binding": "binding-changed", "Source": "binding-changed",
	"Version": "version-changed", "Artifact": "artifact-changed", "Transport": "transport-changed",
	"Command": "command-changed", "Executable": "executable-changed", "Inputs": "input-changed",
	"Args": "args-changed", "Cwd": "cwd-changed", "Env": "env-changed", "Inherit": "env-changed",
	"URL": "endpoint-changed", "Headers": "headers-changed", "Permitted": "permissions-changed",
	"Options": "options-changed", "Publisher": "publisher-changed",
}

// TestAnyFieldAlone changes every string, flag and list anywhere in the fields,
// one at a time, found by reflection: none can be forgotten.
func TestAnyFieldAlone(t *testing.T) {
	old := sample()
	mutations := 0
	for i := range reflect.TypeFor[Fields]().NumField() {
		name := reflect.TypeFor[Fields]().Field(i).Name
		want, known := reasonOf[name]
		if !known {
			t.Fatalf("field %s has no reason code", name)
		}
		eachMutation(func() (reflect.Value, func() Fields) {
			now := sample()
			return reflect.ValueOf(&now).Elem().Field(i), func() Fields { return now }
		}, func(what string, now Fields) {
			mutations++
			if now.Identity() == old.Identity() {
				t.Errorf("%s %s: the identity is the same", name, what)
			}
			changes := Changes(old, now)
			if len(changes) != 1 || changes[0].Code != want {
				t.Errorf("%s %s: got %+v, want one %s", name, what, changes, want)
			}
		})
	}
	if mutations < 50 {
		t.Fatalf("only %d mutations were tried", mutations)
	}
}

// eachMutation hands over fresh fields again and again, each with one leaf of the
// value changed or one list shortened or lengthened.
func eachMutation(fresh func() (reflect.Value, func() Fields), try func(string, Fields)) {
	for n := 0; ; n++ {
		value, fields := fresh()
		left := n
		what := mutateNth(value, &left, "")
		if what == "" {
			return
		}
		try(what, fields())
	}
}

func mutateNth(v reflect.Value, n *int, at string) string {
	hit := func() bool { *n--; return *n < 0 }
	switch v.Kind() {
	case reflect.String:
		if hit() {
			v.SetString(v.String() + "x")
			return "text" + at
		}
	case reflect.Bool:
		if hit() {
			v.SetBool(!v.Bool())
			return "flag" + at
		}
	case reflect.Pointer:
		if hit() {
			v.SetZero()
			return "none" + at
		}
		return mutateNth(v.Elem(), n, at)
	case reflect.Struct:
		for i := range v.NumField() {
			if what := mutateNth(v.Field(i), n, at+"."+v.Type().Field(i).Name); what != "" {
				return what
			}
		}
	case reflect.Slice:
		if v.Len() > 0 && hit() {
			v.Set(v.Slice(0, v.Len()-1))
			return "shorter" + at
		}
		for i := range v.Len() {
			if v.Type().Elem().Kind() == reflect.Struct && i > 0 {
				break // the first stands for all, and a list of changes stays one
			}
			if what := mutateElement(v, i, n, at); what != "" {
				return what
			}
		}
	}
	return ""
}

// mutateElement skips what names an entry of a keyed list: a renamed entry is two
// changes, one gone and one new.
func mutateElement(list reflect.Value, i int, n *int, at string) string {
	element := list.Index(i)
	switch element.Interface().(type) {
	case Entry:
		return mutateNth(element.FieldByName("Value"), n, at+".Value")
	case Input:
		return mutateNth(element.FieldByName("SHA256"), n, at+".SHA256")
	}
	return mutateNth(element, n, at)
}

func TestARenamedVariableIsOneGoneAndOneNew(t *testing.T) {
	now := sample()
	now.Env[0].Name = "OTHER"
	changes := Changes(sample(), now)
	if len(changes) != 2 || changes[0].Field != "env.LEVEL" || changes[0].New != "" || changes[1].Field != "env.OTHER" || changes[1].Old != "" {
		t.Fatalf("got %+v", changes)
	}
}

func TestEntriesInAnotherOrderAreAChange(t *testing.T) {
	now := sample()
	now.Env[0], now.Env[1] = now.Env[1], now.Env[0]
	if changes := Changes(sample(), now); len(changes) != 1 || changes[0].Code != "env-changed" {
		t.Fatalf("got %+v", changes)
	}
}

func TestAbsentAndEmptyListsAreTheSame(t *testing.T) {
	old, now := Fields{}, Fields{Args: []Text{}, Env: []Entry{}, Permitted: Permissions{Tools: []string{}}}
	if old.Identity() != now.Identity() || len(Changes(old, now)) != 0 {
		t.Fatal("an empty list counts as a change")
	}
}

func TestReasonsStandInTheOrderOfTheContract(t *testing.T) {
	var got []string
	for _, change := range Changes(sample(), Fields{}) {
		if len(got) == 0 || got[len(got)-1] != change.Code {
			got = append(got, change.Code)
		}
	}
	want := []string{
		"binding-changed", "publisher-changed", "version-changed", "artifact-changed", "transport-changed", "command-changed",
		"executable-changed", "input-changed", "args-changed", "cwd-changed", "env-changed",
		"endpoint-changed", "headers-changed", "permissions-changed", "options-changed",
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v\nwant %v", got, want)
	}
}

func TestTextThatIsNotUTF8HasNoIdentity(t *testing.T) {
	f := sample()
	f.Version = "\xff"
	if id := f.Identity(); id != "" {
		t.Fatalf("got %s", id)
	}
}
