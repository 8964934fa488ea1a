package launchers

import (
	"slices"
	"strings"
)

// nodeValued are options of npx and its kin that take the next word.
func nodeValued() []string {
	return []string{"-c", "--call", "-w", "--workspace", "--cache", "--prefix", "--registry", "--userconfig", "--node-arg", "--shell", "-n", "--loglevel"}
}

// npx reads npx, bunx and pnpx: [options] [-p PACKAGE]… [--] PACKAGE [arguments].
func npx(name string, args []string) []Fetch {
	var packages []string
	rest := args
	for len(rest) > 0 {
		word := rest[0]
		rest = rest[1:]
		option, value, inline := strings.Cut(word, "=")
		switch {
		case word == "--":
			return named(name, packages, rest)
		case option == "-p" || option == "--package":
			if !inline && len(rest) > 0 {
				value, rest = rest[0], rest[1:]
			}
			packages = append(packages, value)
		case !inline && slices.Contains(nodeValued(), option):
			rest = rest[min(1, len(rest)):]
		case !strings.HasPrefix(word, "-"):
			return named(name, packages, append([]string{word}, rest...))
		}
	}
	return named(name, packages, nil)
}

// named is what is fetched: the packages that options name, else the first word.
func named(launcher string, packages, rest []string) []Fetch {
	bin := ""
	switch {
	case len(packages) == 0 && len(rest) > 0:
		packages, rest = rest[:1], rest[1:]
	case len(rest) > 0:
		bin, rest = rest[0], rest[1:]
	}
	if len(packages) == 0 {
		return []Fetch{{Launcher: launcher, Pin: Floating}}
	}
	fetches := make([]Fetch, len(packages))
	for i, spec := range packages {
		f := nodePackage(launcher, spec)
		if f.NPM = !strings.ContainsAny(spec, ":#"); f.NPM {
			f.Bin, f.Args = bin, rest
		}
		fetches[i] = f
	}
	return fetches
}

// nodePackage reads NAME, @SCOPE/NAME, either with @VERSION, or an address. A commit
// of git names the package as an exact version does: what that depends on is chosen at
// each start. Behind any other address # names nothing.
func nodePackage(launcher, spec string) Fetch {
	f := Fetch{Launcher: launcher, Package: spec, Pin: Floating}
	if strings.Contains(spec, "://") || strings.HasPrefix(spec, "git+") || strings.HasPrefix(spec, "github:") {
		if _, commit, ok := strings.Cut(spec, "#"); ok && isCommit(commit) && strings.HasPrefix(spec, "git") {
			f.Pin = Exact
		}
		return f
	}
	if at := strings.LastIndex(spec, "@"); at > 0 {
		f.Package, f.Version, f.join = spec[:at], spec[at+1:], "@"
		if isExactVersion(f.Version) {
			f.Pin = Exact
		}
	}
	return f
}

// npm reads npm exec|x …; npm init|create NAME; and npm run and start, which
// run what package.json says and fetch nothing by themselves.
func npm(name string, args []string) []Fetch {
	sub, rest := firstWord(args, nodeValued())
	switch sub {
	case "exec", "x":
		return npx(name+" "+sub, rest)
	case "init", "create", "innit":
		return named(name+" "+sub, nil, words(rest))
	}
	return nil
}

// subcommands reads PROGRAM SUB [options] PACKAGE.
func subcommands(names ...string) reader {
	return func(name string, args []string) []Fetch {
		if sub, rest := firstWord(args, nodeValued()); slices.Contains(names, sub) {
			return npx(name+" "+sub, rest)
		}
		return nil
	}
}

// corepack fetches the package manager that it is asked for.
func corepack(_ string, args []string) []Fetch {
	if spec := words(args); len(spec) > 0 {
		return []Fetch{nodePackage("corepack", spec[0])}
	}
	return []Fetch{{Launcher: "corepack", Pin: Floating}}
}

// firstWord is the first word that is no option, and what follows it.
func firstWord(args, valued []string) (string, []string) {
	for i := 0; i < len(args); i++ {
		switch {
		case !strings.HasPrefix(args[i], "-"):
			return args[i], args[i+1:]
		case slices.Contains(valued, args[i]):
			i++
		}
	}
	return "", nil
}

// words leaves the options out.
func words(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(word string) bool { return strings.HasPrefix(word, "-") })
}

func isExactVersion(version string) bool {
	version = strings.TrimPrefix(version, "v")
	core, _, _ := strings.Cut(version, "+")
	core, _, _ = strings.Cut(core, "-")
	parts := strings.Split(core, ".")
	if len(parts) != 3 {
		return false
	}
	return !slices.ContainsFunc(parts, func(part string) bool { return part == "" || strings.Trim(part, "0123456789") != "" })
}

func isCommit(text string) bool {
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == ""
}
