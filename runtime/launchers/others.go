package launchers

import (
	"slices"
	"strings"
)

// containerFlags are the options of docker run that take no value; every other one
// takes the next word, unless it has its own after "=".
func containerFlags() []string {
	return []string{
		"-i", "-t", "-d", "-P", "-it", "-ti", "-id", "-itd", "-q", "--interactive", "--tty", "--detach", "--rm", "--init", "--privileged", "--read-only",
		"--publish-all", "--no-healthcheck", "--oom-kill-disable", "--quiet", "--sig-proxy", "--use-api-socket", "--replace", "--tls-verify",
	}
}

// container reads docker run [options] IMAGE and docker compose run|up.
func container(name string, args []string) []Fetch {
	sub, rest := firstWord(args, []string{"-H", "--host", "--context", "-c", "--config", "-l", "--log-level"})
	if sub == "container" {
		sub, rest = firstWord(rest, nil)
	}
	switch sub {
	case "compose":
		return []Fetch{{Launcher: name + " compose", Pin: Floating}}
	case "run", "create":
	default:
		return nil
	}
	for len(rest) > 0 {
		word := rest[0]
		rest = rest[1:]
		switch {
		case word == "--" || strings.HasPrefix(word, "-") && (strings.Contains(word, "=") || slices.Contains(containerFlags(), word)):
		case strings.HasPrefix(word, "-"):
			rest = rest[min(1, len(rest)):]
		default:
			return []Fetch{image(name+" "+sub, word)}
		}
	}
	return []Fetch{{Launcher: name + " " + sub, Pin: Floating}}
}

// image reads NAME, NAME:TAG and NAME@sha256:…. A tag can be moved, so it is no more
// than a version.
func image(launcher, reference string) Fetch {
	f := Fetch{Launcher: launcher, Package: reference, Pin: Floating}
	if name, digest, ok := strings.Cut(reference, "@"); ok {
		f.Package, f.Version, f.join = name, digest, "@"
		if hash, ok := strings.CutPrefix(digest, "sha256:"); ok && len(hash) == 64 && strings.Trim(hash, "0123456789abcdef") == "" {
			f.Pin = Digest
		}
		return f
	}
	if at := strings.LastIndex(reference, ":"); at > strings.LastIndex(reference, "/") {
		f.Package, f.Version, f.join = reference[:at], reference[at+1:], ":"
		if isExactVersion(f.Version) {
			f.Pin = Exact
		}
	}
	return f
}

// deno reads deno run ADDRESS; a script on disk may still import addresses.
func deno(_ string, args []string) []Fetch {
	sub, rest := firstWord(args, nil)
	launcher := "deno " + sub
	switch sub {
	case "x":
	case "run", "serve":
	default:
		rest, launcher = args, "deno"
	}
	if slices.Contains(rest, "--cached-only") || slices.Contains(rest, "--no-remote") && slices.Contains(rest, "--no-npm") {
		return nil
	}
	for _, word := range words(rest) {
		for _, scheme := range []string{"npm:", "jsr:"} {
			if spec, ok := strings.CutPrefix(word, scheme); ok {
				f := nodePackage(launcher, strings.TrimPrefix(spec, "/"))
				f.Package = scheme + f.Package
				return []Fetch{f}
			}
		}
		if strings.HasPrefix(word, "https:") || strings.HasPrefix(word, "http:") || sub == "x" {
			return []Fetch{{Launcher: launcher, Package: word, Pin: Floating}}
		}
	}
	return nil
}

// goRun reads go run MODULE@VERSION. A module's version has one content: the
// checksum database sees to that.
func goRun(_ string, args []string) []Fetch {
	sub, rest := firstWord(args, []string{"-C"})
	if sub != "run" {
		return nil
	}
	target, _ := firstWord(rest, []string{"-mod", "-modfile", "-tags", "-ldflags", "-exec", "-C", "-o"})
	name, version, remote := strings.Cut(target, "@")
	if !remote {
		return nil
	}
	f := Fetch{Launcher: "go run", Package: name, Version: version, Pin: Floating, join: "@"}
	if isExactVersion(version) {
		f.Pin = Exact
	}
	return []Fetch{f}
}

// nix reads nix run|shell|develop FLAKE.
func nix(_ string, args []string) []Fetch {
	sub, rest := firstWord(args, []string{"--option"})
	if !isAny(sub, "run", "shell", "develop") {
		return nil
	}
	f := Fetch{Launcher: "nix " + sub, Pin: Floating}
	if flake := words(rest); len(flake) > 0 && (strings.Contains(flake[0], ":") || strings.Contains(flake[0], "#")) {
		f.Package = flake[0]
		address, _, _ := strings.Cut(flake[0], "#")
		if parts := strings.Split(address, "/"); isCommit(parts[len(parts)-1]) {
			f.Pin = Exact // its inputs are fixed only where it has a lock file
		}
	}
	return []Fetch{f}
}

func dnx(name string, args []string) []Fetch {
	tool, _ := firstWord(args, []string{"--version", "--source", "--add-source", "--configfile", "--framework", "--verbosity"})
	f := nodePackage(name, tool)
	for i, word := range args {
		if word == "--version" && i+1 < len(args) {
			f.Version, f.join = args[i+1], "@"
		}
		if version, ok := strings.CutPrefix(word, "--version="); ok {
			f.Version, f.join = version, "@"
		}
	}
	if isExactVersion(f.Version) {
		f.Pin = Exact
	}
	return []Fetch{f}
}

func dotnet(_ string, args []string) []Fetch {
	switch sub, rest := firstWord(args, nil); sub {
	case "dnx":
		return dnx("dotnet dnx", rest)
	case "tool":
		if next, rest := firstWord(rest, nil); next == "exec" {
			return dnx("dotnet tool exec", rest)
		}
	}
	return nil
}

func jbang(name string, args []string) []Fetch {
	target, _ := firstWord(args, nil)
	f := Fetch{Launcher: name, Package: target, Pin: Floating}
	if parts := strings.Split(target, ":"); len(parts) == 3 && !strings.Contains(target, "://") {
		f.Package, f.Version, f.join = parts[0]+":"+parts[1], parts[2], ":"
		if isExactVersion(f.Version) {
			f.Pin = Exact
		}
	}
	return []Fetch{f}
}

func mise(_ string, args []string) []Fetch {
	sub, rest := firstWord(args, []string{"-C", "--cd"})
	if !isAny(sub, "exec", "x") {
		return nil
	}
	before := rest
	if at := slices.Index(rest, "--"); at >= 0 {
		before = rest[:at]
	}
	var fetches []Fetch
	for _, tool := range words(before) {
		fetches = append(fetches, nodePackage("mise "+sub, tool))
	}
	if at := slices.Index(rest, "--"); at >= 0 {
		fetches = append(fetches, recognise(rest[at+1:], maxDepth)...)
	}
	if len(fetches) == 0 {
		return []Fetch{{Launcher: "mise " + sub, Pin: Floating}}
	}
	return fetches
}

// cargo builds what its lock file names, which it may have to fetch.
func cargo(_ string, args []string) []Fetch {
	if sub, rest := firstWord(args, []string{"--config", "-Z", "-C"}); sub == "run" && !slices.Contains(rest, "--offline") && !slices.Contains(rest, "--frozen") {
		return []Fetch{{Launcher: "cargo run", Pin: Floating}}
	}
	return nil
}
