package deptest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// goCommand runs the go command at the root, without cgo, for another system.
func goCommand(t *testing.T, system string, args ...string) {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	goos, goarch, _ := strings.Cut(system, "/")
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: go %s: %v\n%s", system, strings.Join(args, " "), err, output)
	}
}

// The two tests below are what scripts/warm runs first, by the end of their names:
// with a warm cache they take seconds, and whatever else runs then has the machine.

// Tests of every system must at least compile for it: most of the differences
// between systems are in files that Linux never builds.
func TestEverythingIsVettedForEverySystem(t *testing.T) {
	for _, system := range []string{"linux/amd64", "darwin/arm64", "windows/amd64"} {
		t.Run(system, func(t *testing.T) { goCommand(t, system, "vet", "./...") })
	}
}

func TestProgramBuildsWithoutCgoForEverySystem(t *testing.T) {
	for _, system := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"} {
		t.Run(system, func(t *testing.T) {
			goCommand(t, system, "build", "-buildvcs=false", "-o", filepath.Join(t.TempDir(), "sallyport"), ".")
		})
	}
}
