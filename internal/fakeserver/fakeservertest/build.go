// Package fakeservertest builds the fakeserver program for a test.
//
// The one idea: a test that needs a bundle with an executable gets a real one, by
// one call. Only tests import it.
package fakeservertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// Build puts the program, statically linked, into dir and returns its path. The
// go command's cache makes every build but the first quick.
func Build(tb testing.TB, dir string) string {
	tb.Helper()
	path, err := BuildIn(dir)
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// BuildIn is Build for a TestMain.
func BuildIn(dir string) (string, error) {
	path := filepath.Join(dir, "fakeserver")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	build := exec.Command("go", "build", "-trimpath", "-o", path, "sallyport/internal/fakeserver/cmd/fakeserver")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", &buildError{err, string(out)}
	}
	return path, nil
}

type buildError struct {
	err  error
	text string
}

func (e *buildError) Error() string {
	return "cannot build fakeserver: " + e.err.Error() + "\n" + e.text
}
func (e *buildError) Unwrap() error { return e.err }
