package deptest

import (
	"crypto/sha256"
	"encoding/hex"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestEveryPackageHasOnePackageComment(t *testing.T) {
	_, files := tree(t)
	comments := map[string][]string{}
	for _, file := range files {
		if file.Test {
			continue
		}
		comments[file.Package] = append(comments[file.Package], "")
		all := comments[file.Package]
		if file.Doc != "" {
			all[len(all)-1] = file.Path
		}
		if file.Doc != "" && file.Name != "main" && !strings.HasPrefix(file.Doc, "Package "+file.Name+" ") {
			t.Errorf("%s: the package comment does not begin with %q", file.Path, "Package "+file.Name)
		}
	}
	for pkg, all := range comments {
		all = slices.DeleteFunc(all, func(s string) bool { return s == "" })
		if len(all) != 1 {
			t.Errorf("%s has %d package comments, want one: %v", pkg, len(all), all)
		}
	}
}

func TestRuntimeItselfIsNoPackage(t *testing.T) {
	_, files := tree(t)
	for _, file := range files {
		if file.Package == "runtime" {
			t.Errorf("%s: runtime/ is a folder of packages; a package called runtime would hide the standard library's", file.Path)
		}
	}
}

// clause finds the numbers that a spec page gives to its rules: "4. ", "4.1 ",
// "## 4. ", "5.2a ", at the start of a line.
var clause = regexp.MustCompile(`(?m)^(?:#+ )?(\d+(?:\.\d+)?[a-z]?)\.? `)

// cited finds "spec/approval.md 4.3" and what follows it in a list ("1 to 3",
// "4, 5 and 7").
var cited = regexp.MustCompile(`spec/([a-z-]+)\.md((?:(?:,| and| to|;)? \d+(?:\.\d+)?[a-z]?\b)*)`)

var number = regexp.MustCompile(`\d+(?:\.\d+)?[a-z]?`)

func clauses(t *testing.T, root string) map[string]map[string]bool {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(root, "spec", "*.md"))
	if err != nil || len(pages) < 8 {
		t.Fatalf("found %d spec pages: %v", len(pages), err)
	}
	all := map[string]map[string]bool{}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		numbers := map[string]bool{}
		for _, match := range clause.FindAllStringSubmatch(string(text), -1) {
			numbers[match[1]] = true
		}
		all[strings.TrimSuffix(filepath.Base(page), ".md")] = numbers
	}
	return all
}

func TestCitedClausesOfTheContractsExist(t *testing.T) {
	root, files := tree(t)
	known := clauses(t, root)
	count := 0
	for _, file := range files {
		for _, group := range file.Syntax.Comments {
			for _, match := range cited.FindAllStringSubmatch(group.Text(), -1) {
				count++
				numbers, ok := known[match[1]]
				if !ok {
					t.Errorf("%s cites spec/%s.md, which does not exist", file.Path, match[1])
					continue
				}
				for _, n := range number.FindAllString(match[2], -1) {
					if !numbers[n] && match[1] != "agent-plugins" {
						t.Errorf("%s cites spec/%s.md %s, which has no such clause", file.Path, match[1], n)
					}
				}
			}
		}
	}
	if count < 20 {
		t.Errorf("found %d citations: the search does not see them", count)
	}
}

// link finds [text](target) in Markdown, without images' titles.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// quoted finds `path/with/slash.ext` in Markdown that is one of our own places.
var quoted = regexp.MustCompile("`((?:docs|spec|scripts|runtime|internal|api|cli|e2e)/[A-Za-z0-9_./-]+)`")

func TestFilesNamedInTheDocumentationExist(t *testing.T) {
	root, _ := tree(t)
	for _, page := range pages(t, root) {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			target, _, _ := strings.Cut(match[1], "#")
			if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			exists(t, root, page, path.Join(path.Dir(page), target))
		}
		for _, match := range quoted.FindAllStringSubmatch(string(text), -1) {
			exists(t, root, page, match[1])
		}
	}
}

func pages(t *testing.T, root string) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.md", "spec/*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range found {
			relative, err := filepath.Rel(root, name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, filepath.ToSlash(relative))
		}
	}
	if len(all) < 15 {
		t.Fatalf("found %d pages: the search does not see them", len(all))
	}
	return all
}

func exists(t *testing.T, root, page, target string) {
	t.Helper()
	target = strings.TrimSuffix(target, "...")
	if strings.HasPrefix(target, "..") || strings.ContainsAny(target, "*") || target == "spec/1.0.0.md" {
		return // outside, a pattern, or the page of the Agent Plugins repository
	}
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(target))); err != nil {
		t.Errorf("%s names %s, which does not exist", page, target)
	}
}

// testName finds names of tests in the conformance page.
var testName = regexp.MustCompile("`([A-Za-z0-9_./-]+): ((?:Test|Fuzz|Benchmark|Example)[A-Za-z0-9_]+)`")

func TestTestsNamedInTheConformancePageExist(t *testing.T) {
	root, files := tree(t)
	there := map[string]bool{}
	for _, file := range files {
		for _, decl := range file.Syntax.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && file.Test {
				there[file.Package+": "+f.Name.Name] = true
			}
		}
	}
	for _, page := range []string{"docs/conformance.md", "docs/formats.md"} {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
		if err != nil {
			t.Fatal(err)
		}
		named := testName.FindAllStringSubmatch(string(text), -1)
		if len(named) < 40 {
			t.Errorf("found %d tests on %s: the search does not see them", len(named), page)
		}
		for _, match := range named {
			if !there[match[1]+": "+match[2]] {
				t.Errorf("%s names %s in %s, which does not exist", page, match[2], match[1])
			}
		}
	}
}

// The digest page shows a whole encoding; it must be a true one.
func TestDigestExampleOfTheContractIsTrue(t *testing.T) {
	root, _ := tree(t)
	text, err := os.ReadFile(filepath.Join(root, "spec", "artifact-digest.md"))
	if err != nil {
		t.Fatal(err)
	}
	var encoding []string
	var digest string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		shown, indented := strings.CutPrefix(line, "    ")
		switch {
		case strings.HasPrefix(line, "## 1."):
			sum := sha256.Sum256([]byte(strings.Join(encoding, "\n") + "\n"))
			if want := "a1:" + hex.EncodeToString(sum[:]); digest != want {
				t.Errorf("the page says %q, its encoding gives %q", digest, want)
			}
			return
		case !indented || strings.HasPrefix(shown, "$"):
		case strings.HasPrefix(shown, "a1:"):
			digest = shown
		default:
			encoding = append(encoding, shown)
		}
	}
	t.Error("the example was not found")
}

// TestEveryPackageIsInTheArchitecture: a newcomer finds each folder of Go in the tables of
// ARCHITECTURE.md; helpers by their own name.
func TestEveryPackageIsInTheArchitecture(t *testing.T) {
	root, files := tree(t)
	page, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		top := strings.Split(file.Package, "/")
		var name string
		switch top[0] {
		case ".", "testdata":
			continue
		case "internal":
			name = top[1]
		case "runtime", "api":
			name = strings.Join(top[:min(2, len(top))], "/")
		default:
			name = top[0]
		}
		if seen[name] {
			continue
		}
		seen[name] = true
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("ARCHITECTURE.md does not say what %s is", name)
		}
	}
	if len(seen) < 40 {
		t.Errorf("only %d packages were found", len(seen))
	}
}
