package deptest

import (
	"fmt"
	"slices"
	"strings"
)

// Layer is a row of packages that may import the rows before it and not each
// other. A name ending in "/..." stands for a folder and what is below it.
type Layer struct {
	Packages []string
	Why      string // why these may not be imported from before, or by each other
}

// Layers are the rows from the bottom up (ARCHITECTURE.md).
func Layers() []Layer {
	return []Layer{
		{[]string{"internal/..."}, "internal/* are helpers without domain words"},
		{[]string{"frontend"}, "the pages are files, and know nothing of who serves them"},
		{
			[]string{"runtime/artifact", "runtime/permissions", "runtime/health", "runtime/audit", "runtime/store", "runtime/launchers", "runtime/signature", "runtime/clients", "runtime/updates"},
			"these are leaves: others push into them and they ask nobody, so each can be read and tested alone",
		},
		{[]string{"runtime/plugins"}, "what is on disk is read before anybody decides about it"},
		{[]string{"runtime/plugins/..."}, "the bundled plugins are files like any other's"},
		{[]string{"runtime/install"}, "what comes from outside is staged and digested before anybody decides about it"},
		{[]string{"runtime/secrets"}, "a secret's value goes to env and nowhere else"},
		{[]string{"runtime/env"}, "the environment is computed from what it is given; it decides nothing"},
		{[]string{"runtime/approvals"}, "approvals decides and mints grants; whoever uses a grant stands above it"},
		{[]string{"runtime/approvals/..."}, "helpers for tests of approvals and of what takes a grant"},
		{[]string{"runtime/process"}, "process starts what a grant names and knows no protocol"},
		{[]string{"runtime/console"}, "a console is one more process under a grant; mcp has no business with it"},
		{[]string{"runtime/mcp"}, "mcp speaks to a process that is already allowed"},
		{[]string{"runtime/oauth"}, "a sign-in is for a server that mcp dials, under a grant"},
		{[]string{"runtime/mcp/..."}, "the gateway is the agents' side of mcp"},
		{[]string{"runtime/host"}, "host builds and owns all of the above; nothing below may reach its owner"},
		{[]string{"api"}, "api shows what host has; no domain package knows that it is shown"},
		{[]string{"api/..."}, "a client or server of the API stands on it"},
		{[]string{"cli", "app"}, "commands and window are two users of the API and not of each other"},
		{[]string{"."}, "main only starts things"},
		{[]string{"build/..."}, "tools of the build use helpers, and the program none of them"},
	}
}

// Ban is an import that only the named packages may have.
type Ban struct {
	Import  string // a path, or a path ending in "/..."
	Allowed []string
	Why     string
}

// Bans are the imports that would open a second way around a rule.
func Bans() []Ban {
	return []Ban{
		{
			"os/exec",
			[]string{"runtime/process", "runtime/env", "runtime/plugins", "runtime/install", "cli", "api/sidecar", "app", "internal/fakeserver/...", "internal/npmtest", "internal/keyringtest", "internal/browser"},
			"children start in runtime/process, with a grant; the others are Sallyport's own helpers, a closed list with fixed arguments (spec/approval.md 5.4a)",
		},
		{
			"modernc.org/sqlite/...", []string{"runtime/store"},
			"one package knows which database it is; the others have database/sql",
		},
		{
			"github.com/wailsapp/wails/...", []string{"app", "."},
			"the headless program links no window, and no package under runtime knows that there is one",
		},
		{
			"sallyport/internal/bundle", []string{"build/..."},
			"making packages is for tools of the build",
		},
		{
			"sallyport/runtime/approvals/approvalstest", []string{"runtime/approvals/..."},
			"it answers questions by itself, which is for tests alone",
		},
		{
			"sallyport/internal/fakeserver/...", []string{"internal/fakeserver/..."},
			"misbehaving servers are for tests alone",
		},
		{
			"sallyport/internal/keyringtest", []string{},
			"keyrings that are made here are for tests alone",
		},
		{
			"sallyport/internal/oauthtest", []string{},
			"an authorization server that agrees to everything is for tests alone",
		},
		{
			"sallyport/internal/npmtest", []string{},
			"the program itself fetches nothing",
		},
		{"net/http/pprof", nil, "it registers routes that no access rule covers"},
		{"expvar", nil, "it registers routes that no access rule covers"},
		{"math/rand", nil, "math/rand/v2 is seeded; secrets come from crypto/rand"},
		{"plugin", nil, "plugins are processes: code that is loaded has every right of ours"},
		{"C", []string{"app"}, "the program is pure Go and builds with CGO_ENABLED=0; only the window on Linux, which links the system's webview, does not"},
		{"github.com/spf13/cobra", []string{"cli"}, "only the commands know how commands are written"},
		{"github.com/adrg/xdg", []string{"runtime/host"}, "the host decides the places; packages get paths in their Config"},
	}
}

// Violations returns every import of files that the layers or bans forbid, with
// the reason. Test files may import what they like, but for bans of everybody.
func Violations(files []File, layers []Layer, bans []Ban) []string {
	var found []string
	for _, file := range files {
		for _, imported := range file.Imports {
			if why := banned(file, imported, bans); why != "" {
				found = append(found, fmt.Sprintf("%s imports %s: %s", file.Path, imported, why))
			}
			if file.Test {
				continue
			}
			if why := against(file.Package, imported, layers); why != "" {
				found = append(found, fmt.Sprintf("%s imports %s: %s", file.Path, imported, why))
			}
		}
	}
	slices.Sort(found)
	return found
}

func banned(file File, imported string, bans []Ban) string {
	for _, ban := range bans {
		if !matches(ban.Import, imported) {
			continue
		}
		if file.Test && ban.Allowed != nil {
			return ""
		}
		if !slices.ContainsFunc(ban.Allowed, func(p string) bool { return matches(p, file.Package) }) {
			return ban.Why
		}
	}
	return ""
}

// against returns why the package from may not import imported, or "".
func against(from, imported string, layers []Layer) string {
	to, ours := ourPackage(imported)
	if !ours {
		return ""
	}
	a, b := rank(from, layers), rank(to, layers)
	switch {
	case a < 0:
		return from + " is in no row of internal/deptest/layers.go: decide where it stands"
	case b < 0:
		return to + " is in no row of internal/deptest/layers.go: decide where it stands"
	case b < a, a == b && sameFolder(layers[a]):
		return ""
	default:
		return layers[b].Why
	}
}

// sameFolder reports whether a row is one folder, whose packages may import each
// other (Go itself forbids circles).
func sameFolder(l Layer) bool {
	return len(l.Packages) == 1 && strings.HasSuffix(l.Packages[0], "/...")
}

func ourPackage(imported string) (string, bool) {
	if imported == Module {
		return ".", true
	}
	return strings.CutPrefix(imported, Module+"/")
}

// rank returns the row of pkg; a row that names it wins over a folder.
func rank(pkg string, layers []Layer) int {
	folder := -1
	for i, layer := range layers {
		for _, pattern := range layer.Packages {
			if pattern == pkg {
				return i
			}
			if matches(pattern, pkg) {
				folder = i
			}
		}
	}
	return folder
}

func matches(pattern, pkg string) bool {
	folder, ok := strings.CutSuffix(pattern, "/...")
	if !ok {
		return pattern == pkg
	}
	return pkg == folder || strings.HasPrefix(pkg, folder+"/")
}
