package approvals

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sallyport/internal/coded"
	"sallyport/internal/filehash"
	"sallyport/runtime/env"
	"sallyport/runtime/plugins"
)

// maxInput is the largest file that is hashed as an input, in bytes; the product
// policy for one file of a bundle.
const maxInput = 512 << 20

// named is what the texts of a connector without a bundle name.
type named struct {
	inputs []Input
	// own are the arguments, from 1, that name a file in the connector's own folder.
	// It may write there at any time, so those are not fixed.
	own []int
}

// inputsOf hashes every regular file that an argument or an environment value
// names, for a connector without a bundle (spec/approval.md 2.1), but for those in
// its own folder. A file that appears later where a text pointed to nothing is a new
// input, and a change.
func (r *Resolver) inputsOf(ctx context.Context, c plugins.Connector) (named, error) {
	data := r.data(c)
	words := r.words(c, "", data)
	base, err := workingDir(c, data, words)
	if err != nil {
		return named{}, err
	}
	var found named
	add := func(at, text string, argument int) error {
		for _, path := range namedPaths(base, text) {
			if _, inside := below(data, path); inside {
				if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && argument > 0 {
					found.own = append(found.own, argument)
				}
				continue
			}
			sum, ok, err := hashFile(ctx, path)
			if err != nil {
				return &coded.Error{Code: "unreadable", Sentence: fmt.Sprintf("the file that %s names cannot be read", at),
					Next: "give yourself permission to read it, then try again", Err: err}
			}
			if ok {
				found.inputs = append(found.inputs, Input{At: at, Path: r.symbolic(c)(path), SHA256: sum})
			}
		}
		return nil
	}
	args, err := words.Arguments(c.Launch.Args)
	if err != nil {
		return found, err
	}
	for i, arg := range args {
		if err := add(fmt.Sprintf("args[%d]", i), arg.Expanded, i+1); err != nil {
			return found, err
		}
	}
	for _, v := range c.Launch.Env {
		// A reference stays one: what a secret names is not looked at.
		text, _, err := words.Value(declaredOf(v))
		if err != nil {
			return found, err
		}
		if err := add("env."+v.Name, text, 0); err != nil {
			return found, err
		}
	}
	return found, nil
}

// workingDir is where a connector without a bundle would look for a relative name.
func workingDir(c plugins.Connector, data string, words env.Words) (string, error) {
	dir, err := words.One("working directory", c.Launch.Cwd)
	switch {
	case err != nil || dir == "":
		return data, err
	case filepath.IsAbs(dir):
		return dir, nil
	}
	return filepath.Join(data, filepath.FromSlash(dir)), nil
}

// namedPaths returns the paths that a text may name: all of it, what follows "=",
// and the entries of a list, each as it stands or in base.
func namedPaths(base, text string) []string {
	texts := append([]string{text}, filepath.SplitList(text)...)
	if _, value, ok := strings.Cut(text, "="); ok {
		texts = append(append(texts, value), filepath.SplitList(value)...)
	}
	var paths []string
	seen := map[string]bool{}
	for _, t := range texts {
		t = strings.TrimPrefix(t, "file://")
		if t == "" || strings.ContainsRune(t, 0) {
			continue
		}
		if !filepath.IsAbs(t) {
			t = filepath.Join(base, filepath.FromSlash(t))
		}
		if !seen[t] {
			seen[t] = true
			paths = append(paths, t)
		}
	}
	return paths
}

// hashFile returns the SHA-256 of a regular file; ok is false for anything else.
func hashFile(ctx context.Context, path string) (sum string, ok bool, err error) {
	info, err := os.Stat(path) // before any open: a FIFO would block
	if err != nil || !info.Mode().IsRegular() {
		return "", false, nil
	}
	if info.Size() > maxInput {
		return "", false, fmt.Errorf("the file is larger than %d bytes", int64(maxInput))
	}
	f, err := os.Open(path)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	sum, err = filehash.SHA256(ctx, f)
	return sum, err == nil, err
}
