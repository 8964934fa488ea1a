package env

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"sallyport/internal/coded"
	"sallyport/internal/filehash"
)

// Search is what Find looks for and where.
type Search struct {
	// Command is the declared command with its placeholders expanded (Words):
	// a bare name, a ./path inside Root, or an absolute path.
	Command string
	// Path is the child's PATH (Plan.Path).
	Path string
	// Root is the plugin root or its snapshot, absolute; "" without a bundle.
	Root string
	// Home is shown as ~ in errors; default: the user's home folder.
	Home string
	// PathExt is PATHEXT, on Windows; default: .COM;.EXE;.BAT;.CMD.
	PathExt string
}

// Find resolves a command to the file that would run, without running anything
// (spec/child-environment.md 6, spec/approval.md 2.1): a bare name in Path only
// and never in the current folder, ./path inside Root only. It follows #! lines
// and hashes every file that is neither in the bundle nor protected.
//
// Errors are *coded.Error without an absolute path of the user's:
// exec-not-found, exec-outside, exec-unreadable, interpreter-unknown,
// interpreter-depth; or the error of ctx.
func Find(ctx context.Context, s Search) (Executable, error) {
	f := finder{Search: s, protected: protection{}}
	if f.Home == "" {
		f.Home, _ = os.UserHomeDir()
	}
	if s.Root != "" {
		root, err := filepath.EvalSymlinks(s.Root)
		if err != nil {
			return Executable{}, &coded.Error{Code: "exec-not-found", Sentence: "the plugin's folder is not there", Err: err}
		}
		f.realRoot = root
	}
	found, err := f.locate(s.Command)
	if err != nil {
		return Executable{}, err
	}
	return f.describe(ctx, s.Command, found, 0)
}

type finder struct {
	Search
	realRoot  string
	protected protection
}

// locate turns a command into an absolute path.
func (f *finder) locate(command string) (string, error) {
	switch {
	case command == "" || strings.ContainsRune(command, 0):
		return "", coded.New("exec-not-found", "the command is empty or holds a NUL character")
	case filepath.IsAbs(command):
		return f.first(command, []string{command})
	case strings.ContainsAny(command, `/`+string(filepath.Separator)):
		return f.inRoot(command)
	default:
		return f.first(command, inFolders(runtime.GOOS, command, f.Path))
	}
}

// inRoot finds ./path, which never leaves the bundle by its words. describe
// sees to links.
func (f *finder) inRoot(command string) (string, error) {
	if f.Root == "" {
		return "", coded.New("exec-outside", fmt.Sprintf("the command %q is relative, and this connector has no plugin folder", command))
	}
	if !filepath.IsLocal(filepath.FromSlash(command)) {
		return "", outside(command)
	}
	return f.first(command, []string{filepath.Join(f.Root, filepath.FromSlash(command))})
}

func outside(command string) error {
	return coded.New("exec-outside", fmt.Sprintf("the command %q leads out of the plugin's folder", command))
}

// inFolders lists where a bare name may be, by the rules of system.
func inFolders(system, command, path string) []string {
	separator := "/"
	if system == "windows" {
		separator = `\`
	}
	var candidates []string
	for _, folder := range absoluteOnly(system, path) {
		candidates = append(candidates, strings.TrimRight(folder, separator+"/")+separator+command)
	}
	return candidates
}

// withExtensions lists the files that Windows would try for a candidate.
func withExtensions(candidate, pathExt string) []string {
	if pathExt == "" {
		pathExt = ".COM;.EXE;.BAT;.CMD"
	}
	var tries []string
	for _, ext := range strings.Split(pathExt, ";") {
		if !strings.HasPrefix(ext, ".") || len(ext) < 2 {
			continue
		}
		if len(candidate) > len(ext) && strings.EqualFold(candidate[len(candidate)-len(ext):], ext) {
			return []string{candidate}
		}
		tries = append(tries, candidate+strings.ToLower(ext))
	}
	return tries
}

// first returns the first candidate that can be executed.
func (f *finder) first(command string, candidates []string) (string, error) {
	notExecutable := ""
	for _, candidate := range candidates {
		tries := []string{candidate}
		if runtime.GOOS == "windows" {
			tries = withExtensions(candidate, f.PathExt)
		}
		for _, try := range tries {
			info, err := os.Stat(try)
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			if runtime.GOOS == "windows" || info.Mode().Perm()&0o111 != 0 {
				return try, nil
			}
			notExecutable = try
		}
	}
	return "", f.notFound(command, candidates, notExecutable)
}

func (f *finder) notFound(command string, candidates []string, notExecutable string) error {
	e := &coded.Error{Code: "exec-not-found"}
	shown := f.Shown(command)
	switch {
	case notExecutable != "":
		e.Sentence = fmt.Sprintf("the command %q is there (%s) but is not executable", shown, f.Shown(notExecutable))
	case strings.ContainsAny(command, `/\`):
		e.Sentence = fmt.Sprintf("the command %q is not there", shown)
	default:
		e.Sentence = fmt.Sprintf("the command %q is in none of the folders that were searched: %s", shown, f.searched(candidates))
		e.Next = "install it, or give the connector a PATH that holds it"
	}
	return e
}

func (f *finder) searched(candidates []string) string {
	if len(candidates) == 0 {
		return "none, because PATH is empty"
	}
	folders := make([]string, len(candidates))
	for i, candidate := range candidates {
		folders[i] = f.Shown(filepath.Dir(candidate))
	}
	return strings.Join(folders, ", ")
}

// Shown writes a path as it may be shown: the plugin's folder as PLUGIN_ROOT,
// the user's home as ~.
func (s Search) Shown(path string) string {
	for _, place := range [][2]string{{s.Root, "${PLUGIN_ROOT}"}, {s.Home, "~"}} {
		if place[0] == "" {
			continue
		}
		if rest, ok := strings.CutPrefix(path, filepath.Clean(place[0])); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
			return place[1] + filepath.ToSlash(rest)
		}
	}
	return path
}

// interpreterDepth is how many #! lines may follow each other; Linux stops at 4.
const interpreterDepth = 4

// describe says everything about a file that an approval is bound to.
func (f *finder) describe(ctx context.Context, command, found string, depth int) (Executable, error) {
	x := Executable{Command: command, Found: found}
	real, err := filepath.EvalSymlinks(found)
	if err != nil {
		return x, f.unreadable(found, err)
	}
	x.Real = real
	x.InBundle = f.realRoot != "" && within(f.realRoot, real)
	if depth == 0 && f.Root != "" && !x.InBundle && within(f.Root, found) {
		return x, outside(command)
	}
	x.Shim = shimOf(found, real)
	x.Protected = !x.InBundle && f.protected.of(found) && f.protected.of(real)
	line, err := f.examine(ctx, &x)
	if err != nil {
		return x, err
	}
	x.Interpreters, err = f.interpreters(ctx, x, line, depth)
	return x, err
}

// examine reads the file once: its hash where it is needed, and its first line
// where that names an interpreter.
func (f *finder) examine(ctx context.Context, x *Executable) (string, error) {
	file, err := os.Open(x.Real)
	if err != nil {
		return "", f.unreadable(x.Real, err)
	}
	defer file.Close()
	head := make([]byte, 1024)
	n, err := io.ReadFull(file, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return "", f.unreadable(x.Real, err)
	}
	head = head[:n]
	if !x.InBundle && !x.Protected {
		x.SHA256, err = filehash.SHA256(ctx, io.MultiReader(bytes.NewReader(head), file))
		if err != nil {
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			return "", f.unreadable(x.Real, err)
		}
	}
	return interpreterLine(head), nil
}

func (f *finder) unreadable(path string, err error) error {
	return &coded.Error{Code: "exec-unreadable", Sentence: fmt.Sprintf("cannot read the executable %q", f.Shown(path)), Err: err}
}

func within(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}
