package approvals

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"sallyport/runtime/env"
	"sallyport/runtime/plugins"
)

// Fact is something that a careful friend would point at, in one sentence.
type Fact struct {
	Code     string `json:"code"`
	Sentence string `json:"sentence"`
	Red      bool   `json:"red"` // code not fixed by this approval
}

// Codes of the facts.
const (
	FactFetched  = "code-fetched-at-launch"
	FactShim     = "version-manager-shim"
	FactFolder   = "folder-argument"
	FactURL      = "url-argument"
	FactImport   = "import-argument"
	FactNoBundle = "no-bundle"
)

// fetchers are programs that download code when they start (C49). A value lists
// the first arguments that make it so; nil: always.
var fetchers = map[string][]string{
	"npx": nil, "bunx": nil, "pnpx": nil, "uvx": nil, "pipx": {"run"}, "uv": {"run", "tool", "x"},
	"npm": {"exec", "x", "run", "start"}, "pnpm": {"dlx", "exec"}, "yarn": {"dlx"}, "bun": {"x"},
	"deno": {"run"}, "docker": {"run", "compose"}, "podman": {"run"}, "nerdctl": {"run"}, "nix": {"run", "shell", "develop"},
	"go": {"run"}, "cargo": {"run"}, "dnx": nil, "jbang": nil, "corepack": nil, "mise": {"exec", "x"},
}

// notFixed lists what this approval does not fix (spec/approval.md 2.1a, 6).
func notFixed(c plugins.Connector, x env.Executable, f Fields) []Fact {
	var facts []Fact
	add := func(code, sentence string) { facts = append(facts, Fact{code, sentence, true}) }
	words := make([]string, len(f.Args))
	for i, arg := range f.Args {
		words[i] = arg.Expanded
	}
	if name, ok := fetches(x.Command, words); ok {
		add(FactFetched, fmt.Sprintf("code is downloaded at every start (%s)", Visible(name)))
	}
	if shim := firstShim(x); shim != "" {
		add(FactShim, fmt.Sprintf("which program runs is decided at every start by %s", shim))
	}
	if c.Root != "" {
		return facts
	}
	if option := imports(words); option != "" {
		add(FactImport, fmt.Sprintf("%s loads code by name; which code that is can change", option))
	}
	for i, word := range words {
		switch kind := looseKind(c, word); kind {
		case FactURL:
			add(FactURL, fmt.Sprintf("argument %d is an address; what is there can change", i+1))
		case FactFolder:
			add(FactFolder, fmt.Sprintf("argument %d is a folder; what is in it is not fixed by this approval", i+1))
		}
	}
	for _, e := range f.Env {
		for _, part := range filepath.SplitList(e.Value) {
			if looseKind(c, part) == FactFolder {
				add(FactFolder, fmt.Sprintf("the variable %s names a folder; what is in it is not fixed by this approval", Visible(e.Name)))
				break
			}
		}
	}
	add(FactNoBundle, "only the files that its command line names are fixed, not what they load")
	return facts
}

// fetches looks through wrappers (env, sh -c …) no further than their first words:
// what they hide is inline code, not a known fetcher.
func fetches(command string, args []string) (string, bool) {
	name := strings.ToLower(filepath.Base(filepath.ToSlash(command)))
	for _, ext := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, ext)
	}
	triggers, known := fetchers[name]
	switch {
	case !known:
		return wrapped(name, args)
	case triggers == nil:
		return name, true
	}
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			continue
		}
		for _, trigger := range triggers {
			if arg == trigger {
				return name + " " + arg, true
			}
		}
		return "", false
	}
	return "", false
}

// wrapped finds a fetcher behind a program that runs its arguments.
func wrapped(name string, args []string) (string, bool) {
	switch name {
	case "env", "sudo", "nice", "timeout", "nohup", "exec", "cmd", "arch":
	case "sh", "bash", "zsh", "dash", "fish", "pwsh", "powershell":
		var words []string
		for _, arg := range args {
			words = append(words, strings.Fields(arg)...)
		}
		args = words
	default:
		return "", false
	}
	for i, arg := range args {
		if found, ok := fetches(arg, args[i+1:]); ok {
			return found, true
		}
	}
	return "", false
}

func firstShim(x env.Executable) string {
	if x.Shim != "" {
		return x.Shim
	}
	for _, inner := range x.Interpreters {
		if shim := firstShim(inner); shim != "" {
			return shim
		}
	}
	return ""
}

// imports returns the first option that loads code by a name rather than a path.
func imports(args []string) string {
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		switch name {
		case "-m", "-r", "--require", "--import", "--loader", "--experimental-loader", "--preload":
			return name
		}
	}
	return ""
}

// looseKind says whether an argument is an address, or a folder that the artifact
// digest does not cover.
func looseKind(c plugins.Connector, arg string) string {
	if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
		arg = value
	}
	if u, err := url.Parse(arg); err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https" || strings.HasPrefix(u.Scheme, "git")) {
		return FactURL
	}
	if !filepath.IsAbs(arg) {
		return ""
	}
	if _, inside := below(c.Root, arg); inside {
		return ""
	}
	if info, err := os.Stat(arg); err == nil && info.IsDir() {
		return FactFolder
	}
	return ""
}
