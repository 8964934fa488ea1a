package env

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/coded"
)

// literalRow is a row of spec/vectors/literals.
type literalRow struct {
	Why     string   `json:"why"`
	Where   string   `json:"where"`
	Name    string   `json:"name"`
	Parts   []string `json:"parts"`
	Is      string   `json:"is"`
	Certain bool     `json:"certain"`
	Kind    string   `json:"kind"`
	Secret  string   `json:"secret"`
}

func (r literalRow) texts() Texts {
	value := strings.Join(r.Parts, "")
	switch r.Where {
	case "env":
		return Texts{Env: []NameValue{{r.Name, value}}}
	case "header":
		return Texts{Headers: []NameValue{{r.Name, value}}}
	case "args":
		return Texts{Args: r.Parts}
	}
	return Texts{URL: value}
}

func literalRows(t testing.TB) []literalRow {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "spec", "vectors", "literals", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors in spec/vectors/literals (%v)", err)
	}
	var all []literalRow
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var rows []literalRow
		if err := json.Unmarshal(raw, &rows); err != nil || len(rows) == 0 {
			t.Fatalf("%s: %d rows, %v", filepath.Base(file), len(rows), err)
		}
		all = append(all, rows...)
	}
	return all
}

// spec/child-environment.md 5: each rule alone.
func TestLiteralVectors(t *testing.T) {
	seen := map[string]int{}
	for _, row := range literalRows(t) {
		seen[row.Is]++
		found := FindLiterals(row.texts())
		if row.Is == "nothing" {
			if len(found) != 0 {
				t.Errorf("%s (%s): found %+v", row.Why, row.Name, found)
			}
			continue
		}
		where := map[string]Where{"env": InEnv, "header": InHeader, "args": InArgument, "url": InAddress}[row.Where]
		want := Literal{row.Name, where, row.Kind, row.Certain, row.Is == "placeholder", row.Secret}
		if len(found) != 1 || found[0] != want {
			t.Errorf("%s: found %+v, want %+v", row.Why, found, want)
		}
	}
	if seen["credential"] < 60 || seen["nothing"] < 40 || seen["placeholder"] < 20 {
		t.Errorf("too few rows: %v", seen)
	}
}

// What is listed, refused or hidden never holds the value.
func TestAFindingNeverHoldsTheValue(t *testing.T) {
	for _, row := range literalRows(t) {
		if row.Is != "credential" {
			continue
		}
		texts := row.texts()
		secret := longestWord(row)
		listed, _ := json.Marshal(FindLiterals(texts))
		said := string(listed)
		for _, l := range FindLiterals(texts) {
			var refusal *coded.Error
			if err := l.Refusal("a/b"); coded.Of(err) != "literal-secret" {
				t.Errorf("%s: %v", row.Why, err)
			} else {
				refusal = err.(*coded.Error)
			}
			said += refusal.Sentence + refusal.Next
		}
		var x Exempt
		if row.Certain {
			x.NotSecret = []string{row.Name}
		}
		said += strings.Join(x.ShowArguments(texts.Args), " ") + x.ShowAddress(texts.URL)
		for _, v := range append(texts.Env, texts.Headers...) {
			said += x.ShowValue(InEnv, v.Name, v.Value)
		}
		if strings.Contains(said, secret) {
			t.Errorf("%s: %q is in %s", row.Why, secret, said)
		}
	}
}

// longestWord is a part of the value that nothing but the value has.
func longestWord(row literalRow) (longest string) {
	for _, word := range strings.FieldsFunc(strings.Join(row.Parts, " "), func(r rune) bool { return strings.ContainsRune(" =:/?&@,;.\"", r) }) {
		if len(word) > len(longest) && (strings.ContainsAny(word, "0123456789") || row.Where == "env") {
			longest = word
		}
	}
	return longest
}

func TestARefusalNamesTheCommandThatMendsIt(t *testing.T) {
	for _, row := range []struct {
		what      string
		texts     Texts
		code      string
		sentence  string
		nextHolds []string
	}{
		{"a variable", Texts{Env: []NameValue{{"API_KEY", "hunter2"}}}, "literal-secret", `the value of "API_KEY" looks like a credential written out`,
			[]string{"sallyport secrets move notes/main API_KEY", "sallyport plugins not-secret notes/main API_KEY"}},
		{"a header", Texts{Headers: []NameValue{{"X-Api-Key", "hunter2"}}}, "literal-secret", `the header "X-Api-Key" looks like`,
			[]string{"sallyport secrets move notes/main X-Api-Key"}},
		{"an argument, which no keyring can mend", Texts{Args: []string{"--token=hunter2"}}, "literal-secret", "the argument args[0] looks like",
			[]string{"in an environment variable", "sallyport plugins not-secret notes/main 'args[0]'"}},
		{"an address", Texts{URL: "https://x.example/?apiKey=hunter2"}, "literal-secret", "a part of the address looks like",
			[]string{"in a header", "sallyport plugins not-secret notes/main url"}},
		{"a placeholder", Texts{Env: []NameValue{{"API_KEY", "your-api-key-here"}}}, "literal-placeholder",
			`the value of "API_KEY" is a placeholder for a credential and not the credential itself`,
			[]string{"sallyport secrets set API_KEY", "sallyport secrets move notes/main API_KEY"}},
	} {
		err := Exempt{Connector: "notes/main"}.Check(FindLiterals(row.texts))
		refusal, ok := err.(*coded.Error)
		if !ok || refusal.Code != row.code || !strings.HasPrefix(refusal.Sentence, row.sentence) {
			t.Errorf("%s: %v", row.what, err)
			continue
		}
		for _, part := range row.nextHolds {
			if !strings.Contains(refusal.Next, part) {
				t.Errorf("%s: next is %q, want %q in it", row.what, refusal.Next, part)
			}
		}
	}
}

func TestWhatTheOperatorSaidIsNoSecret(t *testing.T) {
	for _, row := range []struct {
		what  string
		texts Texts
		names []string
		code  string
	}{
		{"named", Texts{Env: []NameValue{{"API_KEY", "hunter2"}}}, []string{"API_KEY"}, ""},
		{"another name", Texts{Env: []NameValue{{"API_KEY", "hunter2"}}}, []string{"API_KEYS"}, "literal-secret"},
		{"a variable in another case is another", Texts{Env: []NameValue{{"API_KEY", "hunter2"}}}, []string{"api_key"}, "literal-secret"},
		{"a header in another case is the same", Texts{Headers: []NameValue{{"X-Api-Key", "hunter2"}}}, []string{"x-api-key"}, ""},
		{"an argument", Texts{Args: []string{"a", "--token=x1"}}, []string{"args[1]"}, ""},
		{"another argument", Texts{Args: []string{"a", "--token=x1"}}, []string{"args[0]"}, "literal-secret"},
		{"one of two", Texts{Env: []NameValue{{"A_TOKEN", "x1"}, {"B_TOKEN", "x1"}}}, []string{"A_TOKEN"}, "literal-secret"},
		{"a placeholder before a credential", Texts{Env: []NameValue{{"A_TOKEN", "<token>"}, {"B_TOKEN", "x1"}}}, nil, "literal-secret"},
		{"the address", Texts{URL: "https://x.example/?token=x1"}, []string{AddressName}, ""},
	} {
		if err := (Exempt{NotSecret: row.names}).Check(FindLiterals(row.texts)); coded.Of(err) != row.code {
			t.Errorf("%s: %v", row.what, err)
		}
	}
}

func TestARefusalSaysHowManyMoreThereAre(t *testing.T) {
	err := Exempt{NotSecret: []string{"C_TOKEN"}}.Check(FindLiterals(Texts{Env: []NameValue{
		{"A_TOKEN", "<token>"}, {"B_TOKEN", "x1"}, {"C_TOKEN", "x1"}, {"D_TOKEN", "x1"}}}))
	if err == nil || !strings.HasSuffix(err.Error(), `"B_TOKEN" looks like a credential written out (and 2 more)`) {
		t.Error(err)
	}
}

// What stands beside references is judged too, and a default by the name.
func TestLiteralsBesideReferences(t *testing.T) {
	token := "gh" + "p_0123456789abcdefghijklmnopqrstuvwxyz"
	for _, row := range []struct{ what, name, value, code string }{
		{"a reference alone", "API_KEY", "secret:S", ""},
		{"a reference behind a scheme", "AUTHORIZATION", "Bearer ${secret:S}", ""},
		{"a default under the name of a key", "API_KEY", "${V:-hunter2}", "literal-secret"},
		{"an empty default", "API_KEY", "${V:-}", ""},
		{"a default under an ordinary name", "MODE", "${V:-fast}", ""},
		{"a token as a default", "MODE", "${V:-" + token + "}", "literal-secret"},
		{"a token beside a reference", "MODE", "${V} " + token, "literal-secret"},
		{"a password beside a reference", "DATABASE", "postgres://${V}:hunter2@db/x", "literal-secret"},
		{"a password that is a reference", "DATABASE", "postgres://me:${secret:S}@db/x", ""},
	} {
		_, err := Build(Request{Parent: Parent{System: "linux"}, Inherit: []string{"V"}, Secrets: []string{"S"},
			Declared: []Declared{{Name: row.name, Value: row.value, References: true}}})
		if coded.Of(err) != row.code {
			t.Errorf("%s: %v", row.what, err)
		}
	}
}

func TestWhatIsShownOfALiteral(t *testing.T) {
	token := "gh" + "p_0123456789abcdefghijklmnopqrstuvwxyz"
	args := []string{"--name=x", "--token=hunter2", "-H", "X-Api-Key: hunter2", token}
	for _, row := range []struct {
		names []string
		want  string
	}{
		{nil, "--name=x --token=(hidden) -H X-Api-Key: (hidden) (hidden)"},
		{[]string{"args[1]", "args[4]"}, "--name=x --token=hunter2 -H X-Api-Key: (hidden) (hidden)"},
	} {
		if got := strings.Join(Exempt{NotSecret: row.names}.ShowArguments(args), " "); got != row.want {
			t.Errorf("%v: %s", row.names, got)
		}
	}
	for _, row := range [][2]string{
		{"https://a.example/mcp?team=x", "https://a.example/mcp?team=x"},
		{"https://a.example/mcp?apiKey=hunter2&team=x", "https://a.example/mcp?(hidden)"},
		{"https://a.example/" + token, "(hidden)"},
	} {
		if got := (Exempt{}).ShowAddress(row[0]); got != row[1] {
			t.Errorf("%s: %s", row[0], got)
		}
	}
	for _, row := range [][3]string{
		{"API_KEY", "hunter2", "(hidden)"}, {"API_KEY", "secret:X", "secret:X"}, {"AUTHORIZATION", "Bearer ${secret:X}", "Bearer ${secret:X}"}, {"MODE", "fast", "fast"},
	} {
		if got := (Exempt{}).ShowValue(InEnv, row[0], row[1]); got != row[2] {
			t.Errorf("%s: %s", row[0], got)
		}
	}
}

func TestSplitScheme(t *testing.T) {
	for _, row := range [][3]string{
		{"Bearer abc", "Bearer ", "abc"}, {"basic abc", "basic ", "abc"}, {"abc", "", "abc"}, {"Bearerabc", "", "Bearerabc"},
	} {
		if scheme, credential := SplitScheme(row[0]); scheme != row[1] || credential != row[2] {
			t.Errorf("%q: %q %q", row[0], scheme, credential)
		}
	}
}

func TestACommandThatIsCopiedIsOneCommand(t *testing.T) {
	for _, row := range [][2]string{
		{"notes/main", "notes/main"}, {"args[0]", "'args[0]'"}, {"a b", "'a b'"}, {"x; rm -rf ~", "'x; rm -rf ~'"}, {"it's", `'it'\''s'`}, {"", "''"},
	} {
		if got := Quote(row[0]); got != row[1] {
			t.Errorf("%q: %s", row[0], got)
		}
	}
}

// The time is linear: forty times the text takes some forty times as long, and not
// sixteen hundred times. The bound is between the two, for a machine that others use.
func TestTheDetectorIsLinear(t *testing.T) {
	for _, unit := range []string{
		"sk-", "sk-a", "ghp_a0", "eyJaaaaaaaaa.", "a://b:", `"a":"`, "token=", "-----BEGIN A ", "/a", "a:b,", "${", "M0.", "key ", "Password=x;", "xoxb-xoxb-",
	} {
		took := func(n int) time.Duration {
			text := strings.Repeat(unit, n/len(unit))
			best := time.Hour
			for range 3 {
				begun := processorTime()
				FindLiterals(Texts{Env: []NameValue{{"A_KEY", text}}})
				best = min(best, processorTime()-begun)
			}
			return best
		}
		if small, large := took(8<<10), took(320<<10); large > 300*small+100*time.Millisecond {
			t.Errorf("%q: 8 KiB take %s, 320 KiB take %s", unit, small, large)
		}
	}
}

func FuzzFindLiterals(f *testing.F) {
	for _, row := range literalRows(f) {
		f.Add(row.Name, strings.Join(row.Parts, ""))
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		texts := Texts{Env: []NameValue{{name, value}}, Headers: []NameValue{{name, value}}, Args: []string{"--" + name, value, name + "=" + value}, URL: value}
		for _, l := range FindLiterals(texts) {
			if l.Kind == "" || l.Secret == "" || l.Refusal("a/b") == nil {
				t.Fatalf("%+v", l)
			}
			for _, c := range []byte(l.Secret) {
				if !isUpper(c) && !isDigit(c) && c != '_' {
					t.Fatalf("%q is no name for a secret", l.Secret)
				}
			}
		}
		Exempt{}.ShowArguments(texts.Args)
		Exempt{}.ShowAddress(value)
		SplitScheme(value)
	})
}

func TestNoShapeIsShorterThanTheShortest(t *testing.T) {
	for _, s := range shapes {
		if len(s.prefix)+s.least < shortestShape || longestRun(s.alphabet) != len(s.alphabet) {
			t.Errorf("%s… is shorter than %d, or has characters that end a run", s.prefix, shortestShape)
		}
	}
}

func BenchmarkFindLiterals(b *testing.B) {
	texts := Texts{Args: []string{"-y", "@modelcontextprotocol/server-github@2025.4.8", "--port=3000"}}
	for i := range 10 {
		texts.Env = append(texts.Env, NameValue{fmt.Sprintf("VARIABLE_%d", i), "an ordinary value of some length: " + strings.Repeat("x", i)})
	}
	for b.Loop() {
		FindLiterals(texts)
	}
}
