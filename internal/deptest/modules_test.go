package deptest

import (
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
	argued := map[string]bool{}
	for _, row := range moduleRow.FindAllStringSubmatch(string(page), -1) {
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
	for path := range argued {
		if !required[path] {
			t.Errorf("docs/dependencies.md argues for %s, which go.mod does not require", path)
		}
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
