package deptest

import (
	"strings"
	"testing"
)

func tree(t *testing.T) (string, []File) {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := Files(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 50 {
		t.Fatalf("found %d Go files: the walk does not see the tree", len(files))
	}
	return root, files
}

func TestImportsPointOneWay(t *testing.T) {
	_, files := tree(t)
	for _, v := range Violations(files, Layers(), Bans()) {
		t.Error(v)
	}
}

func TestEveryPackageThatTheRowsNameIsThere(t *testing.T) {
	_, files := tree(t)
	later := map[string]bool{ // built by a later part of the project
		"runtime/secrets": true,
	}
	for _, layer := range Layers() {
		for _, pattern := range layer.Packages {
			found := later[pattern]
			for _, file := range files {
				found = found || matches(pattern, file.Package)
			}
			if !found {
				t.Errorf("%s is in the rows and not in the tree", pattern)
			}
		}
	}
}

func TestForbiddenImportIsNamedWithItsReason(t *testing.T) {
	tests := []struct {
		name     string
		file     File
		contains string // "" means allowed
	}{
		{"a leaf imports a helper", File{Package: "runtime/artifact", Imports: []string{"sallyport/internal/coded"}}, ""},
		{"a helper imports a helper", File{Package: "internal/a", Imports: []string{"sallyport/internal/b/c"}}, ""},
		{"host imports mcp", File{Package: "runtime/host", Imports: []string{"sallyport/runtime/mcp", "sallyport/runtime/mcp/gateway"}}, ""},
		{"the gateway imports mcp", File{Package: "runtime/mcp/gateway", Imports: []string{"sallyport/runtime/mcp"}}, ""},
		{"main imports cli", File{Package: ".", Imports: []string{"sallyport/cli"}}, ""},
		{"a test imports upwards", File{Package: "runtime/artifact", Test: true, Imports: []string{"sallyport/runtime/host", "os/exec"}}, ""},
		{"a helper imports the domain", File{Package: "internal/coded", Imports: []string{"sallyport/runtime/audit"}}, "leaves"},
		{"a leaf imports a leaf", File{Package: "runtime/artifact", Imports: []string{"sallyport/runtime/store"}}, "leaves"},
		{"approvals imports process", File{Package: "runtime/approvals", Imports: []string{"sallyport/runtime/process"}}, "knows no protocol"},
		{"process imports mcp", File{Package: "runtime/process", Imports: []string{"sallyport/runtime/mcp"}}, "already allowed"},
		{"mcp imports its gateway", File{Package: "runtime/mcp", Imports: []string{"sallyport/runtime/mcp/gateway"}}, "agents' side"},
		{"anything imports host", File{Package: "runtime/mcp", Imports: []string{"sallyport/runtime/host"}}, "owner"},
		{"host imports api", File{Package: "runtime/host", Imports: []string{"sallyport/api"}}, "shows"},
		{"the window imports the commands", File{Package: "app", Imports: []string{"sallyport/cli"}}, "two users"},
		{"a package that nobody placed", File{Package: "runtime/utils", Imports: []string{"sallyport/internal/coded"}}, "decide where it stands"},
		{"a leaf starts processes", File{Package: "runtime/artifact", Imports: []string{"os/exec"}}, "with a grant"},
		{"the runtime links Wails", File{Package: "runtime/host", Imports: []string{"github.com/wailsapp/wails/v2/pkg/runtime"}}, "no window"},
		{"a product package answers by itself", File{Package: "runtime/host", Imports: []string{"sallyport/runtime/approvals/approvalstest"}}, "tests alone"},
		{"a test answers by itself", File{Package: "runtime/host", Test: true, Imports: []string{"sallyport/runtime/approvals/approvalstest"}}, ""},
		{"a test serves pprof", File{Package: "api", Test: true, Imports: []string{"net/http/pprof"}}, "access rule"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.file.Path = tt.file.Package + "/x.go"
			got := strings.Join(Violations([]File{tt.file}, Layers(), Bans()), "\n")
			if tt.contains == "" && got != "" {
				t.Errorf("refused: %s", got)
			}
			if !strings.Contains(got, tt.contains) {
				t.Errorf("%q does not give the reason %q", got, tt.contains)
			}
		})
	}
}
