package approvals

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/coded"
	"sallyport/runtime/env"
	"sallyport/runtime/launchers"
	"sallyport/runtime/plugins"
)

// Fact is something that a careful friend would point at, in one sentence.
type Fact struct {
	Code     string `json:"code"`
	Sentence string `json:"sentence"`
	Red      bool   `json:"red"` // a warning: code not fixed by this approval, a credential in the open
}

// Codes of the facts.
const (
	FactFetched  = "code-fetched-at-launch"
	FactShim     = "version-manager-shim"
	FactFolder   = "folder-argument"
	FactURL      = "url-argument"
	FactImport   = "import-argument"
	FactNoBundle = "no-bundle"
	// FactNotSecret: it looks like a credential, and the operator said it is none.
	FactNotSecret = "not-secret"
	// FactLeftIn: a package holds a credential that the operator's value replaces.
	FactLeftIn = "literal-left-in"
)

// notFixed lists what this approval does not fix (spec/approval.md 2.1a, 6).
func notFixed(c plugins.Connector, x env.Executable, f Fields, own []int) []Fact {
	var facts []Fact
	add := func(code, sentence string) { facts = append(facts, Fact{code, sentence, true}) }
	words := make([]string, len(f.Args))
	for i, arg := range f.Args {
		words[i] = arg.Expanded
	}
	facts = append(facts, fetchFacts(fetchesOf(x, f))...)
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
	for _, argument := range slices.Compact(own) {
		add(FactFolder, fmt.Sprintf("argument %d is a file in the connector's own folder, where it may write; what is in it is not fixed by this approval", argument))
	}
	for _, e := range f.Env {
		for _, part := range filepath.SplitList(cmp.Or(e.Expanded, e.Value)) {
			if looseKind(c, part) == FactFolder {
				add(FactFolder, fmt.Sprintf("the variable %s names a folder; what is in it is not fixed by this approval", Visible(e.Name)))
				break
			}
		}
	}
	add(FactNoBundle, "only the files that its command line names are fixed, not what they load")
	return facts
}

// fetchFacts says of everything that the command line fetches how firmly it is
// named. Only what is named by its content is fixed.
func fetchFacts(fetches []launchers.Fetch) (facts []Fact) {
	for _, f := range fetches {
		what := Visible(f.String())
		switch f.Pin {
		case launchers.Digest:
			facts = append(facts, Fact{FactFetched, fmt.Sprintf("code is downloaded at every start, and its digest fixes which (%s)", what), false})
		case launchers.Exact:
			facts = append(facts, Fact{FactFetched, fmt.Sprintf("code is downloaded at every start (%s): code not fixed by this approval, what it depends on is chosen then", what), true})
		default:
			facts = append(facts, Fact{FactFetched, fmt.Sprintf("code is downloaded at every start (%s): code not fixed by this approval, it may be other code tomorrow", what), true})
		}
	}
	return facts
}

// fetchesOf reads the command line of a connector that is started.
func fetchesOf(x env.Executable, f Fields) []launchers.Fetch {
	if x.Command == "" {
		return nil
	}
	words := make([]string, len(f.Args))
	for i, arg := range f.Args {
		words[i] = arg.Expanded
	}
	return launchers.Recognise(x.Command, words)
}

// unpinned refuses what fetches code that the approval does not fix, unless the
// operator accepted just that (spec/approval.md 6).
func unpinned(r Resolved, accepted bool) error {
	if accepted {
		return nil
	}
	for _, f := range fetchesOf(r.Executable, r.Fields) {
		if !f.Fixed() {
			return &coded.Error{Code: "unpinned-not-accepted",
				Sentence: fmt.Sprintf("it downloads code at every start (%s), which is code not fixed by this approval", Visible(f.String())),
				Next:     "fix the code first: sallyport vendor " + word(r.Connector.ID) + "; or accept that it may change: sallyport approve " + word(r.Connector.ID) + " --accept-unpinned"}
		}
	}
	return nil
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
