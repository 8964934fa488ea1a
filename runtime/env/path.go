package env

import (
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// listSeparator and isAbsolute follow the rules of the system given, not of the
// one this runs on.
func listSeparator(system string) string {
	if system == "windows" {
		return ";"
	}
	return ":"
}

func isAbsolute(system, path string) bool {
	if system != "windows" {
		return strings.HasPrefix(path, "/")
	}
	if strings.HasPrefix(path, `\\`) {
		return true
	}
	return len(path) > 2 && path[1] == ':' && (path[2] == '\\' || path[2] == '/')
}

func splitPath(system, list string) []string {
	entries := strings.Split(list, listSeparator(system))
	if system == "windows" {
		for i, entry := range entries {
			entries[i] = strings.Trim(entry, `"`)
		}
	}
	return entries
}

func joinPath(system string, entries []string) string {
	return strings.Join(entries, listSeparator(system))
}

// absoluteOnly drops entries that are empty or relative: the current folder is
// never searched.
func absoluteOnly(system, list string) []string {
	var kept []string
	for _, entry := range splitPath(system, list) {
		if isAbsolute(system, entry) && !strings.ContainsRune(entry, 0) {
			kept = append(kept, entry)
		}
	}
	return kept
}

// mergePaths joins lists of entries; the first of two equal ones wins.
func mergePaths(system string, lists ...[]string) []string {
	var merged []string
	seen := map[string]bool{}
	for _, list := range lists {
		for _, entry := range list {
			key := filepath.Clean(entry)
			if system == "windows" {
				key = strings.ToLower(key)
			}
			if !seen[key] {
				seen[key], merged = true, append(merged, entry)
			}
		}
	}
	return merged
}

// trusted reports whether nobody but its owner's kind can put a program there:
// neither the folder, nor (where it does not exist) the nearest folder above it
// is world-writable, and no folder further up can be swapped by anybody.
func trusted(folder string) bool {
	nearest := true
	for at := filepath.Clean(folder); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err == nil {
			open := info.Mode().Perm()&0o002 != 0
			if open && (nearest || info.Mode()&os.ModeSticky == 0) {
				return false
			}
			nearest = false
		} else if !os.IsNotExist(err) {
			return false
		}
		if at == filepath.Dir(at) {
			return true
		}
	}
}

// launchers are the folders where installers of tools that start servers put
// them, most particular first. Only those that exist are used.
func launchers(system, home string) []string {
	var folders []string
	if home != "" {
		folders = append(folders, newestNode(filepath.Join(home, ".nvm", "versions", "node"))...)
		for _, name := range []string{
			".local/bin", ".volta/bin", ".local/share/mise/shims", ".asdf/shims", ".pyenv/shims", ".rbenv/shims",
			".bun/bin", ".deno/bin", ".cargo/bin", "go/bin", ".nix-profile/bin", "bin",
		} {
			folders = append(folders, filepath.Join(home, filepath.FromSlash(name)))
		}
	}
	if system == "darwin" {
		folders = append(folders, "/opt/homebrew/bin", "/opt/homebrew/sbin", "/opt/local/bin")
	}
	folders = append(folders, "/usr/local/bin", "/home/linuxbrew/.linuxbrew/bin", "/snap/bin",
		"/run/current-system/sw/bin", "/nix/var/nix/profiles/default/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")
	var existing []string
	for _, folder := range folders {
		if info, err := os.Stat(folder); err == nil && info.IsDir() {
			existing = append(existing, folder)
		}
	}
	return existing
}

// newestNode returns the folder of the highest version that nvm installed.
func newestNode(versions string) []string {
	entries, err := os.ReadDir(versions)
	if err != nil || len(entries) == 0 {
		return nil
	}
	sort.Slice(entries, func(i, j int) bool { return versionLess(entries[j].Name(), entries[i].Name()) })
	return []string{filepath.Join(versions, entries[0].Name(), "bin")}
}

// versionLess compares v1.2.3 part by part as numbers.
func versionLess(a, b string) bool {
	x, y := strings.Split(strings.TrimPrefix(a, "v"), "."), strings.Split(strings.TrimPrefix(b, "v"), ".")
	for i := 0; i < len(x) && i < len(y); i++ {
		m, errM := strconv.Atoi(x[i])
		n, errN := strconv.Atoi(y[i])
		switch {
		case errM != nil || errN != nil:
			if (errM == nil) != (errN == nil) {
				return errM != nil
			}
			if x[i] != y[i] {
				return x[i] < y[i]
			}
		case m != n:
			return m < n
		}
	}
	return len(x) < len(y)
}
