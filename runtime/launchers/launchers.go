package launchers

import (
	"path"
	"strings"
)

// Pin is how firmly a command line names the code that it fetches.
type Pin string

// From loose to firm.
const (
	// Floating is whatever is newest, or matches, at each start.
	Floating Pin = "floating"
	// Exact is one version, as the registry has it at each start; what that
	// depends on is chosen then.
	Exact Pin = "exact"
	// Digest is named by its content: what it is cannot change.
	Digest Pin = "digest"
)

// Fetch is one thing that a command line fetches.
type Fetch struct {
	Launcher string // "npx", "docker run"
	// Package is what is fetched, "" where the command line does not name it.
	Package string
	Version string // as written, "" for none
	join    string // what stands between the two
	// NPM says that it is a package of an npm registry, started as Bin ("" is the one
	// that the package names itself) with Args.
	NPM  bool
	Bin  string
	Args []string
	Pin  Pin
}

// Fixed reports whether the code cannot change from one start to the next.
func (f Fetch) Fixed() bool { return f.Pin == Digest }

// String is the fetch as it would be typed: "npx pkg@1.2.3".
func (f Fetch) String() string {
	text := f.Launcher
	if f.Package != "" {
		text += " " + f.Package
	}
	if f.Version == "" {
		return text
	}
	return text + f.join + f.Version
}

// maxDepth is how many wrappers and shells are looked through.
const maxDepth = 8

// Recognise returns what a command line fetches, in order; nothing where it is
// not known to fetch anything. command may be a bare name or a path on any
// system.
func Recognise(command string, args []string) []Fetch {
	return recognise(append([]string{command}, args...), maxDepth)
}

func recognise(words []string, depth int) []Fetch {
	if len(words) == 0 {
		return nil
	}
	if depth == 0 { // nobody needs so many: what is behind them is not looked for
		return []Fetch{{Launcher: programName(words[0]), Pin: Floating}}
	}
	name, args := programName(words[0]), words[1:]
	if read, known := readers()[name]; known {
		return read(name, args)
	}
	if script, ok := shellScript(name, args); ok {
		return scriptFetches(script, depth-1)
	}
	if inner, ok := wrapped(name, args); ok {
		return recognise(inner, depth-1)
	}
	return nil
}

// programName is the last part of a path, in lower case and without the endings
// of Windows' programs.
func programName(command string) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(command, `\`, "/")))
	for _, ending := range []string{".exe", ".cmd", ".bat", ".ps1", ".com"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// reader reads the arguments of one launcher.
type reader func(name string, args []string) []Fetch

// readers are the launchers that are known, by program name.
func readers() map[string]reader {
	return map[string]reader{
		"npx": npx, "npm": npm, "pnpm": subcommands("dlx", "exec"), "pnpx": npx, "yarn": subcommands("dlx"),
		"bunx": npx, "bun": subcommands("x"), "corepack": corepack,
		"uvx": uvx, "uv": uv, "pipx": pipx,
		"docker": container, "podman": container, "nerdctl": container,
		"deno": deno, "go": goRun, "nix": nix, "dnx": dnx, "dotnet": dotnet, "jbang": jbang, "mise": mise, "cargo": cargo,
	}
}
