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

// The window is for Windows too, without a C compiler. That of Linux is compiled by the
// tests of the window; that of macOS needs a compiler of its own (docs/macos.md).
func TestWindowBuildsForWindows(t *testing.T) {
	const tags = "desktop,production,wv2runtime.browser" // as scripts/package builds it
	goCommand(t, "windows/amd64", "vet", "-tags", tags, ".", "./app")
	goCommand(t, "windows/amd64", "build", "-buildvcs=false", "-tags", tags, "-o", filepath.Join(t.TempDir(), "sallyport.exe"), ".")
}

// What is built without the tag has no window in it, nor any of what a window needs.
func TestHeadlessProgramLinksNoWindow(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	list := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps"}, args...)...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if found := list("."); strings.Contains(found, "wails") || strings.Contains(found, "sallyport/app\n") {
		t.Error("the headless program links the window")
	}
	if found := list("-tags", "desktop,production", "."); !strings.Contains(found, "wailsapp/wails/v2\n") || !strings.Contains(found, "sallyport/app\n") {
		t.Error("the desktop program links no window: the test looks for the wrong names")
	}
}
