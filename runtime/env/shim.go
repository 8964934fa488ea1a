package env

import (
	"path/filepath"
	"strings"
)

// shimPlaces are parts of paths that only a version manager's shims have.
var shimPlaces = []struct{ part, manager string }{
	{"/.asdf/shims/", "asdf"},
	{"/mise/shims/", "mise"},
	{"/rtx/shims/", "mise"},
	{"/.volta/bin/", "volta"},
	{"/.pyenv/shims/", "pyenv"},
	{"/pyenv-win/shims/", "pyenv"},
	{"/.rbenv/shims/", "rbenv"},
	{"/.nodenv/shims/", "nodenv"},
	{"/.goenv/shims/", "goenv"},
	{"/.jenv/shims/", "jenv"},
	{"/.plenv/shims/", "plenv"},
	{"/.proto/shims/", "proto"},
	{"/fnm_multishells/", "fnm"},
	{"/.fnm/aliases/", "fnm"},
	{"/fnm/aliases/", "fnm"},
	{"/.nvm/current/", "nvm"},
	{"/nvm/nodejs/", "nvm"},
	{"/scoop/shims/", "scoop"},
	{"/.sdkman/candidates/java/current/", "sdkman"},
}

// shimPrograms are the programs that such shims are links to.
var shimPrograms = map[string]string{
	"mise": "mise", "rtx": "mise", "asdf": "asdf", "volta-shim": "volta", "pyenv": "pyenv", "rbenv": "rbenv",
	"fnm": "fnm", "proto-shim": "proto", "nvm-exec": "nvm",
}

// shimOf names the version manager that decides at each start which program
// found really is, or "". What then runs is not fixed by an approval
// (spec/approval.md 2.1a).
func shimOf(found, real string) string {
	for _, path := range []string{found, real} {
		slashed := strings.ReplaceAll(path, `\`, "/")
		for _, place := range shimPlaces {
			if strings.Contains(slashed, place.part) {
				return place.manager
			}
		}
	}
	program := strings.TrimSuffix(filepath.Base(real), ".exe")
	if manager := shimPrograms[program]; manager != "" && strings.TrimSuffix(filepath.Base(found), ".exe") != program {
		return manager
	}
	return ""
}
