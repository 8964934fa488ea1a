//go:build linux

package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"

	"sallyport/internal/npmtest"
)

// official are the servers of the protocol's own authors, as plugins.
var official = []string{"everything", "filesystem", "memory"}

// addOfficial installs one of them into ~/.agents/plugins.
func (h *home) addOfficial(name string) {
	h.t.Helper()
	source := filepath.Join("testdata", "plugins", name)
	installed := npmtest.Install(h.t, source)
	h.copyTree(installed+"/.", h.plugin(name))
	for _, file := range []string{"plugin.json", "mcp.json"} {
		h.copyTree(filepath.Join(source, file), h.plugin(name, file))
	}
}

func (h *home) copyTree(from, to string) {
	h.t.Helper()
	if out, err := exec.Command("mkdir", "-p", filepath.Dir(to)).CombinedOutput(); err != nil {
		h.t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command("cp", "-R", "-P", from, to).CombinedOutput(); err != nil {
		h.t.Fatalf("%v\n%s", err, out)
	}
}

// inspector is the official inspector's command.
func inspector(t testing.TB) string {
	return filepath.Join(npmtest.Install(t, filepath.Join("testdata", "inspector")), "node_modules", ".bin", "mcp-inspector")
}
