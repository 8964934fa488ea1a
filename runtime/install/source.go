package install

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"sallyport/internal/coded"
)

// Kind says what a source is.
type Kind string

// The kinds of source.
const (
	Folder  Kind = "folder"
	Archive Kind = "archive"
	NPM     Kind = "npm"
	Git     Kind = "git"
)

// Source is one place that a plugin can be installed from.
type Source struct {
	Kind Kind
	// Path is absolute: the folder, the archive or the git repository.
	Path string
	// Name and Version are those of an npm package.
	Name, Version string
	// Commit is the full hash of a git commit.
	Commit string
}

// archiveEndings are the names that say "this file is a bundle". What it is in
// truth, its bytes say.
var archiveEndings = []string{".mcpb", ".dxt", ".zip", ".tar.gz", ".tgz"}

var (
	packageName  = regexp.MustCompile(`^(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*$`)
	exactVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	fullHash     = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	remoteForm   = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]+://|(github|gitlab|bitbucket|gist):|[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:)`)
)

// ParseSource reads a source as a person writes it: a folder, an archive,
// npm:NAME@VERSION, git+file:///path#COMMIT or FOLDER#COMMIT. Relative paths are
// below cwd, which is absolute; with no cwd there is none. It looks at the disk to tell a folder from a
// file, and opens nothing.
func ParseSource(text, cwd string) (Source, error) {
	text = strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(text, "npm:"); ok {
		return parseNPM(rest)
	}
	if rest, ok := strings.CutPrefix(text, "git+file://"); ok {
		return parseGitURL(rest)
	}
	if remoteForm.MatchString(text) {
		return Source{}, &coded.Error{Code: "source-remote", Sentence: "a source on the network is not supported yet",
			Next: "download or clone it, then install the file, or the folder as FOLDER#COMMIT; npm packages are npm:NAME@VERSION"}
	}
	if text == "" || strings.ContainsRune(text, 0) {
		return Source{}, unknownSource()
	}
	return parsePath(text, cwd)
}

func parseNPM(text string) (Source, error) {
	at := strings.LastIndexByte(text, '@')
	name, version := text, ""
	if at > 0 {
		name, version = text[:at], text[at+1:]
	}
	if !packageName.MatchString(name) || len(name) > 214 {
		return Source{}, &coded.Error{Code: "npm-name-invalid", Sentence: "this is not the name of an npm package", Next: "write npm:NAME@VERSION, for example npm:@scope/name@1.2.3"}
	}
	if !exactVersion.MatchString(version) {
		return Source{}, &coded.Error{Code: "source-version-floating",
			Sentence: "an npm package needs an exact version: a tag or a range can mean another package tomorrow",
			Next:     fmt.Sprintf("name an exact version: npm:%s@VERSION; npm view %s versions lists them", name, name)}
	}
	return Source{Kind: NPM, Name: name, Version: version}, nil
}

func parseGitURL(rest string) (Source, error) {
	place, commit, _ := strings.Cut(rest, "#")
	path, err := url.PathUnescape(place)
	if err != nil || !strings.HasPrefix(path, "/") || strings.ContainsRune(path, 0) {
		return Source{}, &coded.Error{Code: "source-unknown", Sentence: "this git address names no folder of this computer", Next: "write git+file:///PATH#COMMIT"}
	}
	if runtime.GOOS == "windows" {
		path = strings.TrimPrefix(path, "/")
	}
	return gitSource(filepath.FromSlash(path), commit)
}

func gitSource(path, commit string) (Source, error) {
	if !fullHash.MatchString(commit) {
		return Source{}, &coded.Error{Code: "source-commit-floating",
			Sentence: "a git source needs the full hash of a commit: a branch, a tag or a short hash can mean another one tomorrow",
			Next:     "see it with: git rev-parse HEAD"}
	}
	return Source{Kind: Git, Path: filepath.Clean(path), Commit: commit}, nil
}

func parsePath(text, cwd string) (Source, error) {
	path := absoluteTo(text, cwd)
	if !filepath.IsAbs(path) {
		return Source{}, unknownSource()
	}
	info, err := os.Stat(path)
	if err != nil {
		if i := strings.LastIndexByte(text, '#'); i > 0 {
			return gitSource(absoluteTo(text[:i], cwd), text[i+1:])
		}
		if os.IsNotExist(err) {
			return Source{}, unknownSource()
		}
		return Source{}, &coded.Error{Code: "source-unreadable", Sentence: "the source cannot be looked at", Next: "check that you may read it and the folders above it", Err: err}
	}
	if info.IsDir() {
		return Source{Kind: Folder, Path: path}, nil
	}
	if !info.Mode().IsRegular() || archiveEnding(path) == "" {
		return Source{}, unknownSource()
	}
	return Source{Kind: Archive, Path: path}, nil
}

func absoluteTo(text, cwd string) string {
	if filepath.IsAbs(text) {
		return filepath.Clean(text)
	}
	return filepath.Join(cwd, text)
}

// archiveEnding returns the ending that makes path an archive, or "".
func archiveEnding(path string) string {
	lower := strings.ToLower(path)
	for _, ending := range archiveEndings {
		if strings.HasSuffix(lower, ending) {
			return ending
		}
	}
	return ""
}

func unknownSource() error {
	return &coded.Error{Code: "source-unknown", Sentence: "there is no plugin at this source",
		Next: "name a folder, a file ending in .mcpb, .dxt, .zip, .tar.gz or .tgz, npm:NAME@VERSION, or FOLDER#COMMIT of a git repository"}
}
