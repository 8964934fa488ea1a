package deptest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Coded is one code of a refusal as the source makes it.
type Coded struct {
	Code     string
	Packages []string // that make it, sorted
	Sentence string   // the first in the source, "…" where a value stands
	Next     string
}

// codeWord is the form of every code.
var codeWord = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)+$`)

// verb finds what fmt replaces by a value.
var verb = regexp.MustCompile(`%[-+# 0]*[0-9.]*[a-zA-Z]`)

// Codes returns every code that files name in coded.New("…", …), in a literal
// with a Code field, or in a constant of a type called Code or Reason.
func Codes(files []File) []Coded {
	found := map[string]*Coded{}
	add := func(file File, code, sentence, next ast.Expr) {
		word := text(code)
		if !codeWord.MatchString(word) {
			return
		}
		c := found[word]
		if c == nil {
			c = &Coded{Code: word}
			found[word] = c
		}
		if !slices.Contains(c.Packages, file.Package) {
			c.Packages = append(c.Packages, file.Package)
			slices.Sort(c.Packages)
		}
		if c.Sentence == "" {
			c.Sentence, c.Next = text(sentence), text(next)
		}
	}
	for _, file := range files {
		if file.Test {
			continue
		}
		ast.Inspect(file.Syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if called(n, "coded", "New") && len(n.Args) == 2 {
					add(file, n.Args[0], n.Args[1], nil)
				}
			case *ast.CompositeLit:
				if code := field(n, "Code"); code != nil {
					add(file, code, field(n, "Sentence"), field(n, "Next"))
				}
			case *ast.ValueSpec:
				if id, ok := n.Type.(*ast.Ident); ok && (id.Name == "Code" || id.Name == "Reason") {
					for _, v := range n.Values {
						add(file, v, nil, nil)
					}
				}
			}
			return true
		})
	}
	codes := make([]Coded, 0, len(found))
	for _, word := range slices.Sorted(maps.Keys(found)) {
		codes = append(codes, *found[word])
	}
	return codes
}

func called(call *ast.CallExpr, pkg, name string) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}

func field(lit *ast.CompositeLit, name string) ast.Expr {
	for _, element := range lit.Elts {
		if kv, ok := element.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok && key.Name == name {
				return kv.Value
			}
		}
	}
	return nil
}

// text returns what an expression of strings says, "…" for what only the
// running program knows, and "" for one that says nothing else.
func text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			if s, err := strconv.Unquote(e.Value); err == nil {
				return s
			}
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return part(e.X) + part(e.Y)
		}
	case *ast.CallExpr:
		if called(e, "fmt", "Sprintf") && len(e.Args) > 0 {
			return verb.ReplaceAllString(text(e.Args[0]), "…")
		}
	}
	return ""
}

func part(e ast.Expr) string {
	if s := text(e); s != "" {
		return s
	}
	return "…"
}

// CodesPage returns the table of codes for docs/codes.md.
func CodesPage(codes []Coded) string {
	var b strings.Builder
	b.WriteString("| code | says | what to do | from |\n|---|---|---|---|\n")
	cell := strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;")
	for _, c := range codes {
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` |\n", c.Code, cell.Replace(c.Sentence), cell.Replace(c.Next), strings.Join(c.Packages, "`, `"))
	}
	return b.String()
}
