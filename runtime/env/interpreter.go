package env

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"sallyport/internal/coded"
)

// interpreterLine returns what stands after #! in the first line, or "".
func interpreterLine(head []byte) string {
	text, ok := strings.CutPrefix(string(head), "#!")
	if !ok {
		return ""
	}
	line, _, _ := strings.Cut(text, "\n")
	return strings.Trim(line, " \t\r")
}

// interpreters follows a #! line: the named program, what /usr/bin/env then
// finds in PATH, and their own #! lines. Windows does not know #!.
func (f *finder) interpreters(ctx context.Context, x Executable, line string, depth int) ([]Executable, error) {
	if line == "" || runtime.GOOS == "windows" {
		return nil, nil
	}
	if depth == interpreterDepth {
		return nil, coded.New("interpreter-depth", fmt.Sprintf("the #! lines of %q lead from script to script too often", f.Shown(x.Command)))
	}
	program, argument, _ := strings.Cut(line, " ")
	program, extra, tabbed := strings.Cut(program, "\t")
	if tabbed {
		argument = extra + " " + argument
	}
	if !filepath.IsAbs(program) {
		return nil, coded.New("interpreter-unknown", fmt.Sprintf("the #! line of %q names %q, which is not an absolute path", f.Shown(x.Command), program))
	}
	names := []string{program}
	if filepath.Base(program) == "env" {
		name, err := envTarget(runtime.GOOS, strings.Trim(argument, " \t"))
		if err == nil && !filepath.IsAbs(name) && strings.Contains(name, "/") {
			err = errors.New("names a program by a relative path")
		}
		if err != nil {
			return nil, coded.New("interpreter-unknown", fmt.Sprintf("the #! line of %q %s", f.Shown(x.Command), err))
		}
		names = append(names, name)
	}
	return f.chain(ctx, names, depth)
}

// chain describes each program and, flattened behind it, its own interpreters.
func (f *finder) chain(ctx context.Context, names []string, depth int) ([]Executable, error) {
	var chain []Executable
	for _, name := range names {
		found, err := f.locate(name)
		if err != nil {
			return nil, err
		}
		x, err := f.describe(ctx, name, found, depth+1)
		if err != nil {
			return nil, err
		}
		inner := x.Interpreters
		x.Interpreters = nil
		chain = append(append(chain, x), inner...)
	}
	return chain, nil
}

// envTarget reads the one argument that the kernel hands to env: a name, or
// with -S a whole command line. What it does not understand it refuses, because
// the program that runs would not be known.
func envTarget(system, argument string) (string, error) {
	if system == "darwin" {
		// Its kernel splits the line at spaces; the first word is the name.
		if word, _, more := strings.Cut(argument, " "); more && !strings.HasPrefix(word, "-") {
			argument = word
		}
	}
	rest, split := strings.CutPrefix(argument, "-S")
	if !split {
		rest, split = strings.CutPrefix(argument, "--split-string=")
	}
	if !split {
		if argument == "" || strings.HasPrefix(argument, "-") || strings.Contains(argument, "=") {
			return "", errors.New("gives env an argument that is not the name of a program")
		}
		return argument, nil
	}
	if strings.ContainsAny(rest, "\\\"'$#") {
		return "", errors.New("quotes or expands in env -S")
	}
	for _, word := range strings.Fields(rest) {
		switch {
		case strings.HasPrefix(word, "PATH="):
			return "", errors.New("changes where env looks")
		case strings.HasPrefix(word, "-"):
			return "", errors.New("gives env an option")
		case strings.Contains(word, "="):
		default:
			return word, nil
		}
	}
	return "", errors.New("names no program")
}
