package launchers

import (
	"slices"
	"strings"
)

func uvValued() []string {
	return []string{
		"-p", "--python", "--index-url", "-i", "--extra-index-url", "--index", "--default-index", "--cache-dir", "--directory", "--project",
		"--config-file", "--env-file", "--find-links", "-f", "--constraints", "-c", "--overrides", "--refresh-package", "-w", "--with-editable", "-m", "--module",
	}
}

// uvx reads uvx [--from PACKAGE] [--with PACKAGE] TOOL[@VERSION] [arguments].
func uvx(name string, args []string) []Fetch {
	var from string
	var with []string
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		option, value, inline := strings.Cut(word, "=")
		if isAny(option, "--from", "--with", "--with-requirements") && !inline && len(args) > 0 {
			value, args = args[0], args[1:]
		}
		switch {
		case option == "--from":
			from = value
		case option == "--with", option == "--with-requirements":
			with = append(with, value)
		case !inline && slices.Contains(uvValued(), option):
			args = args[min(1, len(args)):]
		case !strings.HasPrefix(word, "-"):
			if from == "" {
				from = word
			}
			return pythonPackages(name, append([]string{from}, with...))
		}
	}
	if from != "" || len(with) > 0 {
		return pythonPackages(name, append([]string{from}, with...))
	}
	return []Fetch{{Launcher: name, Pin: Floating}}
}

func pythonPackages(launcher string, specs []string) (fetches []Fetch) {
	for _, spec := range specs {
		if spec != "" {
			fetches = append(fetches, pythonPackage(launcher, spec))
		}
	}
	return fetches
}

// pythonPackage reads NAME, NAME[extra], NAME@VERSION, NAME==VERSION, NAME>=…, or
// an address: as with npm, a commit of git is an exact version and no more.
func pythonPackage(launcher, spec string) Fetch {
	f := Fetch{Launcher: launcher, Package: spec, Pin: Floating}
	if strings.Contains(spec, "://") {
		if at := strings.LastIndex(spec, "@"); at > 0 && isCommit(strings.TrimSuffix(spec[at+1:], "#")) && strings.Contains(spec, "git+") {
			f.Pin = Exact
		}
		return f
	}
	if at := strings.IndexAny(spec, "=<>~!@"); at > 0 {
		f.Package, f.Version = spec[:at], spec[at:]
		exact, isEqual := strings.CutPrefix(f.Version, "==")
		if after, isAt := strings.CutPrefix(f.Version, "@"); isAt {
			exact, isEqual, f.Version, f.join = after, true, after, "@"
		}
		if isEqual && exact != "" && !strings.ContainsAny(exact, "*,<>~!") && exact[0] >= '0' && exact[0] <= '9' {
			f.Pin = Exact
		}
	}
	return f
}

// uv reads uv tool run, which is uvx, and uv run, which installs what the project or
// the script asks for; with --frozen, as its lock file names it.
func uv(_ string, args []string) []Fetch {
	sub, rest := firstWord(args, uvValued())
	switch sub {
	case "tool":
		if next, rest := firstWord(rest, nil); next == "run" {
			return uvx("uv tool run", rest)
		}
	case "x":
		return uvx("uv x", rest)
	case "run":
		return uvRun(rest)
	}
	return nil
}

func uvRun(args []string) []Fetch {
	var with []string
	for i, word := range args {
		option, value, inline := strings.Cut(word, "=")
		if option == "--with" && !inline && i+1 < len(args) {
			value = args[i+1]
		}
		switch {
		case option == "--with":
			with = append(with, value)
		case isAny(word, "--offline", "--no-sync"):
			return nil
		}
	}
	if fetches := pythonPackages("uv run", with); len(fetches) > 0 {
		return fetches
	}
	return []Fetch{{Launcher: "uv run", Pin: Floating}}
}

// pipx reads pipx run [--spec PACKAGE] TOOL.
func pipx(_ string, args []string) []Fetch {
	sub, rest := firstWord(args, nil)
	if sub != "run" {
		return nil
	}
	for i, word := range rest {
		if spec, ok := strings.CutPrefix(word, "--spec="); ok {
			return []Fetch{pythonPackage("pipx run", spec)}
		}
		if word == "--spec" && i+1 < len(rest) {
			return []Fetch{pythonPackage("pipx run", rest[i+1])}
		}
	}
	tool, _ := firstWord(rest, []string{"--index-url", "-i", "--python", "--pip-args"})
	return []Fetch{pythonPackage("pipx run", tool)}
}

func isAny(word string, of ...string) bool { return slices.Contains(of, word) }
