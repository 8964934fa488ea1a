package openapi_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// packages is the folder of package.json and its lock file.
const packages = "../ts"

// installed returns a folder with the locked npm packages of api/ts, outside of
// the repository. It is made aside and renamed, so two processes may race.
func installed(t *testing.T) string {
	t.Helper()
	lock, err := os.ReadFile(filepath.Join(packages, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(lock)
	dir := filepath.Join(cache, "sallyport-e2e", hex.EncodeToString(sum[:]))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	install(t, dir)
	return dir
}

func install(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	staged, err := os.MkdirTemp(filepath.Dir(dir), "staged-") //nolint:usetesting // it is renamed, so it lies on the cache's file system
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(staged)
	for _, name := range []string{"package.json", "package-lock.json"} {
		raw, err := os.ReadFile(filepath.Join(packages, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(staged, name), raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	npm := command(t, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir = staged
	if out, err := npm.CombinedOutput(); err != nil {
		t.Fatalf("npm ci in a copy of api/ts: %v\n%s", err, out)
	}
	if err := os.Rename(staged, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		if _, there := os.Stat(dir); there != nil {
			t.Fatal(err)
		}
	}
}

// node runs a program of the installed packages, which must exit with 0.
func node(t *testing.T, environ []string, program string, args ...string) string {
	t.Helper()
	return run(t, environ, "node", append([]string{filepath.Join(installed(t), program)}, args...)...)
}

// run runs a program, which must exit with 0, and returns what it printed.
func run(t *testing.T, environ []string, program string, args ...string) string {
	t.Helper()
	out, err := command(t, environ, program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
	return string(out)
}

func command(t *testing.T, environ []string, program string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, args...)
	c.Env = append(os.Environ(), environ...)
	return c
}
