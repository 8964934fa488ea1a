package clients

import (
	"os"
	pathpkg "path"
	"path/filepath"
	"strings"
)

// System is the computer that files are looked for on, as data, so that each
// system's places can be tested on every other.
type System struct {
	OS   string // "linux", "darwin", "windows"
	Home string // absolute
	// Roaming and Local are %APPDATA% and %LOCALAPPDATA%; "" is below Home.
	Roaming, Local string
	// Config is $XDG_CONFIG_HOME; "" is ~/.config.
	Config string
	// CodexHome and ClaudeConfig are $CODEX_HOME and $CLAUDE_CONFIG_DIR, if set.
	CodexHome, ClaudeConfig string
}

// NewSystem takes what matters from an environment.
func NewSystem(goos, home string, environ []string) System {
	get := func(name string) string {
		for _, entry := range environ {
			if key, value, ok := strings.Cut(entry, "="); ok && (key == name || goos == "windows" && strings.EqualFold(key, name)) && filepath.IsAbs(value) {
				return value
			}
		}
		return ""
	}
	return System{OS: goos, Home: home, Roaming: get("APPDATA"), Local: get("LOCALAPPDATA"),
		Config: get("XDG_CONFIG_HOME"), CodexHome: get("CODEX_HOME"), ClaudeConfig: get("CLAUDE_CONFIG_DIR")}
}

// base is where a place begins.
type base int

const (
	inHome     base = iota
	inConfig        // ~/.config, on every system
	inUserData      // where Electron programs keep theirs
	inLocal         // Windows: %LOCALAPPDATA%
	inCodex         // ~/.codex
	inClaude        // ~, or $CLAUDE_CONFIG_DIR
	inProject       // the folder of one project
)

// folder returns the absolute folder of a base; "" where there is none.
func (s System) folder(b base, project string) string {
	or := func(value string, below ...string) string {
		if value != "" {
			return value
		}
		return filepath.Join(append([]string{s.Home}, below...)...)
	}
	switch b {
	case inHome:
		return s.Home
	case inConfig:
		if s.OS == "linux" {
			return or(s.Config, ".config")
		}
		return or("", ".config")
	case inUserData:
		switch s.OS {
		case "windows":
			return or(s.Roaming, "AppData", "Roaming")
		case "darwin":
			return or("", "Library", "Application Support")
		}
		return or(s.Config, ".config")
	case inLocal:
		return or(s.Local, "AppData", "Local")
	case inCodex:
		return or(s.CodexHome, ".codex")
	case inClaude:
		return or(s.ClaudeConfig)
	}
	return project
}

// Label writes a path for people: the home folder as ~.
func (s System) Label(path string) string {
	if path == s.Home {
		return "~"
	}
	if rest, ok := strings.CutPrefix(path, s.Home+string(filepath.Separator)); ok && s.Home != "" {
		return "~/" + filepath.ToSlash(rest)
	}
	return filepath.ToSlash(path)
}

// find returns the files of a place that exist, sorted, or, where wanted, the one
// that would be made.
func (s System) find(p place, project string) []string {
	folder := s.folder(p.base, project)
	if folder == "" || p.os != "" && p.os != s.OS {
		return nil
	}
	pattern := filepath.Join(globEscape(folder), filepath.FromSlash(p.path))
	if !strings.ContainsRune(p.path, '*') {
		full := filepath.Join(folder, filepath.FromSlash(p.path))
		if info, err := os.Stat(full); err != nil || info.IsDir() {
			if _, err := os.Lstat(full); err != nil {
				return nil
			}
		}
		return []string{full}
	}
	found, _ := filepath.Glob(pattern)
	return found
}

func globEscape(folder string) string {
	if os.PathSeparator == '\\' {
		return folder // no escapes there; none of these characters may be in a name
	}
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(folder)
}

// target is the path that a place names, whether or not it exists. sure is true where
// a star stood for a folder that is there: its program is installed.
func (s System) target(p place, project string) (path string, sure, ok bool) {
	folder := s.folder(p.base, project)
	if folder == "" || p.os != "" && p.os != s.OS {
		return "", false, false
	}
	dir, base := pathpkg.Split(pathpkg.Clean(p.path))
	if strings.ContainsRune(base, '*') {
		return "", false, false
	}
	if !strings.ContainsRune(dir, '*') {
		return filepath.Join(folder, filepath.FromSlash(dir), base), false, true
	}
	found, _ := filepath.Glob(filepath.Join(globEscape(folder), filepath.FromSlash(dir)))
	if len(found) != 1 {
		return "", false, false
	}
	return filepath.Join(found[0], base), true, true
}
