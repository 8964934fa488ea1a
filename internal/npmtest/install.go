// Package npmtest gives tests the npm packages that a committed lock file names.
//
// The one idea: what is installed is named by the lock file's hash, in a cache
// outside the repository, so it is fetched once on a machine, and never changes.
//
// It runs no script of any package. Only tests import it.
package npmtest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Install returns a folder with folder's package.json and package-lock.json and
// the node_modules that they name. Nobody may write to it: it is shared with
// other tests and processes, which may install the same at the same time.
func Install(tb testing.TB, folder string) string {
	tb.Helper()
	path, err := install(folder)
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

func install(folder string) (string, error) {
	lock, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
	if err != nil {
		return "", err
	}
	cache, err := cacheFolder()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(lock)
	target := filepath.Join(cache, hex.EncodeToString(sum[:]))
	if _, err := os.Stat(target); err == nil {
		return target, nil
	}
	staged, err := os.MkdirTemp(cache, "staged-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(staged) // gone where it was renamed
	if err := fill(staged, folder); err != nil {
		return "", err
	}
	// A rename onto a folder with something in it fails: another was first.
	if err := os.Rename(staged, target); err != nil {
		if _, there := os.Stat(target); there != nil {
			return "", err
		}
	}
	return target, nil
}

func cacheFolder() (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		user = os.TempDir()
	}
	cache := filepath.Join(user, "sallyport-e2e")
	return cache, os.MkdirAll(cache, 0o700)
}

func fill(staged, folder string) error {
	for _, name := range []string{"package.json", "package-lock.json"} {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(staged, name), content, 0o644)
		}
		if err != nil {
			return err
		}
	}
	npm := exec.Command("npm", "ci", "--ignore-scripts", "--no-fund", "--no-audit", "--no-update-notifier")
	npm.Dir = staged
	if out, err := npm.CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("cannot install the packages of %s: %w", filepath.Base(folder), err), errors.New(string(out)))
	}
	if _, err := os.Stat(filepath.Join(staged, "node_modules")); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("npm installed nothing for %s", filepath.Base(folder))
	}
	return nil
}
