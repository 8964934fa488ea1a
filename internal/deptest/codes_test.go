package deptest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/runtime/health" //nolint:depguard // the page lists its problems; a test may look upwards
)

var update = flag.Bool("update", false, "write docs/codes.md instead of comparing it")

const codesIntro = `# Codes

Every refusal and every health problem has a code that stays: scripts may branch on it,
sentences may change. The contracts in [spec/](../spec/README.md) say when each applies.

This page is made from the source by

    go test ./internal/deptest -run TestPageOfCodesIsCurrent -update

## Health problems

"Failing" makes the health answer 503 and lists the code; "warning" and "info" do not.

`

func codesPage(files []File) string {
	var b strings.Builder
	b.WriteString(codesIntro + "| code | severity | says | what to do |\n|---|---|---|---|\n")
	for _, k := range health.Kinds() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Code, k.Severity, strings.ReplaceAll(k.Text(nil), "?", "…"), k.Next)
	}
	var refusals []Coded
	for _, c := range Codes(files) {
		if len(c.Packages) != 1 || c.Packages[0] != "runtime/health" || c.Sentence != "" {
			refusals = append(refusals, c)
		}
	}
	b.WriteString("\n## Refusals\n\n\"…\" stands for a name, a number or a path relative to a root.\n\n" + CodesPage(refusals))
	return b.String()
}

// Whoever reads a code in a script or a log finds it.
func TestPageOfCodesIsCurrent(t *testing.T) {
	root, files := tree(t)
	name := filepath.Join(root, "docs", "codes.md")
	want := codesPage(files)
	if n := strings.Count(want, "\n| `"); n < 100 {
		t.Fatalf("found %d codes: the search does not see them", n)
	}
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/codes.md is not what the source says:%s\nrun: go test ./internal/deptest -run TestPageOfCodesIsCurrent -update",
			firstDifference(string(got), want))
	}
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("\nline %d\n  page:   %s\n  source: %s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("\nthe page has %d lines, the source gives %d", len(a), len(b))
}

func TestCodeIsFoundHoweverItIsMade(t *testing.T) {
	root := t.TempDir()
	source := `package x
type Code string
const Typed Code = "typed-code"
var a = coded.New("made-by-new", "it says "+name+" so")
var b = &coded.Error{Code: "made-as-literal", Sentence: fmt.Sprintf("%q has %d", x, y), Next: "do it"}
var c = T{Code: "nocode"}
`
	if err := os.WriteFile(filepath.Join(root, "x.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := Files(root)
	if err != nil {
		t.Fatal(err)
	}
	want := "| code | says | what to do | from |\n|---|---|---|---|\n" +
		"| `made-as-literal` | … has … | do it | `.` |\n| `made-by-new` | it says … so |  | `.` |\n| `typed-code` |  |  | `.` |\n"
	if got := CodesPage(Codes(files)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
