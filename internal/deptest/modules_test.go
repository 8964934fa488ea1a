package deptest

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// moduleRow finds the first cell of a row of docs/dependencies.md.
var moduleRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// awaited are modules that were argued for before the first line that needs them.
// Each leaves this list with that line.
var awaited = []string{}

func TestEveryDependencyIsUsedAndArgued(t *testing.T) {
	root, files := tree(t)
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	goPart, npmPart, _ := strings.Cut(string(page), "The pages (frontend/)")
	pagesPart, companionPart, _ := strings.Cut(npmPart, "The companion (companion/)")
	argued := map[string]bool{}
	for _, row := range moduleRow.FindAllStringSubmatch(goPart, -1) {
		argued[row[1]] = true
	}
	required := map[string]bool{}
	for _, r := range mod.Require {
		if r.Indirect {
			continue
		}
		required[r.Mod.Path] = true
		if !argued[r.Mod.Path] {
			t.Errorf("go.mod requires %s, which docs/dependencies.md does not argue", r.Mod.Path)
		}
		switch waits := slices.Contains(awaited, r.Mod.Path); {
		case !used(files, r.Mod.Path) && !waits:
			t.Errorf("go.mod requires %s, which nothing imports", r.Mod.Path)
		case used(files, r.Mod.Path) && waits:
			t.Errorf("%s is used now: take it from the list of those awaited", r.Mod.Path)
		}
	}
	checkPackages(t, root, pagesPart, "frontend/package.json")
	checkPackages(t, root, companionPart, "companion/package.json", "examples/electron/package.json")
	for path := range argued {
		if !required[path] {
			t.Errorf("docs/dependencies.md argues for %s, which go.mod does not require", path)
		}
	}
}

// npmName finds the packages that the first cell of a row names; a name that ends in
// an asterisk stands for a scope.
var npmName = regexp.MustCompile("`([^`]+)`")

// checkPackages compares what npm projects need to what is argued for.
func checkPackages(t *testing.T, root, page string, projects ...string) {
	t.Helper()
	var required []string
	for _, name := range projects {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		var project struct {
			Dependencies, DevDependencies map[string]string
		}
		if err := json.Unmarshal(data, &project); err != nil {
			t.Fatal(err)
		}
		required = slices.AppendSeq(required, maps.Keys(project.Dependencies))
		required = slices.AppendSeq(required, maps.Keys(project.DevDependencies))
	}
	where := strings.Join(projects, " and ")
	var argued []string
	for line := range strings.Lines(page) {
		if cell, _, ok := strings.Cut(strings.TrimPrefix(line, "|"), "|"); ok && strings.HasPrefix(line, "| `") {
			for _, name := range npmName.FindAllStringSubmatch(cell, -1) {
				argued = append(argued, name[1])
			}
		}
	}
	covers := func(row, name string) bool {
		scope, all := strings.CutSuffix(row, "*")
		return row == name || all && strings.HasPrefix(name, scope)
	}
	for _, name := range required {
		if !slices.ContainsFunc(argued, func(row string) bool { return covers(row, name) }) {
			t.Errorf("%s requires %s, which docs/dependencies.md does not argue", where, name)
		}
	}
	for _, row := range argued {
		if !slices.ContainsFunc(required, func(name string) bool { return covers(row, name) }) {
			t.Errorf("docs/dependencies.md argues for %s, which %s does not require", row, where)
		}
	}
	if len(required) < 4 {
		t.Fatalf("only %d packages were found", len(required))
	}
}

func used(files []File, module string) bool {
	for _, file := range files {
		for _, imported := range file.Imports {
			if imported == module || strings.HasPrefix(imported, module+"/") {
				return true
			}
		}
	}
	return false
}
